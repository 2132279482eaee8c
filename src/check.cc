// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/check.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "src/calls/names.h"

namespace switchyard::internal {
namespace {

using calls::Argument;
using calls::Fault;
using calls::IsRows;
using calls::IsSpan;
using calls::IsView;
using calls::ShapeWords;
using calls::SizeWords;
using calls::Term;

// ---- Faults of a single view.

constexpr size_t kNone = calls::kNumFaults;

// A fault, and where it is: 0 for the rows, 1 for the scales, 2 for the sums.
struct PartFault {
  size_t part;
  size_t fault;
};
PartFault FindFaultOfParts(const ConstAnyRows& m) {
  if (!InWholeBlocks(m)) return {0, Fault::kCutsBlocks};
  if (!IsCode(m.type)) {
    if (Given(m.scales)) return {1, Fault::kIsOfAnotherType};
  } else {
    const bool is_power = m.scales.type == Type::kE8M0;
    if (m.scales.type != Type::kF32 &&
        !(is_power && KindOf(m.type) == TypeKind::kFloatCode)) {
      return {1, Fault::kHasType};
    }
    const size_t fault = FindFaultOfMemory(m.scales);
    if (fault != kNone) return {1, fault};
    if (m.scales.rows != m.rows || !ScalesFit(m)) {
      return {1, Given(m.scales) ? Fault::kHasShape : Fault::kIsMissing};
    }
  }
  if (!Given(m.sums)) return {0, kNone};
  if (KindOf(m.type) != TypeKind::kIntegerCode) {
    return {2, Fault::kIsOfAnotherType};
  }
  if (m.sums.type != Type::kI32) return {2, Fault::kHasType};
  const size_t fault = FindFaultOfMemory(m.sums);
  if (fault != kNone) return {2, fault};
  if (m.sums.rows != m.rows || m.sums.cols != 1) return {2, Fault::kHasShape};
  if (m.cols > size_t{1} << 24) return {2, Fault::kHasTooManyCols};
  return {0, kNone};
}

bool TakesType(const Argument& a, Type type) {
  return IsSpan(a.field.kind) || IsIn(a.types.set, type);
}

// ---- Shapes: finds the argument at fault if sizes do not fit each other.
//
// A check compares an argument with sizes of other arguments. If another
// argument is missing or has a wrong shape, the check would blame the wrong
// argument. So the first argument in this order is blamed:
//   1. an argument that is needed and not given,
//   2. the last argument that would fit the others if its rows and columns were
//      exchanged,
//   3. the last argument without which the others agree, but not the first
//      argument of the list. (Outputs come last, and are made to fit inputs.)
//      If this is a span, and another span is too short for it, the other span,
//   4. the first output that differs from inputs that agree,
//   5. the first argument of the list, if the others agree.

constexpr size_t kMaxSizes = 16;

// Computes a size from the values of its terms. A size of one term has the
// second term 0. Returns false if the size overflows.
bool Join(size_t first, char op, size_t second, size_t* value) {
  return !(op == '*' ? __builtin_mul_overflow(first, second, value)
                     : __builtin_add_overflow(first, second, value));
}

// The sizes of a call that are known from its arguments and options.
class Sizes {
 public:
  explicit Sizes(const WalkedCall& call) {
    for (size_t i = 0; i < call.num_sizes; ++i) {
      is_known_[i] = (call.sizes_of_options >> i & 1) != 0;
      value_[i] = call.sizes[i];
    }
  }
  // Sets a size. Returns false if the size already has another value.
  bool Add(const Term& term, size_t value) {
    const size_t i = static_cast<size_t>(term.size);
    if (is_known_[i]) return value_[i] == value;
    is_known_[i] = true;
    value_[i] = value;
    return true;
  }
  bool IsKnown(const SizeWords& size) const {
    return size.first.size >= 0 &&
           is_known_[static_cast<size_t>(size.first.size)];
  }
  // Finds the value of a term. Returns false if it is unknown.
  bool Find(const Term& term, size_t* value) const {
    if (term.size < 0) {
      *value = term.number;
      return true;
    }
    const size_t i = static_cast<size_t>(term.size);
    *value = value_[i];
    return is_known_[i];
  }
  // Finds the value of a size. Returns false if a part of it is unknown.
  bool Find(const SizeWords& size, size_t* value) const {
    size_t first = 0, second = 0;
    return Find(size.first, &first) && Find(size.second, &second) &&
           Join(first, size.op, second, value);
  }
  // Computes the one unknown part of a size from the size's value: if
  // "num_experts + 1" is 4, num_experts is 3.
  void Solve(const SizeWords& size, size_t whole) {
    size_t first = 0, second = 0;
    const bool has_first = Find(size.first, &first);
    if (size.op == 0 || has_first == Find(size.second, &second)) return;
    const size_t part = has_first ? first : second;
    const Term& missing = has_first ? size.second : size.first;
    if (size.op == '*' ? part == 0 || whole % part != 0 : whole < part) return;
    Add(missing, size.op == '*' ? whole / part : whole - part);
  }
  // True if a size is `value`, or may be `value` because a part is unknown.
  bool MayBe(const SizeWords& size, size_t value) const {
    size_t first = 0, second = 0, result = 0;
    if (!Find(size.first, &first) || !Find(size.second, &second)) return true;
    return Join(first, size.op, second, &result) && result == value;
  }

 private:
  bool is_known_[kMaxSizes] = {};
  size_t value_[kMaxSizes] = {};
};

bool IsName(const SizeWords& size) {
  return size.op == 0 && size.first.size >= 0;
}

// The shape of a given argument. If the table gives two alternatives, the
// argument's rows decide which applies.
struct Shaped {
  bool has_shape;
  const SizeWords* words[2];
  size_t sizes[2];
};

size_t ValueOf(const WalkedCall& call, const Term& term) {
  return term.size < 0 ? term.number
                       : call.sizes[static_cast<size_t>(term.size)];
}
// Finds the value of a size in this call. Returns false if it overflows.
bool Measure(const WalkedCall& call, const SizeWords& size, size_t* value) {
  return Join(ValueOf(call, size.first), size.op, ValueOf(call, size.second),
              value);
}
bool IsValue(const WalkedCall& call, const SizeWords& size, size_t value) {
  size_t result = 0;
  return Measure(call, size, &result) && result == value;
}

Shaped ShapeOf(const WalkedCall& call, const WalkedArgument& a) {
  static constexpr SizeWords kOne = {{-1, 1}, {}, 0};
  if (!a.is_given || a.shape == nullptr || a.shape->is_least) return {};
  const ShapeWords& shape = *a.shape;
  if (IsSpan(a.row->field.kind)) {
    return {true, {&kOne, &shape.cols[0]}, {1, a.view.cols}};
  }
  const bool is_second = shape.alternatives == 2 &&
                         !IsValue(call, shape.rows[0], a.view.rows) &&
                         IsValue(call, shape.rows[1], a.view.rows);
  return {true,
          {&shape.rows[is_second], &shape.cols[is_second]},
          {a.view.rows, a.view.cols}};
}

// True if the shapes of the arguments that `takes` selects fit each other.
template <class Takes>
bool Agree(const WalkedCall& call, const Takes& takes) {
  Sizes sizes(call);
  for (const bool is_name : {true, false}) {
    for (size_t i = 0; i < call.num_arguments; ++i) {
      const Shaped a = ShapeOf(call, call.arguments[i]);
      if (!a.has_shape || !takes(i)) continue;
      for (const int axis : {0, 1}) {
        const SizeWords& words = *a.words[axis];
        if (IsName(words) != is_name) continue;
        if (is_name ? !sizes.Add(words.first, a.sizes[axis])
                    : !sizes.MayBe(words, a.sizes[axis])) {
          return false;
        }
        // Without Solve(), topk_ids and topk_weights of different widths
        // would agree if no other argument gave top_k.
        if (!is_name) sizes.Solve(words, a.sizes[axis]);
      }
    }
  }
  return true;
}
bool AgreeWithout(const WalkedCall& call, size_t other) {
  return Agree(call, [other](size_t i) { return i != other; });
}

[[gnu::cold]] bool IsTransposed(const WalkedCall& call, size_t at) {
  const Shaped a = ShapeOf(call, call.arguments[at]);
  if (!a.has_shape || !AgreeWithout(call, at)) return false;
  Sizes sizes(call);
  for (size_t i = 0; i < call.num_arguments; ++i) {
    const Shaped other = ShapeOf(call, call.arguments[i]);
    if (i == at || !other.has_shape) continue;
    for (const int axis : {0, 1}) {
      if (IsName(*other.words[axis])) {
        sizes.Add(other.words[axis]->first, other.sizes[axis]);
      }
    }
  }
  return (sizes.IsKnown(*a.words[0]) || sizes.IsKnown(*a.words[1])) &&
         sizes.MayBe(*a.words[0], a.sizes[1]) &&
         sizes.MayBe(*a.words[1], a.sizes[0]);
}

bool IsSpanAt(const WalkedCall& call, size_t i) {
  return IsSpan(call.arguments[i].row->field.kind) &&
         ShapeOf(call, call.arguments[i]).has_shape;
}

// If two spans disagree, either may be at fault. Returns the other span if it
// is too short for span `at`, because arrays are more often an element too
// short than too long. Otherwise returns `at`.
[[gnu::cold]] size_t FindShorter(const WalkedCall& call, size_t at) {
  if (!IsSpanAt(call, at)) return at;
  for (size_t i = 0; i < call.num_arguments; ++i) {
    if (i == at || !IsSpanAt(call, i) || !AgreeWithout(call, i)) continue;
    const Shaped a = ShapeOf(call, call.arguments[at]),
                 other = ShapeOf(call, call.arguments[i]);
    // A span's size is one of the call's sizes, or such a size plus a number.
    const size_t more = a.words[1]->op == '+' ? a.words[1]->second.number : 0;
    const size_t others =
        other.words[1]->op == '+' ? other.words[1]->second.number : 0;
    if (a.words[1]->first.size == other.words[1]->first.size &&
        a.sizes[1] + others > other.sizes[1] + more) {
      return i;
    }
  }
  return at;
}

// Returns the index of the single argument at fault, or kNoFault.
[[gnu::cold]] size_t FindOddOne(const WalkedCall& call) {
  const size_t size = call.num_arguments;
  if (Agree(call, [](size_t) { return true; })) return kNoFault;
  for (size_t i = size; i-- > 0;) {
    if (IsTransposed(call, i)) return i;
  }
  const auto has_shape = [&](size_t i) {
    return ShapeOf(call, call.arguments[i]).has_shape;
  };
  for (size_t i = size; i-- > 0;) {
    if (i != 0 && has_shape(i) && AgreeWithout(call, i)) {
      return FindShorter(call, i);
    }
  }
  for (size_t out = call.num_inputs; out < size; ++out) {
    if (!has_shape(out)) continue;
    const auto is_input = [&](size_t i) { return i < call.num_inputs; };
    if (!Agree(call, [&](size_t i) { return is_input(i) || i == out; })) {
      if (!Agree(call, is_input)) break;
      return out;
    }
  }
  return AgreeWithout(call, 0) ? 0 : kNoFault;
}

// True if an argument has the shape that the table asks for.
bool HasItsShape(const WalkedCall& call, const WalkedArgument& a) {
  if (a.shape == nullptr || a.shape->alternatives == 0) return true;
  if (!a.is_given && !a.is_needed) return true;
  const ShapeWords& shape = *a.shape;
  if (shape.is_least) {
    size_t least = 0;
    return Measure(call, shape.cols[0], &least) && a.view.cols >= least;
  }
  if (IsSpan(a.row->field.kind)) {
    return IsValue(call, shape.cols[0], a.view.cols);
  }
  for (int i = 0; i < shape.alternatives; ++i) {
    if (IsValue(call, shape.rows[i], a.view.rows) &&
        IsValue(call, shape.cols[i], a.view.cols)) {
      return true;
    }
    // A call without tokens may leave out a view with two alternatives.
    if (shape.alternatives == 2 && !a.is_given &&
        IsValue(call, shape.rows[i], 0)) {
      return true;
    }
  }
  return false;
}

// ---- Overlaps.

// The memory of a view: `rows` pieces of `row_bytes`, `stride_bytes` apart.
struct Region {
  uintptr_t begin;
  size_t rows;
  size_t row_bytes;
  size_t stride_bytes;  // 0 for a single row, whatever the view's stride

  explicit Region(const ConstAnyMatrix& m)
      : begin(reinterpret_cast<uintptr_t>(m.data)),
        rows(m.rows),
        row_bytes(BytesOf(m.type, m.cols)),
        stride_bytes(m.rows <= 1 ? 0 : BytesOf(m.type, m.stride)) {}

  bool Empty() const { return rows == 0 || row_bytes == 0; }
};

struct View {
  ConstAnyMatrix m;
  size_t argument;
  bool is_written;
  bool is_whole;  // false for an argument's scales or sums
};

}  // namespace

size_t FindFaultOfMemory(const ConstAnyMatrix& m) {
  if (IsPlain(m)) return kNone;
  if (m.data == nullptr && m.rows != 0 && m.cols != 0) return Fault::kIsNull;
  if (m.rows > 1 && m.stride < m.cols) return Fault::kHasStride;
  return Fits(m) ? kNone : static_cast<size_t>(Fault::kIsTooLarge);
}

bool Fits(const ConstAnyMatrix& m) {
  if (m.rows == 0 || m.cols == 0) return true;
  const size_t size = SizeOf(m.type);
  if (size == 0) return false;
  size_t elements = 0;
  if (m.rows > 1 && __builtin_mul_overflow(m.rows - 1, m.stride, &elements)) {
    return false;
  }
  const size_t most = (static_cast<size_t>(PTRDIFF_MAX) / size)
                      << BlockBits(m.type);
  return !__builtin_add_overflow(elements, m.cols, &elements) &&
         elements <= most &&
         reinterpret_cast<uintptr_t>(m.data) <=
             UINTPTR_MAX - BytesOf(m.type, elements);
}

bool RowsMayOverlap(const ConstAnyMatrix& x, const ConstAnyMatrix& y) {
  Region a(x), b(y);
  if (a.Empty() || b.Empty()) return false;
  if (a.rows == 1) a.stride_bytes = b.stride_bytes;
  if (b.rows == 1) b.stride_bytes = a.stride_bytes;
  const size_t stride = a.stride_bytes;
  if (a.stride_bytes != b.stride_bytes || a.row_bytes > stride ||
      b.row_bytes > stride) {
    return true;
  }
  // The byte within a's stride at which b's rows start.
  const size_t offset = b.begin >= a.begin
                            ? (b.begin - a.begin) % stride
                            : (stride - (a.begin - b.begin) % stride) % stride;
  return offset < a.row_bytes || offset + b.row_bytes > stride;
}

bool AreSound(const ConstAnyRows& rows) {
  return IsRowType(rows.type) && FindFaultOfParts(rows).fault == kNone;
}
bool AreSound(const AnyRows& rows) { return AreSound(ConstAnyRows(rows)); }

size_t FindFaultOfViews(const WalkedCall& call) {
  for (size_t i = 0; i < call.num_arguments; ++i) {
    const WalkedArgument& a = call.arguments[i];
    if (!IsView(a.row->field.kind)) continue;
    if (!a.is_given && !a.is_needed) continue;
    const size_t first = a.first_view * size_t{calls::kNumFaults};
    if (!TakesType(*a.row, a.view.type)) {
      return first + static_cast<size_t>(a.is_given ? Fault::kHasType
                                                    : Fault::kIsMissing);
    }
    const size_t fault = FindFaultOfMemory(a.view);
    if (fault != kNone) return first + fault;
    if (!IsRows(a.row->field.kind)) continue;
    const PartFault part = FindFaultOfParts(a.view);
    if (part.fault != kNone) {
      return first + part.part * calls::kNumFaults + part.fault;
    }
  }
  return kNoFault;
}

size_t FindFaultOfShapes(const WalkedCall& call) {
  size_t misfit = kNoFault;
  for (size_t i = 0; i < call.num_arguments && misfit == kNoFault; ++i) {
    if (!HasItsShape(call, call.arguments[i])) misfit = i;
  }
  if (misfit == kNoFault) return kNoFault;
  for (size_t i = 0; i < call.num_arguments; ++i) {
    const WalkedArgument& a = call.arguments[i];
    if (!a.is_needed || a.is_given) continue;
    return a.first_view * size_t{calls::kNumFaults} + Fault::kIsMissing;
  }
  const size_t odd = FindOddOne(call);
  const WalkedArgument& a = call.arguments[odd == kNoFault ? misfit : odd];
  return a.first_view * size_t{calls::kNumFaults} + Fault::kHasShape +
         a.shape_number;
}

namespace {

// ---- The numbers in error messages.

// Returns the sizes that all arguments except argument `at` give.
[[gnu::cold]] Sizes SizesWithout(const WalkedCall& call, size_t at) {
  Sizes sizes(call);
  for (const bool is_name : {true, false}) {
    for (size_t i = 0; i < call.num_arguments; ++i) {
      const Shaped a = ShapeOf(call, call.arguments[i]);
      if (i == at || !a.has_shape) continue;
      for (const int axis : {0, 1}) {
        const SizeWords& words = *a.words[axis];
        if (IsName(words) != is_name) continue;
        if (is_name) {
          sizes.Add(words.first, a.sizes[axis]);
        } else {
          sizes.Solve(words, a.sizes[axis]);
        }
      }
    }
  }
  return sizes;
}

// Writes a size that is not fully known, with names of unknown parts.
[[gnu::cold]] void PutWords(const WalkedCall& call, const Sizes& sizes,
                            const SizeWords& words, Details* to) {
  const auto put = [&](const Term& term) {
    size_t value = 0;
    if (sizes.Find(term, &value)) {
      to->Put(value);
    } else {
      to->Put(call.names_of_sizes[term.size]);
    }
  };
  size_t second = 0;
  put(words.first);
  const bool is_plus_0 =
      words.op == '+' && sizes.Find(words.second, &second) && second == 0;
  if (words.op == 0 || is_plus_0) return;
  to->Put(words.op == '*' ? " * " : " + ");
  put(words.second);
}
// Writes the size that an argument should have, or the size's name if no
// argument has it. If the argument is odd (the only one at fault) or not
// given, writes the size that fits the other arguments. If several arguments
// are wrong, none of them is odd, so this writes the call's size.
[[gnu::cold]] void PutWantedSize(const WalkedCall& call, const Sizes& others,
                                 const SizeWords& words, bool is_odd,
                                 bool is_given, size_t own, Details* to) {
  size_t value = 0, measured = 0;
  const bool is_known = others.Find(words, &value);
  if (!Measure(call, words, &measured)) measured = SIZE_MAX;
  const size_t none = words.op == '+' ? words.second.number : 0;
  const bool is_measured = measured != none && measured != SIZE_MAX;
  if (is_known && (is_odd || !is_given)) {
    to->Put(value);
  } else if (is_odd && is_given) {
    to->Put(own);
  } else if (is_measured || (is_known && measured != SIZE_MAX)) {
    to->Put(measured);
  } else {
    PutWords(call, others, words, to);
  }
}

// Writes the shape that argument `at` should have.
[[gnu::cold]] void PutWantedShape(const WalkedCall& call, size_t at,
                                  Details* to) {
  const WalkedArgument& a = call.arguments[at];
  const ShapeWords& shape = *a.shape;
  const bool is_span = IsSpan(a.row->field.kind);
  const bool is_odd = FindOddOne(call) == at;
  const Sizes others = SizesWithout(call, at);
  to->Put(shape.is_least ? "needs at least " : "needs ");
  for (int i = 0; i < shape.alternatives; ++i) {
    if (i != 0) to->Put(" or ");
    if (!is_span) {
      to->Put("[");
      PutWantedSize(call, others, shape.rows[i], is_odd, a.is_given,
                    a.view.rows, to);
      to->Put(", ");
    }
    PutWantedSize(call, others, shape.cols[i], is_odd, a.is_given, a.view.cols,
                  to);
    if (!is_span) to->Put("]");
  }
}

// Writes the shapes that scales may have, each once.
[[gnu::cold]] void PutWantedScales(const ConstAnyRows& m, Details* to) {
  to->Put("needs ");
  if (m.scales.type == Type::kE8M0) {
    to->PutShape(m.rows, (m.cols + 31) / 32);
    return;
  }
  to->PutShape(m.rows, 1);
  size_t last = 1;
  for (const size_t group : {size_t{128}, size_t{64}, size_t{32}}) {
    const size_t scales = (m.cols + group - 1) / group;
    if (scales <= last) continue;
    last = scales;
    to->Put(" or ").PutShape(m.rows, scales);
  }
}

// Stands for a number from the C ABI that did not fit in 8 bits (see Convert()
// in src/c/convert.h). The number is lost, so messages do not show it.
constexpr int kNoEnumerator = UINT8_MAX;

[[gnu::cold]] void PutSet(uint32_t set, Details* to) {
  const char* before = "";
  for (int first = 0; first < 32; ++first) {
    if ((set >> first & 1) == 0) continue;
    int last = first;
    while (last < 31 && (set >> (last + 1) & 1) != 0) ++last;
    to->Put(before).Put(first);
    if (last != first) to->Put(last == first + 1 ? " or " : " to ").Put(last);
    before = ", ";
    first = last;
  }
}

[[gnu::cold]] void PutValue(const unsigned char* at, calls::Kind kind,
                            Details* to) {
  switch (kind) {
    case calls::Kind::kNumber: {
      float value;
      std::memcpy(&value, at, sizeof(value));
      to->Put(value);
      return;
    }
    case calls::Kind::kCount: {
      size_t value;
      std::memcpy(&value, at, sizeof(value));
      to->Put(value);
      return;
    }
    case calls::Kind::kCount32:
      to->Put(size_t{BitsAt(at)});
      return;
    default:
      to->Put(size_t{*at});
  }
}

[[gnu::cold]] void PutRange(const calls::Range& range, Details* to) {
  switch (range.of) {
    case calls::Range::kAny:
      return;
    case calls::Range::kUpTo: {
      constexpr uint32_t kLargest = 0x7F7FFFFF;
      uint32_t most;
      std::memcpy(&most, &range.most, sizeof(most));
      if (most < kLargest) {
        to->Put("0 to ").Put(range.most);
      } else {
        to->Put(most == kLargest ? "a finite number from 0 on"
                                 : "a number from 0 on");
      }
      return;
    }
    case calls::Range::kFinite:
      to->Put("a finite number");
      return;
    case calls::Range::kFiniteNotZero:
      to->Put("a finite number that is not 0");
      return;
    case calls::Range::kPositive:
      to->Put("a finite number from 1.17549e-38 on");
      return;
    case calls::Range::kSet:
      PutSet(range.set, to);
      return;
    case calls::Range::kFrom1:
      if (range.most_count == SIZE_MAX) {
        to->Put("at least 1");
      } else {
        to->Put("1 to ").Put(range.most_count);
      }
      return;
  }
}

// True if `text` has `word` as a whole word.
[[gnu::cold]] bool HasWord(std::string_view text, std::string_view word) {
  const auto is_in_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_in_word(text[at - 1])) &&
        (end == text.size() || !is_in_word(text[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

Status RefuseView(const WalkedCall& call, size_t fault, const char* message) {
  const size_t view = fault / calls::kNumFaults;
  size_t at = 0;
  for (size_t i = 0; i < call.num_arguments; ++i) {
    const WalkedArgument& a = call.arguments[i];
    if (IsView(a.row->field.kind) && a.first_view <= view) at = i;
  }
  const WalkedArgument& a = call.arguments[at];
  const size_t part = view - a.first_view;
  const ConstAnyMatrix& m = part == 0   ? a.view
                            : part == 1 ? a.view.scales
                                        : a.view.sums;
  const bool is_span = IsSpan(a.row->field.kind);
  Details details;
  const auto put_got = [&] {
    details.Put("got ");
    if (is_span) {
      details.Put(m.cols);
    } else {
      details.PutShape(m.rows, m.cols);
    }
  };
  switch (fault % calls::kNumFaults) {
    case Fault::kIsMissing:
      if (part != 0) {
        PutWantedScales(a.view, &details);
      } else if (a.shape != nullptr && a.shape->alternatives != 0) {
        PutWantedShape(call, at, &details);
      }
      break;
    case Fault::kHasType: {
      const char* const name = calls::NameOf(m.type);
      details.Put("got ");
      if (name != nullptr) {
        details.Put(name);
      } else if (static_cast<int>(m.type) == kNoEnumerator) {
        details.Put("no type");
      } else {
        details.Put("type ").Put(static_cast<int>(m.type));
      }
      details.Put(", takes ")
          .Put(part == 1   ? "f32, or e8m0 with f8"
               : part == 2 ? "int32"
                           : a.row->types.words);
      break;
    }
    case Fault::kHasStride:
      put_got();
      details.Put(" of stride ").Put(m.stride).Put(", needs at least ");
      details.Put(m.cols);
      break;
    case Fault::kIsNull:
    case Fault::kIsOfAnotherType:
      put_got();
      break;
    case Fault::kIsTooLarge:
      put_got();
      if (!is_span) details.Put(" of stride ").Put(m.stride);
      break;
    case Fault::kCutsBlocks:
      put_got();
      details.Put(" of stride ").Put(m.stride).Put(", needs multiples of ");
      details.Put(BlockOf(m.type));
      break;
    case Fault::kHasTooManyCols:
      details.Put("got ").Put(a.view.cols).Put(" columns, needs at most ");
      details.Put(size_t{1} << 24);
      break;
    default:
      put_got();
      details.Put(", ");
      if (part == 0) {
        PutWantedShape(call, at, &details);
      } else if (part == 1) {
        PutWantedScales(a.view, &details);
      } else {
        details.Put("needs ").PutShape(a.view.rows, 1);
      }
  }
  return Refuse(StatusCode::kInvalidArgument, message, details);
}

Status RefuseOption(const calls::Option& option, const void* options,
                    const char* message) {
  Details details;
  const unsigned char* const at = At(options, option.field.offset);
  details.Put("got ");
  if (calls::SizeOf(option.field.kind) == 1 && *at == kNoEnumerator) {
    details.Put("no enumerator");
  } else {
    PutValue(at, option.field.kind, &details);
  }
  details.Put(", needs ");
  PutRange(option.range, &details);
  return Refuse(StatusCode::kInvalidArgument, message, details);
}

Status RefuseByRule(const WalkedCall& call, const char* words,
                    const char* message) {
  constexpr std::string_view kOptions = "options: ";
  std::string_view text = words;
  const bool is_of_options = text.substr(0, kOptions.size()) == kOptions;
  if (is_of_options) text.remove_prefix(kOptions.size());
  const size_t colon = text.find(": ");
  const std::string_view name = text.substr(0, colon);
  if (colon != text.npos) text.remove_prefix(colon + 2);
  const bool is_of_type =
      text.find("has to be ") != text.npos || text.find("format") != text.npos;
  Details details;
  const char* before = "got ";
  const auto put_value = [&](const calls::Option& option, bool is_named) {
    switch (option.field.kind) {
      case calls::Kind::kNumber:
      case calls::Kind::kCount:
      case calls::Kind::kCount32:
        break;
      default:
        return;
    }
    details.Put(before);
    if (!is_named) details.Put(option.field.name).Put(" ");
    PutValue(At(call.values_of_options, option.field.offset), option.field.kind,
             &details);
    before = ", ";
  };
  for (size_t i = 0; i < call.num_arguments && !is_of_options; ++i) {
    const WalkedArgument& a = call.arguments[i];
    const calls::Kind kind = a.row->field.kind;
    if (name != a.row->field.name || !a.is_given) continue;
    details.Put(before);
    if (kind == calls::Kind::kCount) {
      details.Put(a.view.rows);
    } else if (IsSpan(kind)) {
      details.Put(a.view.cols);
    } else {
      details.PutShape(a.view.rows, a.view.cols);
      const char* const type = calls::NameOf(a.view.type);
      if (is_of_type && type != nullptr) details.Put(" of ").Put(type);
    }
    before = ", ";
  }
  for (size_t i = 0; i < call.num_options && is_of_options; ++i) {
    if (name == call.options[i].field.name) put_value(call.options[i], true);
  }
  for (size_t i = 0; i < call.num_options; ++i) {
    if (HasWord(text, call.options[i].field.name)) {
      put_value(call.options[i], false);
    }
  }
  for (size_t i = 0; i < call.num_sizes; ++i) {
    // Shows sizes that the text names. Also shows every size that is not 0 and
    // has a name of one word.
    const std::string_view size = call.names_of_sizes[i];
    if (call.sizes[i] == SIZE_MAX) continue;  // overflows, or is unknown
    const bool is_of_call = call.sizes[i] != 0 && size.find(' ') == size.npos;
    if (!is_of_call && !HasWord(text, size)) continue;
    details.Put(before).Put(call.names_of_sizes[i]).Put(" ");
    details.Put(call.sizes[i]);
    before = ", ";
  }
  return Refuse(StatusCode::kInvalidArgument, message, details);
}

size_t FindOverlap(const WalkedCall& call) {
  constexpr size_t kMaxViews = 48;
  View views[kMaxViews];
  size_t size = 0;
  for (size_t i = 0; i < call.num_arguments; ++i) {
    const WalkedArgument& a = call.arguments[i];
    if (!IsView(a.row->field.kind)) continue;
    const bool is_written =
        i >= call.num_inputs || (a.row->flags & calls::kScratch) != 0;
    const auto add = [&](const ConstAnyMatrix& m, bool is_whole) {
      views[size++] = {m, i, is_written, is_whole};
    };
    add(a.view, true);
    if (!IsRows(a.row->field.kind)) continue;
    add(a.view.scales, false);
    add(a.view.sums, false);
  }
  const size_t first_pair = call.num_views * calls::kNumFaults;
  // Pairs of outputs come first: if an input lies in an output that overlaps
  // another output, the overlap of the outputs is the cause.
  for (size_t i = 0; i < size; ++i) {
    for (size_t at = 0; at < 2 * size; ++at) {
      const size_t j = at % size;
      const View &w = views[i], &o = views[j];
      if (i == j || !w.is_written || o.is_written != (at < size)) continue;
      if (o.is_written) {
        const bool is_input = w.argument < call.num_inputs;
        const bool is_named =
            is_input != (o.argument < call.num_inputs) ? !is_input : i > j;
        if (!is_named) continue;
      }
      if (!MayOverlap(w.m, o.m)) continue;
      const size_t number = first_pair + i * call.num_views;
      const WalkedArgument& other = call.arguments[o.argument];
      if (w.is_whole && o.is_whole &&
          (other.may_be_in_place >> w.argument & 1) != 0) {
        if ((other.is_in_place >> w.argument & 1) != 0) continue;
        return number + call.num_views * call.num_views + j;
      }
      return number + j;
    }
  }
  return kNoFault;
}

}  // namespace switchyard::internal
