// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Breaks each rule of a valid call in turn. The call's table in src/calls has
// the rules: each view's data, type, stride, size and dimensions, each pair
// of views that may not overlap, and the range of each option.

#ifndef SWITCHYARD_TESTING_SPOILT_CALLS_H_
#define SWITCHYARD_TESTING_SPOILT_CALLS_H_

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/calls/messages.h"
#include "src/check.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {

// One view of a call: an argument itself (part 0), its scales (part 1) or its
// sums (part 2).
struct ViewOfCall {
  void* data_at;  // the address of the view's data pointer
  size_t* cols;   // the number of columns, or a span's size
  size_t* rows = nullptr;
  size_t* stride = nullptr;
  Type* type = nullptr;   // rows, stride and type: null for a span
  size_t span_bytes = 0;  // the size of a span's element

  bool IsSpan() const { return rows == nullptr; }
  const char* Data() const {
    const char* data;
    std::memcpy(&data, data_at, sizeof(data));
    return data;
  }
  void SetData(const void* data) const {
    std::memcpy(data_at, &data, sizeof(data));
  }
  size_t ElementBytes() const { return IsSpan() ? span_bytes : SizeOf(*type); }
  // The bytes from the first byte to the end of the last row.
  size_t Bytes() const {
    if (IsSpan()) return *cols * span_bytes;
    return BytesOf(*type, (*rows - 1) * *stride + *cols);
  }
};

template <class Void>
ViewOfCall ViewOfMatrix(BasicAnyMatrix<Void>* m) {
  return {&m->data, &m->cols, &m->rows, &m->stride, &m->type};
}
template <class Rows>
ViewOfCall ViewOfPart(Rows* rows, int part) {
  return ViewOfMatrix(part == 0   ? rows
                      : part == 1 ? &rows->scales
                                  : &rows->sums);
}
template <class T>
ViewOfCall ViewOfSpan(void* span) {
  auto* const s = static_cast<Span<T>*>(span);
  ViewOfCall view = {&s->data, &s->size};
  view.span_bytes = sizeof(T);
  return view;
}

template <class C>
class SpoiltCalls {
 public:
  using Inputs = typename C::Inputs;
  using Outputs = typename C::Outputs;
  using Options = typename C::Options;
  struct Call {
    Inputs in;
    Outputs out;
    Options options;
  };
  using Spoil = std::function<void(Call&)>;
  // A function that is called for each broken call. `spoil` breaks a valid
  // call. The call then has to return an error that consists of the
  // function's name and one of `texts`.
  using Expect =
      std::function<void(const std::set<std::string>& texts, const Spoil&)>;

  SpoiltCalls(const Call& valid, Expect expect)
      : valid_(valid), expect_(std::move(expect)) {}

  void All() {
    ForEachGiven([this](size_t view) {
      SpoilDimensions(view);
      SpoilPresence(view);
      SpoilPlace(view);
    });
    Certain();
  }
  // Breaks the call only in ways that remain errors if anything else in the
  // call is changed.
  void Certain() {
    ForEachGiven([this](size_t view) {
      SpoilMemory(view);
      SpoilType(view);
    });
    for (const calls::Option& option : C::kOptions) SpoilOption(option);
  }

  // Returns the addresses of all views that the call writes, given or not.
  static std::vector<const void*> Written(Call call) {
    std::vector<const void*> written;
    for (size_t view = 0; view < kViews.size(); ++view) {
      if (!calls::IsWritten<C>(kViews[view].argument)) continue;
      written.push_back(At(call, view).Data());
    }
    return written;
  }

  // Returns the view's name in error messages.
  static std::string NameOf(size_t view) {
    constexpr const char* kParts[] = {"", ".scales", ".sums"};
    return RowOf(view).field.name + std::string(kParts[kViews[view].part]);
  }

 private:
  static constexpr auto& kViews = calls::kViews<C>;

  template <class F>
  void ForEachGiven(const F& f) {
    for (size_t view = 0; view < kViews.size(); ++view) {
      if (IsGiven(valid_, view)) f(view);
    }
  }
  static const calls::Argument& RowOf(size_t view) {
    return calls::ArgumentAt<C>(kViews[view].argument);
  }
  static ViewOfCall At(Call& call, size_t view) {
    using calls::Kind;
    const size_t argument = kViews[view].argument;
    const int part = kViews[view].part;
    const calls::Field& field = RowOf(view).field;
    char* const base = argument < calls::kNumInputs<C>
                           ? reinterpret_cast<char*>(&call.in)
                           : reinterpret_cast<char*>(&call.out);
    void* const at = base + field.offset;
    switch (field.kind) {
      case Kind::kConstMatrix:
        return ViewOfMatrix(static_cast<ConstAnyMatrix*>(at));
      case Kind::kMatrix:
        return ViewOfMatrix(static_cast<AnyMatrix*>(at));
      case Kind::kRowIndex:
        return ViewOfMatrix<const void>(static_cast<RowIndex*>(at));
      case Kind::kConstRows:
        return ViewOfPart(static_cast<ConstAnyRows*>(at), part);
      case Kind::kRows:
        return ViewOfPart(static_cast<AnyRows*>(at), part);
      case Kind::kConstI32Span:
        return ViewOfSpan<const int32_t>(at);
      case Kind::kI32Span:
        return ViewOfSpan<int32_t>(at);
      case Kind::kI64Span:
        return ViewOfSpan<int64_t>(at);
      default:
        return ViewOfSpan<uint32_t>(at);
    }
  }
  static bool IsGiven(Call& call, size_t view) {
    const ViewOfCall v = At(call, view);
    const size_t part = kViews[view].part;
    return v.Data() != nullptr && *v.cols != 0 &&
           (v.IsSpan() || *v.rows != 0) &&
           // Scales and sums of rows without columns are ignored.
           (part == 0 || IsGiven(call, view - part));
  }

  void SpoilMemory(size_t view) {
    const std::string name = NameOf(view);
    const std::string overflows = name + ": size overflows the address space";
    Call valid = valid_;
    const ViewOfCall v = At(valid, view);
    expect_({name + ": data is null"},
            [=](Call& c) { At(c, view).SetData(nullptr); });
    if (v.IsSpan()) return;
    // `many` elements do not fit in the address space if an element has four
    // bytes. If it has one byte, `many` is SIZE_MAX / 2 + 1.
    const bool is_wide = v.ElementBytes() >= 4;
    const size_t many = is_wide ? SIZE_MAX / 4 : SIZE_MAX / 2 + 1;
    if (*v.rows > 1) {
      expect_({name + ": stride is smaller than cols"},
              [=](Call& c) { *At(c, view).stride = *At(c, view).cols - 1; });
      for (const size_t stride : {many, is_wide ? many / 2 : many, SIZE_MAX}) {
        expect_({overflows}, [=](Call& c) { *At(c, view).stride = stride; });
      }
      expect_({overflows}, [=](Call& c) { *At(c, view).rows = many; });
    }
    expect_({overflows}, [=](Call& c) {
      *At(c, view).cols = *At(c, view).stride = many;
      *At(c, view).rows = 1;
    });
  }

  void SpoilType(size_t view) {
    const ViewOfCall v = At(valid_, view);
    if (v.IsSpan()) return;
    const calls::Types& types = RowOf(view).types;
    const int part = kViews[view].part;
    const uint32_t fine =
        part == 0   ? types.set
        : part == 1 ? calls::SetOf(Type::kF32) | calls::SetOf(Type::kE8M0)
                    : calls::SetOf(Type::kI32);
    const std::string words = part == 0   ? types.words
                              : part == 1 ? "f32, or e8m0 with f8"
                                          : "int32";
    std::vector<Type> others = {Type(99)};
    for (const Type type : calls::kEnumerators<Type>) {
      if ((fine >> static_cast<unsigned>(type) & 1) == 0) {
        others.push_back(type);
      }
    }
    for (const Type type : others) {
      expect_({NameOf(view) + ": has to be " + words},
              [=](Call& c) { *At(c, view).type = type; });
    }
  }

  // Adds the error texts for an argument's shapes.
  static void AddShapeTexts(size_t argument, std::set<std::string>* texts) {
    const calls::Argument& a = calls::ArgumentAt<C>(argument);
    for (const calls::Shape& shape : a.shapes) {
      if (shape.words == nullptr) continue;
      const std::string words = shape.words;
      const std::string text =
          shape.says != nullptr          ? shape.says
          : !calls::IsSpan(a.field.kind) ? "is not " + words
          : words.substr(0, 3) == ">= "
              ? "fewer than " + words.substr(3) + " elements"
              : "size is not " + words;
      texts->insert(std::string(a.field.name) + ": " + text);
    }
  }
  // Returns the sizes of the call from which an argument's shape is computed.
  uint32_t SizesOf(size_t argument, bool without_least = false) {
    uint32_t sizes = 0;
    const auto add = [&](const calls::SizeWords& words) {
      for (const calls::Term& term : {words.first, words.second}) {
        if (term.size >= 0) sizes |= uint32_t{1} << term.size;
      }
    };
    for (const calls::ShapeWords& shape : calls::kShapes<C>[argument]) {
      if (shape.is_least && without_least) continue;
      for (int i = 0; i < shape.alternatives; ++i) {
        add(shape.rows[i]);
        add(shape.cols[i]);
      }
    }
    return sizes;
  }
  // True if no other given argument fixes the size of this axis, so that any
  // size is valid. An argument does not fix the size if it only has to be at
  // least that large.
  bool IsFree(size_t argument, const calls::ShapeWords& shape, bool is_rows) {
    uint32_t others = 0;
    for (size_t view = 0; view < kViews.size(); ++view) {
      const size_t other = kViews[view].argument;
      if (other != argument && IsGiven(valid_, view))
        others |= SizesOf(other, true);
    }
    for (size_t i = 0; i < std::size(C::kSizes); ++i) {
      if (C::kSizes[i].is_of_options) others |= uint32_t{1} << i;
    }
    for (int i = 0; i < shape.alternatives; ++i) {
      const calls::SizeWords& size = is_rows ? shape.rows[i] : shape.cols[i];
      for (const calls::Term& term : {size.first, size.second}) {
        if (term.size >= 0 && (others >> term.size & 1) == 0) return true;
      }
    }
    return false;
  }
  size_t ValueOf(const calls::SizeWords& words) {
    const auto sizes = C::Measure(valid_.in, valid_.out, valid_.options);
    const auto value = [&](const calls::Term& term) -> size_t {
      return term.size < 0 ? term.number
                           : sizes.*(C::kSizes[size_t(term.size)].member);
    };
    return words.op == '*'   ? value(words.first) * value(words.second)
           : words.op == '+' ? value(words.first) + value(words.second)
                             : value(words.first);
  }
  // Adds the texts of rules that a changed size may break, and that are
  // checked before the shapes.
  static void AddRuleTexts(std::set<std::string>* texts) {
    for (const auto& rule : C::kRules) texts->insert(rule.words);
  }
  // True if the view has one of its two shapes after the axis is set to
  // `size`.
  bool FitsEither(size_t view, const calls::ShapeWords& shape, bool is_rows,
                  size_t size) {
    const ViewOfCall v = At(valid_, view);
    const size_t rows = is_rows ? size : *v.rows,
                 cols = is_rows ? *v.cols : size;
    for (const int i : {0, 1}) {
      if (rows == ValueOf(shape.rows[i]) && cols == ValueOf(shape.cols[i])) {
        return true;
      }
    }
    return false;
  }
  // Makes each dimension larger by one, then smaller by one. If another
  // argument has the same size, the error may name that argument instead.
  void SpoilDimensions(size_t view) {
    const size_t argument = kViews[view].argument;
    const bool is_span = At(valid_, view).IsSpan();
    std::set<std::string> texts;
    calls::ShapeWords shape = {};
    if (kViews[view].part != 0) {
      texts = {NameOf(view) + (kViews[view].part == 2
                                   ? ": is not [rows, 1]"
                                   : ": is not [rows, 1] or one for 32, 64 or "
                                     "128 columns (e8m0: 32)")};
    } else {
      const calls::ShapeWords* const in_force = ShapeOf(argument);
      if (in_force == nullptr) return;
      shape = *in_force;
      const uint32_t own = SizesOf(argument);
      for (size_t i = 0; i < calls::kNumArguments<C>; ++i) {
        if (i == argument || (SizesOf(i) & own) != 0) AddShapeTexts(i, &texts);
      }
      AddRuleTexts(&texts);
    }
    for (const bool is_rows : {true, false}) {
      if (is_rows && is_span) continue;
      const bool is_part = kViews[view].part != 0;
      if (!is_part && IsFree(argument, shape, is_rows)) continue;
      for (const int by : {-1, 1}) {
        const size_t size = shape.is_least ? ValueOf(shape.cols[0])
                            : is_rows      ? *At(valid_, view).rows
                                           : *At(valid_, view).cols;
        // A few more scales could be valid, for smaller groups. 1000 more
        // scales are always an error.
        const size_t more = is_part && !is_rows ? 1000 : 1;
        const size_t other = by < 0 ? size - 1 : size + more;
        if (shape.alternatives == 2 &&
            FitsEither(view, shape, is_rows, other)) {
          continue;
        }
        // A view without rows or columns counts as not given.
        if (by < 0 ? size < 2 : shape.is_least) continue;
        // Fewer scales could be valid, for larger groups.
        if (is_part && !is_rows && by < 0) continue;
        expect_(texts, [=](Call& c) {
          const ViewOfCall spoilt = At(c, view);
          (is_rows ? *spoilt.rows : *spoilt.cols) = other;
          // Changes the number of rows of scales and sums too. Otherwise the
          // error would name them.
          for (size_t part = 1;
               is_rows && !is_part && part < kViews.size() - view; ++part) {
            if (kViews[view + part].argument != argument) break;
            if (IsGiven(c, view + part)) *At(c, view + part).rows = other;
          }
          if (!is_span && *spoilt.stride < *spoilt.cols) {
            *spoilt.stride = *spoilt.cols;
          }
        });
      }
    }
  }

  // Returns the shape that an argument has in this call, or null if it has
  // none.
  const calls::ShapeWords* ShapeOf(size_t argument) {
    const auto sizes = C::Measure(valid_.in, valid_.out, valid_.options);
    const typename C::Args args = {valid_.in, valid_.out, valid_.options,
                                   sizes};
    const calls::Argument& row = calls::ArgumentAt<C>(argument);
    for (size_t i = 0; i < calls::kMaxShapes; ++i) {
      if (row.shapes[i].words != nullptr &&
          internal::Holds(row.shapes[i].when, args)) {
        return &calls::kShapes<C>[argument][i];
      }
    }
    return nullptr;
  }

  // Removes a view that the call needs, or the scales of a type with scales.
  // Skips a view if nothing else fixes its sizes. Without that view the call
  // would have no work, which is not an error.
  void SpoilPresence(size_t view) {
    const calls::Argument& row = RowOf(view);
    const auto sizes = C::Measure(valid_.in, valid_.out, valid_.options);
    const typename C::Args args = {valid_.in, valid_.out, valid_.options,
                                   sizes};
    bool is_needed = kViews[view].part == 1;
    if (kViews[view].part == 0 && (row.flags & calls::kOptional) == 0 &&
        internal::Holds(row.when, args)) {
      is_needed = row.group == 0;
      for (size_t other = 0; other < kViews.size(); ++other) {
        is_needed |= row.group != 0 && RowOf(other).group == row.group &&
                     kViews[other].argument != kViews[view].argument &&
                     internal::Holds(RowOf(other).when, args) &&
                     IsGiven(valid_, other);
      }
    }
    const size_t argument = kViews[view].argument;
    const calls::ShapeWords* const shape = ShapeOf(argument);
    // A span may be missing if it needs no elements.
    const bool needs_none =
        shape != nullptr && shape->is_least && ValueOf(shape->cols[0]) == 0;
    if (!is_needed || needs_none ||
        (shape != nullptr && IsFree(argument, *shape, true) &&
         IsFree(argument, *shape, false))) {
      return;
    }
    std::set<std::string> texts = {NameOf(view) + ": not given"};
    AddShapeTexts(kViews[view].argument, &texts);
    for (const auto& rule : C::kRules) {
      const std::string words = rule.words;
      if (words.rfind(NameOf(view) + ":", 0) == 0) texts.insert(words);
    }
    expect_(texts, [=](Call& c) {
      // Rows are removed together with their scales and sums.
      size_t at = view;
      do {
        const ViewOfCall spoilt = At(c, at);
        spoilt.SetData(nullptr);
        *spoilt.cols = 0;
        if (!spoilt.IsSpan()) *spoilt.rows = *spoilt.stride = 0;
        ++at;
      } while (kViews[view].part == 0 && at < kViews.size() &&
               kViews[at].argument == argument);
    });
  }

  // Makes the view `written` overlap each view that it may not overlap. The
  // other view is moved to the address of `written` (one element further if
  // both may be the same view). In two other calls, only the first or the
  // last byte of `written` overlaps.
  void SpoilPlace(size_t written) {
    const size_t argument = kViews[written].argument;
    if (!calls::IsWritten<C>(argument)) return;
    for (size_t other = 0; other < kViews.size(); ++other) {
      if (!calls::IsPair<C>(written, other) || !IsGiven(valid_, other)) {
        continue;
      }
      const std::string text = NameOf(written) + ": overlaps " + NameOf(other);
      const bool may_be_in_place =
          kViews[written].part == 0 && kViews[other].part == 0 &&
          calls::MayBeInPlace<C>(kViews[other].argument, argument);
      std::set<std::string> texts = {text};
      if (may_be_in_place) texts.insert(text + " without being the same view");
      const ViewOfCall from = At(valid_, written), to = At(valid_, other);
      const ptrdiff_t last = static_cast<ptrdiff_t>(from.Bytes()) - 1,
                      first = 1 - static_cast<ptrdiff_t>(to.Bytes()),
                      here = may_be_in_place
                                 ? static_cast<ptrdiff_t>(to.ElementBytes())
                                 : 0;
      for (const ptrdiff_t offset : {here, first, last}) {
        // A single column that is moved by one element does not overlap
        // itself.
        if (may_be_in_place && offset == here && *to.cols == 1) continue;
        expect_(texts, [=](Call& c) {
          At(c, other).SetData(At(c, written).Data() + offset);
        });
      }
    }
  }

  void SpoilOption(const calls::Option& option) {
    using calls::Kind;
    using calls::Range;
    const calls::Range& range = option.range;
    const auto put = [&](auto value) {
      const size_t offset = option.field.offset;
      expect_({std::string("options: ") + option.field.name + range.words},
              [=](Call& c) {
                std::memcpy(reinterpret_cast<char*>(&c.options) + offset,
                            &value, sizeof(value));
              });
    };
    const auto put_all = [&](std::initializer_list<float> values) {
      for (const float value : values) put(value);
    };
    switch (range.of) {
      case Range::kAny:
        return;
      case Range::kUpTo:
        put_all({-1.0f, -1e-20f, -kInf, kNaN});
        if (range.most < kInf) put(kInf);
        if (range.most < FLT_MAX) put(1.5f * range.most);
        return;
      case Range::kFiniteNotZero:
        put_all({0.0f, -0.0f});
        [[fallthrough]];
      case Range::kFinite:
        return put_all({kInf, -kInf, kNaN});
      case Range::kPositive:
        return put_all({0.0f, -0.0f, -1.0f, 1e-39f, kInf, -kInf, kNaN});
      case Range::kFrom1:
        put(size_t{0});
        if (range.most_count != SIZE_MAX) put(range.most_count + 1);
        return;
      case Range::kSet:
        for (uint32_t value = 0; value < 256; ++value) {
          if (value < 32 && (range.set >> value & 1) != 0) continue;
          put(static_cast<uint8_t>(value));
        }
        return;
    }
  }

  Call valid_;
  const Expect expect_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_SPOILT_CALLS_H_
