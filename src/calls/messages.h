// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads a table of call.h at compile time: makes one list of its arguments,
// turns its shapes into numbers, and makes the text of every message of its
// checks. All texts must exist before an error, because a Status keeps a
// pointer to a literal. They take about 2 KB a call.

#ifndef SWITCHYARD_SRC_CALLS_MESSAGES_H_
#define SWITCHYARD_SRC_CALLS_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "src/calls/call.h"

namespace switchyard::calls {

// A call's arguments in one list: inputs, then outputs.
template <class C>
inline constexpr size_t kNumInputs = std::size(C::kInputs);
template <class C>
inline constexpr size_t kNumArguments = kNumInputs<C> + std::size(C::kOutputs);
template <class C>
constexpr const Argument& ArgumentAt(size_t index) {
  return index < kNumInputs<C> ? C::kInputs[index]
                               : C::kOutputs[index - kNumInputs<C>];
}
template <class C>
constexpr bool IsWritten(size_t index) {
  return index >= kNumInputs<C> || (ArgumentAt<C>(index).flags & kScratch) != 0;
}

// A view of an argument. Rows with scales and sums count as three views.
struct ViewOf {
  uint8_t argument;
  uint8_t part;  // 0: the argument itself, 1: its scales, 2: its sums
};
template <class C>
constexpr size_t CountViews() {
  size_t views = 0;
  for (size_t i = 0; i < kNumArguments<C>; ++i) {
    const Kind kind = ArgumentAt<C>(i).field.kind;
    views += IsRows(kind) ? 3 : IsView(kind) ? 1 : 0;
  }
  return views;
}
template <class C>
constexpr auto MakeViews() {
  std::array<ViewOf, CountViews<C>()> views = {};
  size_t size = 0;
  for (size_t i = 0; i < kNumArguments<C>; ++i) {
    const Kind kind = ArgumentAt<C>(i).field.kind;
    const uint8_t parts = IsRows(kind) ? 3 : IsView(kind) ? 1 : 0;
    for (uint8_t part = 0; part < parts; ++part) {
      views[size++] = {static_cast<uint8_t>(i), part};
    }
  }
  return views;
}
template <class C>
inline constexpr auto kViews = MakeViews<C>();

// True if the checks look for an overlap of two views, and the message names
// the view `written`, to which the call writes. If the call writes to both
// views, the message names an output rather than scratch. Parts of one argument
// are different views.
template <class C>
constexpr bool IsPair(size_t written, size_t other) {
  if (written == other || !IsWritten<C>(kViews<C>[written].argument)) {
    return false;
  }
  const size_t other_argument = kViews<C>[other].argument;
  if (!IsWritten<C>(other_argument)) return true;
  const bool is_input = kViews<C>[written].argument < kNumInputs<C>;
  if (is_input != (other_argument < kNumInputs<C>)) return !is_input;
  return written > other;
}

// A number, or one of the call's sizes.
struct Term {
  int8_t size = -1;
  uint8_t number = 0;
};
// A size in a shape: one term, such as "tokens" or "4", or two terms with an
// operator, such as "tokens * top_k". For one term, `op` is 0.
struct SizeWords {
  Term first, second;
  char op = 0;
};
struct ShapeWords {
  int alternatives = 0;  // 0: the argument may have any shape
  bool is_least = false;
  SizeWords rows[2], cols[2];  // a span uses only cols
};

template <class C>
constexpr bool FindSize(std::string_view words, Term* term) {
  for (size_t i = 0; i < std::size(C::kSizes); ++i) {
    if (words == C::kSizes[i].name) {
      term->size = static_cast<int8_t>(i);
      return true;
    }
  }
  return false;
}
template <class C>
constexpr Term ParseTerm(std::string_view words) {
  Term term;
  if (FindSize<C>(words, &term)) return term;
  for (const char c : words) {
    if (c < '0' || c > '9') throw "a size that the call does not have";
    term.number = static_cast<uint8_t>(10 * term.number + (c - '0'));
  }
  return term;
}
template <class C>
constexpr SizeWords ParseSize(std::string_view words) {
  SizeWords size;
  if (FindSize<C>(words, &size.first)) return size;
  const size_t space = words.find(' ');
  size.first = ParseTerm<C>(words.substr(0, space));
  if (space != words.npos) {
    size.op = words[space + 1];
    size.second = ParseTerm<C>(words.substr(space + 3));
  }
  return size;
}
template <class C>
constexpr ShapeWords ParseShape(const char* text, bool is_span) {
  ShapeWords shape;
  if (text == nullptr) return shape;
  std::string_view words = text;
  if (is_span) {
    shape.is_least = words.substr(0, 3) == ">= ";
    shape.alternatives = 1;
    shape.cols[0] = ParseSize<C>(words.substr(shape.is_least ? 3 : 0));
    return shape;
  }
  for (; shape.alternatives < 2 && !words.empty(); ++shape.alternatives) {
    const size_t comma = words.find(','), end = words.find(']');
    shape.rows[shape.alternatives] = ParseSize<C>(words.substr(1, comma - 1));
    shape.cols[shape.alternatives] =
        ParseSize<C>(words.substr(comma + 2, end - comma - 2));
    words.remove_prefix(end + 1);
    if (!words.empty()) words.remove_prefix(4);  // " or "
  }
  return shape;
}
template <class C>
constexpr auto ParseShapes() {
  std::array<std::array<ShapeWords, kMaxShapes>, kNumArguments<C>> shapes = {};
  for (size_t i = 0; i < kNumArguments<C>; ++i) {
    const Argument& a = ArgumentAt<C>(i);
    for (size_t j = 0; j < kMaxShapes; ++j) {
      shapes[i][j] = ParseShape<C>(a.shapes[j].words, IsSpan(a.field.kind));
    }
  }
  return shapes;
}
template <class C>
inline constexpr auto kShapes = ParseShapes<C>();

// The faults that a single view may have.
enum Fault : uint8_t {
  kIsMissing,
  kHasType,
  kIsNull,
  kHasStride,
  kIsTooLarge,
  kCutsBlocks,
  kIsOfAnotherType,  // scales or sums, although the rows' type has none
  kHasShape,         // the first of kMaxShapes faults, one for each shape
  kHasTooManyCols = kHasShape + kMaxShapes,
  kNumFaults,
};
template <class C>
constexpr const char* FaultWords(size_t view, size_t fault) {
  const Argument& a = ArgumentAt<C>(kViews<C>[view].argument);
  const bool is_span = IsSpan(a.field.kind);
  const int part = kViews<C>[view].part;
  switch (fault) {
    case kIsMissing:
      return part == 2 ? nullptr : "not given";
    case kHasType:
      if (is_span) return nullptr;
      return part == 1   ? "f32, or e8m0 with f8"
             : part == 2 ? "int32"
                         : a.types.words;
    case kIsNull:
      return "data is null";
    case kHasStride:
      return is_span ? nullptr : "stride is smaller than cols";
    case kIsTooLarge:
      return "size overflows the address space";
    case kCutsBlocks:
      return IsRows(a.field.kind) && part == 0
                 ? "cols or stride is not a multiple of its block"
                 : nullptr;
    case kIsOfAnotherType:
      return part == 0 ? nullptr : "given, but the rows' type has none";
    case kHasTooManyCols:
      return part == 2 ? "of more than 2^24 columns" : nullptr;
    default:
      const size_t shape = fault - kHasShape;
      if (part == 0) return a.shapes[shape].words;
      if (shape != 0) return nullptr;
      return part == 1 ? "is not [rows, 1] or one for 32, 64 or 128 columns "
                         "(e8m0: 32)"
                       : "is not [rows, 1]";
  }
}

// Each message has a number. A pair of views has two messages: for views that
// must not overlap, and for views that may be the same view.
template <class C>
inline constexpr size_t kFirstPair = kViews<C>.size() * kNumFaults;
template <class C>
inline constexpr size_t kFirstInPlace = kFirstPair<C> +
                                        kViews<C>.size() * kViews<C>.size();
template <class C>
inline constexpr size_t kFirstOption = kFirstInPlace<C> +
                                       kViews<C>.size() * kViews<C>.size();
template <class C>
inline constexpr size_t kFirstRule = kFirstOption<C> + std::size(C::kOptions);

// All texts, one after the other, each with its number in two bytes before it.
// If kSize is 0, only counts the bytes.
template <size_t kSize>
struct Texts {
  std::array<char, kSize> text = {};
  size_t size = 0;

  constexpr void Put(char c) {
    if constexpr (kSize != 0) text[size] = c;
    ++size;
  }
  constexpr void Put(std::string_view words) {
    for (const char c : words) Put(c);
  }
  constexpr void Begin(size_t number, const char* function) {
    Put(static_cast<char>(number & 0x7F));
    Put(static_cast<char>(number >> 7));
    Put(function);
    Put(": ");
  }
  constexpr void End() { Put('\0'); }
};

template <class C, class Texts>
constexpr void PutName(size_t view, Texts* texts) {
  texts->Put(ArgumentAt<C>(kViews<C>[view].argument).field.name);
  const int part = kViews<C>[view].part;
  texts->Put(part == 1 ? ".scales" : part == 2 ? ".sums" : "");
}
template <class C, class Texts>
constexpr void PutTerm(const Term& term, Texts* texts) {
  if (term.size >= 0) {
    texts->Put(C::kSizes[static_cast<size_t>(term.size)].name);
  } else {
    texts->Put(static_cast<char>('0' + term.number));
  }
}
template <class C, class Texts>
constexpr void PutSize(const SizeWords& size, Texts* texts) {
  PutTerm<C>(size.first, texts);
  if (size.op == 0) return;
  texts->Put(size.op == '*' ? " * " : " + ");
  PutTerm<C>(size.second, texts);
}
template <class C, class Texts>
constexpr void PutShape(size_t argument, size_t at, Texts* texts) {
  const Argument& a = ArgumentAt<C>(argument);
  const ShapeWords& shape = kShapes<C>[argument][at];
  if (a.shapes[at].says != nullptr) {
    texts->Put(a.shapes[at].says);
  } else if (IsSpan(a.field.kind)) {
    texts->Put(shape.is_least ? "fewer than " : "size is not ");
    PutSize<C>(shape.cols[0], texts);
    if (shape.is_least) texts->Put(" elements");
  } else {
    texts->Put("is not ");
    for (int i = 0; i < shape.alternatives; ++i) {
      if (i != 0) texts->Put(" or ");
      texts->Put("[");
      PutSize<C>(shape.rows[i], texts);
      texts->Put(", ");
      PutSize<C>(shape.cols[i], texts);
      texts->Put("]");
    }
  }
}
// True if `name` is in the list `names`.
constexpr bool Lists(std::string_view names, std::string_view name) {
  for (size_t at = 0; (at = names.find(name, at)) != names.npos; ++at) {
    const size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == ' ') &&
        (end == names.size() || names[end] == ' ')) {
      return true;
    }
  }
  return false;
}
template <class C>
constexpr bool MayBeInPlace(size_t input, size_t output) {
  return input < kNumInputs<C> && output >= kNumInputs<C> &&
         Lists(ArgumentAt<C>(input).in_place, ArgumentAt<C>(output).field.name);
}

template <class C, class Texts>
constexpr void PutPairs(size_t view, Texts* texts) {
  for (size_t other = 0; other < kViews<C>.size(); ++other) {
    if (!IsPair<C>(view, other)) continue;
    const size_t pair = view * kViews<C>.size() + other;
    const bool in_place =
        MayBeInPlace<C>(kViews<C>[other].argument, kViews<C>[view].argument) &&
        kViews<C>[view].part == 0 && kViews<C>[other].part == 0;
    for (const bool is_in_place : {false, true}) {
      if (is_in_place && !in_place) continue;
      texts->Begin((is_in_place ? kFirstInPlace<C> : kFirstPair<C>)+pair,
                   C::kName);
      PutName<C>(view, texts);
      texts->Put(": overlaps ");
      PutName<C>(other, texts);
      if (is_in_place) texts->Put(" without being the same view");
      texts->End();
    }
  }
}
template <class C, class Texts>
constexpr void PutFaults(size_t view, Texts* texts) {
  const ViewOf& of = kViews<C>[view];
  for (size_t fault = 0; fault < kNumFaults; ++fault) {
    const char* const words = FaultWords<C>(view, fault);
    if (words == nullptr) continue;
    texts->Begin(view * kNumFaults + fault, C::kName);
    PutName<C>(view, texts);
    texts->Put(": ");
    if (fault == kHasType) texts->Put("has to be ");
    if (fault >= kHasShape && fault < kHasTooManyCols && of.part == 0) {
      PutShape<C>(of.argument, fault - kHasShape, texts);
    } else {
      texts->Put(words);
    }
    texts->End();
  }
}
template <class C, class Texts>
constexpr void PutTexts(Texts* texts) {
  for (size_t view = 0; view < kViews<C>.size(); ++view) {
    PutFaults<C>(view, texts);
    PutPairs<C>(view, texts);
  }
  for (size_t i = 0; i < std::size(C::kOptions); ++i) {
    if (C::kOptions[i].range.of == Range::kAny) continue;
    texts->Begin(kFirstOption<C> + i, C::kName);
    texts->Put("options: ");
    texts->Put(C::kOptions[i].field.name);
    texts->Put(C::kOptions[i].range.words);
    texts->End();
  }
  for (size_t i = 0; i < std::size(C::kRules); ++i) {
    texts->Begin(kFirstRule<C> + i, C::kName);
    texts->Put(C::kRules[i].words);
    texts->End();
  }
}
template <class C>
constexpr auto MakeTexts() {
  constexpr size_t kSize = [] {
    Texts<0> counted;
    PutTexts<C>(&counted);
    return counted.size;
  }();
  Texts<kSize> texts;
  PutTexts<C>(&texts);
  return texts.text;
}
template <class C>
inline constexpr auto kTexts = MakeTexts<C>();

// Returns the message with this number, which must exist.
inline const char* FindText(const char* texts, size_t number) {
  while (static_cast<size_t>(texts[0]) +
             (static_cast<size_t>(static_cast<unsigned char>(texts[1])) << 7) !=
         number) {
    texts += 2;
    while (*texts++ != '\0') {
    }
  }
  return texts + 2;
}

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_MESSAGES_H_
