// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checks a call against its table in src/calls. This takes O(1), and comes
// before anything is written. A function of the API calls
//
//   const Checked<calls::QuantizeCall> call(inputs, outputs, options);
//   if (!call.status.ok()) return call.status;
//
// and finds the call's sizes in call.sizes.
//
// On the fast path, the compiler turns the table into a few comparisons, which
// accept almost every valid call with ordinary views. Any other call, valid or
// not, takes the slow path: check.cc walks over the table once, and finds the
// message, "Function: argument: problem".

#ifndef SWITCHYARD_SRC_CHECK_H_
#define SWITCHYARD_SRC_CHECK_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "src/base/details.h"
#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "src/calls/messages.h"
#include "src/simd/equal_where.h"
#include "switchyard/isa.h"
#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard {

namespace simd {
// True after the first use has chosen an ISA, unless the environment asked for
// an ISA that cannot run. See src/simd/targets.cc.
extern std::atomic<bool> g_isa_as_asked;
}  // namespace simd

namespace internal {

inline Status Invalid(const char* message) {
  return Status(StatusCode::kInvalidArgument, message);
}
// Returns the error for data that the options do not allow.
[[gnu::cold]] inline Status DoesNotFit(const char* message,
                                       const Details& details) {
  return Refuse(StatusCode::kFailedPrecondition, message, details);
}
// Returns the error for pairs or rows that the options do not allow. There are
// `of` pairs or rows, and `got` of them are not allowed.
[[gnu::cold]] inline Status DoesNotFit(const char* message, size_t got,
                                       size_t of) {
  return DoesNotFit(message,
                    Details().Put("got ").Put(got).Put(" of ").Put(of));
}
// Returns the error for list[at], which is not from `least` to `most`.
[[gnu::cold]] inline Status RefuseElement(const char* message,
                                          Span<const int32_t> list, size_t at,
                                          int least, size_t most) {
  Details details;
  details.Put("got ").Put(int{list.data[at]}).Put(" at ").Put(at);
  return DoesNotFit(message,
                    details.Put(", needs ").Put(least).Put(" to ").Put(most));
}

// ---- The slow path, in check.cc.

// An argument of a call, of any type.
struct WalkedArgument {
  ConstAnyRows view;               // a span is a matrix of one row
  const calls::Argument* row;      // the argument's row of the table
  const calls::ShapeWords* shape;  // null if any shape is valid in this call
  uint16_t shape_number;
  uint16_t first_view;
  bool is_given;
  bool is_needed;
  // Bit sets of outputs. may_be_in_place: outputs that may share this input's
  // memory in this call. is_in_place: outputs that share it in the valid way.
  uint32_t may_be_in_place;
  uint32_t is_in_place;
};
struct WalkedCall {
  const WalkedArgument* arguments;
  size_t num_arguments;
  size_t num_inputs;
  size_t num_views;
  const size_t* sizes;
  size_t num_sizes;
  uint32_t sizes_of_options;  // bit i is set if options give size i
  // Names and values that a message may show.
  const char* const* names_of_sizes;
  const calls::Option* options;
  size_t num_options;
  const void* values_of_options;
};
// The functions below return the number of a message, or kNoFault.
inline constexpr size_t kNoFault = SIZE_MAX;
size_t FindFaultOfViews(const WalkedCall& call);
size_t FindFaultOfShapes(const WalkedCall& call);
size_t FindOverlap(const WalkedCall& call);

// Return an error with the message and its numbers. RefuseView() shows a view
// or its shape, RefuseOption() an option, and RefuseByRule() all arguments,
// options and sizes that the words of a rule name.
[[gnu::cold]] Status RefuseView(const WalkedCall& call, size_t fault,
                                const char* message);
[[gnu::cold]] Status RefuseOption(const calls::Option& option,
                                  const void* options, const char* message);
[[gnu::cold]] Status RefuseByRule(const WalkedCall& call, const char* words,
                                  const char* message);

static_assert(sizeof(Type) == 1, "SmallValue() reads a byte");
// Returns an enumeration, a flag or a count if it is below 32, otherwise 32.
inline uint32_t SmallValue(const unsigned char* at, calls::Kind kind) {
  if (kind == calls::Kind::kCount) {
    size_t value;
    std::memcpy(&value, at, sizeof(value));
    return value < 32 ? static_cast<uint32_t>(value) : 32;
  }
  return *at < 32 ? *at : 32;
}
// Returns the bits of a float. Checks compare bits, because comparing a NaN
// would trap if the caller has unmasked floating-point exceptions.
inline uint32_t BitsAt(const unsigned char* at) {
  uint32_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}
// True if an option's value is in `range`. `of` is range.of, which callers pass
// as a constant if they can, to avoid the switch.
[[gnu::always_inline]] inline bool IsInRange(calls::Range::Of of,
                                             const calls::Range& range,
                                             const unsigned char* at,
                                             calls::Kind kind) {
  constexpr uint32_t kInfinity = 0x7F800000, kSmallestNormal = 0x00800000,
                     kMinusZero = 0x80000000;
  switch (of) {
    case calls::Range::kAny:
      return true;
    case calls::Range::kUpTo: {
      uint32_t most;
      std::memcpy(&most, &range.most, sizeof(most));
      return BitsAt(at) <= most || BitsAt(at) == kMinusZero;
    }
    case calls::Range::kFinite:
      return (~BitsAt(at) & kInfinity) != 0;
    case calls::Range::kFiniteNotZero:
      return (~BitsAt(at) & kInfinity) != 0 && (BitsAt(at) & ~kMinusZero) != 0;
    case calls::Range::kPositive:
      return BitsAt(at) - kSmallestNormal < kInfinity - kSmallestNormal;
    case calls::Range::kSet:
      return (uint64_t{range.set} >> SmallValue(at, kind) & 1) != 0;
    case calls::Range::kFrom1: {
      if (kind == calls::Kind::kCount32) return BitsAt(at) != 0;
      size_t count;
      std::memcpy(&count, at, sizeof(count));
      return count - 1 < range.most_count;
    }
  }
  return false;
}
// Returns calls::kIsNull, kHasStride or kIsTooLarge if the view has no memory
// for its elements, and kNumFaults if it has.
size_t FindFaultOfMemory(const ConstAnyMatrix& m);
// True if a view's codes or blocks, its scales and its sums fit each other.
bool AreSound(const ConstAnyRows& rows);
bool AreSound(const AnyRows& rows);
// True for codes with one f32 scale per row. AreSound() is true for all such
// rows.
template <class V>
bool HasOrdinaryScales(const BasicAnyRows<V>& rows) {
  return IsCode(rows.type) && IsPlain(rows.scales) &&
         rows.scales.type == Type::kF32 && rows.scales.rows == rows.rows &&
         rows.scales.cols == 1 && !Given(rows.sums);
}

// ---- The fast path, for which the compiler evaluates the table.

inline const unsigned char* At(const void* data, size_t offset) {
  return static_cast<const unsigned char*>(data) + offset;
}

template <class C, size_t kI>
const auto& Get(const typename C::Args& c) {
  constexpr const calls::Field& field = calls::ArgumentAt<C>(kI).field;
  const void* const from = kI < calls::kNumInputs<C>
                               ? static_cast<const void*>(&c.in)
                               : static_cast<const void*>(&c.out);
  return *reinterpret_cast<const typename calls::TypesOf<field.kind>::Cpp*>(
      At(from, field.offset));
}

template <class Args>
[[gnu::always_inline]] inline bool Holds(const calls::When& when,
                                         const Args& c) {
  if (when.from == calls::When::kAlways) return true;
  const void* const from = when.from == calls::When::kInputs
                               ? static_cast<const void*>(&c.in)
                               : static_cast<const void*>(&c.options);
  const uint64_t value = SmallValue(At(from, when.offset), when.kind);
  return (when.set & (when.set - 1)) == 0
             ? value == static_cast<unsigned>(__builtin_ctz(when.set))
             : (uint64_t{when.set} >> value & 1) != 0;
}

// True if the type is in kSet. If kSet has no gaps, compares with its bounds.
template <uint16_t kSet>
constexpr bool IsOneOf(Type type) {
  constexpr unsigned kFirst = __builtin_ctz(kSet);
  const unsigned at = static_cast<unsigned>(type) - kFirst;
  constexpr unsigned kShifted = kSet >> kFirst;
  if constexpr ((kShifted & (kShifted + 1)) == 0) {
    return at < 32 - __builtin_clz(kShifted);
  } else {
    return at < 16 && (kShifted >> at & 1) != 0;
  }
}

template <class C>
[[gnu::always_inline]] inline size_t ValueOf(const calls::Term& term,
                                             const typename C::Sizes& sizes) {
  return term.size < 0
             ? term.number
             : sizes.*(C::kSizes[static_cast<size_t>(term.size)].member);
}
template <class C>
[[gnu::always_inline]] inline size_t ValueOf(const calls::SizeWords& size,
                                             const typename C::Sizes& sizes) {
  const size_t first = ValueOf<C>(size.first, sizes);
  return size.op == 0     ? first
         : size.op == '*' ? first * ValueOf<C>(size.second, sizes)
                          : first + ValueOf<C>(size.second, sizes);
}
template <class T>
[[gnu::always_inline]] inline size_t ColsOf(const Span<T>& s) {
  return s.size;
}
template <class M>
[[gnu::always_inline]] inline size_t ColsOf(const M& m) {
  return m.cols;
}

template <class C, size_t kI, size_t kShape, class M>
[[gnu::always_inline]] inline bool FitsShape(const M& m,
                                             const typename C::Sizes& sizes) {
  constexpr const calls::ShapeWords& shape = calls::kShapes<C>[kI][kShape];
  if constexpr (shape.alternatives == 0) {
    return true;
  } else if constexpr (calls::IsSpan(calls::ArgumentAt<C>(kI).field.kind)) {
    const size_t size = ValueOf<C>(shape.cols[0], sizes);
    return shape.is_least ? ColsOf(m) >= size : ColsOf(m) == size;
  } else {
    const bool fits = m.rows == ValueOf<C>(shape.rows[0], sizes) &&
                      m.cols == ValueOf<C>(shape.cols[0], sizes);
    if constexpr (shape.alternatives == 1) return fits;
    return fits || (m.rows == ValueOf<C>(shape.rows[1], sizes) &&
                    m.cols == ValueOf<C>(shape.cols[1], sizes));
  }
}
template <class C, size_t kI, class M>
[[gnu::always_inline]] inline bool FitsItsShape(const M& m,
                                                const typename C::Args& c) {
  constexpr const calls::Argument& a = calls::ArgumentAt<C>(kI);
  if (Holds(a.shapes[0].when, c)) return FitsShape<C, kI, 0>(m, c.sizes);
  if (Holds(a.shapes[1].when, c)) return FitsShape<C, kI, 1>(m, c.sizes);
  if (Holds(a.shapes[2].when, c)) return FitsShape<C, kI, 2>(m, c.sizes);
  return true;
}

// Checks one given argument alone: its memory, type and shape.
template <class C, size_t kI>
[[gnu::always_inline]] inline bool IsFine(const typename C::Args& c) {
  constexpr const calls::Argument& a = calls::ArgumentAt<C>(kI);
  const auto& m = Get<C, kI>(c);
  if (!IsPlain(m)) return false;
  if constexpr (calls::IsRows(a.field.kind)) {
    if (IsFloat(m.type) ? HasParts(m) : !HasOrdinaryScales(m)) {
      if (!AreSound(m)) return false;
    }
  } else if constexpr (!calls::IsSpan(a.field.kind)) {
    if (!IsOneOf<a.types.set>(m.type)) return false;
  }
  return FitsItsShape<C, kI>(m, c);
}

template <class C, size_t... kI>
[[gnu::always_inline]] inline bool IsGroupGiven(const typename C::Args& c,
                                                uint8_t group,
                                                std::index_sequence<kI...>) {
  const auto is_given = [&](auto at) __attribute__((always_inline)) {
    constexpr const calls::Argument& a = calls::ArgumentAt<C>(at);
    if constexpr (calls::IsView(a.field.kind)) {
      return a.group == group && Given(Get<C, at>(c));
    } else {
      return false;
    }
  };
  return (is_given(std::integral_constant<size_t, kI>()) || ...);
}

// IsFine() for an argument that may be left out.
template <class C, size_t kI>
[[gnu::always_inline]] inline bool IsFineIfGiven(const typename C::Args& c) {
  constexpr const calls::Argument& a = calls::ArgumentAt<C>(kI);
  if constexpr (!calls::IsView(a.field.kind)) {
    return true;
  } else if constexpr ((a.flags & calls::kOptional) != 0) {
    return !Given(Get<C, kI>(c)) || IsFine<C, kI>(c);
  } else {
    if constexpr (a.when.from != calls::When::kAlways) {
      if (!Holds(a.when, c)) return !Given(Get<C, kI>(c));
    }
    if constexpr (a.group != 0) {
      constexpr auto kAll = std::make_index_sequence<calls::kNumArguments<C>>();
      if (!IsGroupGiven<C>(c, a.group, kAll)) return true;
    }
    return IsFine<C, kI>(c);
  }
}

constexpr bool IsRare(const calls::Argument& a) {
  return (a.flags & calls::kRareGroup) != 0;
}
// The sets of views, from frequent to rare: ordinary arguments, their scales,
// rare arguments and their scales, and the sums of any argument. A pair of
// views belongs to the set of its rarer view.
enum ViewSet { kOrdinaryViews, kScales, kRareViews, kSums };
template <class C>
constexpr ViewSet SetOf(size_t view) {
  const calls::ViewOf& of = calls::kViews<C>[view];
  return of.part == 2                                ? kSums
         : IsRare(calls::ArgumentAt<C>(of.argument)) ? kRareViews
         : of.part == 1                              ? kScales
                                                     : kOrdinaryViews;
}

constexpr std::array<uint8_t, 16> MakeElementBytes() {
  std::array<uint8_t, 16> bytes = {};
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Type type = static_cast<Type>(i);
    if (BlockBits(type) == 0) bytes[i] = static_cast<uint8_t>(SizeOf(type));
  }
  return bytes;
}
inline constexpr std::array<uint8_t, 16> kElementBytes = MakeElementBytes();

// Returns the interval of bytes of a matrix whose type has no blocks. If the
// matrix has no rows, the interval may end before it begins. If such an
// interval looks like an overlap, the slow path finds that there is no overlap.
template <bool kIsNeeded, class V>
[[gnu::always_inline]] inline Interval IntervalOf(const BasicAnyMatrix<V>& m) {
  Interval interval(Span<const char>(static_cast<const char*>(m.data), 0));
  if (!kIsNeeded && m.data == nullptr) return interval;
  interval.end += (m.cols + (m.rows - 1) * m.stride) *
                  kElementBytes[static_cast<unsigned char>(m.type) & 15];
  return interval;
}
template <class C, size_t kView>
[[gnu::always_inline]] inline Interval IntervalOf(const typename C::Args& c) {
  constexpr calls::ViewOf of = calls::kViews<C>[kView];
  constexpr calls::Kind kKind = calls::ArgumentAt<C>(of.argument).field.kind;
  const auto& m = Get<C, of.argument>(c);
  if constexpr (of.part == 1) {
    return IntervalOf<false>(m.scales);
  } else if constexpr (of.part == 2) {
    return IntervalOf<false>(m.sums);
  } else if constexpr (calls::IsSpan(kKind) || calls::IsRows(kKind)) {
    return Interval(m);
  } else {
    constexpr const calls::Argument& a = calls::ArgumentAt<C>(of.argument);
    constexpr bool kIsNeeded = (a.flags & calls::kOptional) == 0 &&
                               a.group == 0 &&
                               a.when.from == calls::When::kAlways;
    return IntervalOf<kIsNeeded>(m);
  }
}

// True if `kOut` is the first given output in the input's list of outputs that
// may share its memory. Later outputs of the list may not share it.
template <class C, size_t kOut, size_t kIn, size_t... kI>
[[gnu::always_inline]] inline bool IsFirstGiven(const typename C::Args& c,
                                                std::index_sequence<kI...>) {
  const auto is_given = [&](auto at) __attribute__((always_inline)) {
    if constexpr (at < kOut && calls::MayBeInPlace<C>(kIn, at)) {
      return Given(Get<C, at>(c));
    } else {
      return false;
    }
  };
  return !(is_given(std::integral_constant<size_t, kI>()) || ...);
}
template <class C, size_t kOut, size_t kIn>
[[gnu::always_inline]] inline bool MayBeInPlaceHere(const typename C::Args& c) {
  return C::MayBeInPlace(c) &&
         IsFirstGiven<C, kOut, kIn>(
             c, std::make_index_sequence<calls::kNumArguments<C>>());
}

template <class C, size_t kWritten, size_t kOther>
[[gnu::always_inline]] inline bool IsPairFine(const Interval* at,
                                              const typename C::Args& c) {
  constexpr calls::ViewOf w = calls::kViews<C>[kWritten],
                          o = calls::kViews<C>[kOther];
  if constexpr (!calls::IsPair<C>(kWritten, kOther)) {
    return true;
  } else {
    const bool is_apart = (at[kWritten].end <= at[kOther].begin) |
                          (at[kOther].end <= at[kWritten].begin);
    if constexpr (w.part == 0 && o.part == 0 &&
                  calls::MayBeInPlace<C>(o.argument, w.argument)) {
      return is_apart ||
             (MayBeInPlaceHere<C, w.argument, o.argument>(c) &&
              C::IsInPlace(Get<C, w.argument>(c), Get<C, o.argument>(c), c));
    } else {
      return is_apart;
    }
  }
}
template <class C, ViewSet kSet, size_t kWritten, size_t... kOther>
[[gnu::always_inline]] inline bool IsApartFromAll(
    const Interval* at, const typename C::Args& c,
    std::index_sequence<kOther...>) {
  const auto is_fine = [&](auto other) __attribute__((always_inline)) {
    constexpr ViewSet kOfWritten = SetOf<C>(kWritten),
                      kOfOther = SetOf<C>(other);
    if constexpr ((kOfWritten > kOfOther ? kOfWritten : kOfOther) == kSet) {
      return IsPairFine<C, kWritten, other>(at, c);
    } else {
      return true;
    }
  };
  return (is_fine(std::integral_constant<size_t, kOther>()) && ...);
}
// True if no view of `kSet` overlaps a view of `kSet` or of an earlier set.
template <class C, ViewSet kSet, size_t... kV>
[[gnu::always_inline]] inline bool AreApart(const typename C::Args& c,
                                            std::index_sequence<kV...> views) {
  const Interval at[] = {IntervalOf<C, kV>(c)...};
  return (IsApartFromAll<C, kSet, kV>(at, c, views) && ...);
}
template <class C, ViewSet kSet>
[[gnu::always_inline]] inline bool AreApart(const typename C::Args& c) {
  return AreApart<C, kSet>(c,
                           std::make_index_sequence<calls::kViews<C>.size()>());
}
// Returns a number that is not 0 if an argument is given. Computes the number
// without a branch.
template <class M>
[[gnu::always_inline]] inline uint64_t GivenBits(const M& m) {
  return reinterpret_cast<uintptr_t>(m.data) | m.cols | m.rows >> 1;
}
template <class T>
[[gnu::always_inline]] inline uint64_t GivenBits(const Span<T>& s) {
  return reinterpret_cast<uintptr_t>(s.data) | s.size;
}
[[gnu::always_inline]] inline uint64_t GivenBits(Report* const& report) {
  return reinterpret_cast<uintptr_t>(report);
}
[[gnu::always_inline]] inline uint64_t GivenBits(const size_t&) { return 0; }

// A mask of the bytes of options. It is 0xFF for the options that keep their
// defaults in ordinary calls.
template <class C>
struct RareOptions {
  static constexpr size_t kBytes = sizeof(typename C::Options);
  alignas(16) unsigned char mask[(kBytes + 15) / 16 * 16] = {};
  constexpr RareOptions() {
    for (const calls::Option& option : C::kOptions) {
      if (option.is_ordinary) continue;
      for (size_t i = 0; i < calls::SizeOf(option.field.kind); ++i) {
        mask[option.field.offset + i] = 0xFF;
      }
    }
  }
};
template <class C>
inline constexpr RareOptions<C> kRareOptions;
template <class C>
inline constexpr typename C::Options kDefaultOptions;

// True if all options under the mask have their defaults. Compares floats as
// bits, for the reason given at BitsAt().
template <class C>
[[gnu::always_inline]] inline bool AreRareOptionsDefaults(
    const typename C::Options& options) {
  return simd::AreEqualWhere<sizeof(options)>(kRareOptions<C>.mask, &options,
                                              &kDefaultOptions<C>);
}

template <class C>
class Checked {
 public:
  using Args = typename C::Args;

  [[gnu::always_inline]] Checked(const typename C::Inputs& in,
                                 const typename C::Outputs& out,
                                 const typename C::Options& options)
      : sizes(C::Measure(in, out, options)) {
    if constexpr (C::kRunsKernel) {
      if (!simd::g_isa_as_asked.load(std::memory_order_relaxed)) {
        status = EnvironmentIsa();
        if (!status.ok()) return;
      }
    }
    // `c` stays in registers, because only inlined functions get its address.
    // Functions that are not inlined measure the sizes again.
    const typename C::Sizes measured = sizes;
    const Args c = {in, out, options, measured};
    is_ordinary = !HasRareViews(c, kAll) && HasDefaults(c);
    if (AreOrdinaryViewsFine(c, kAll) && AreApart<C, kOrdinaryViews>(c) &&
        AreOptionsFine<true>(c, kAllOptions) &&
        AreRulesKept<false>(c, kAllRules) &&
        (!HasPart<1>(c, kAll) || AreApart<C, kScales>(c)) &&
        (__builtin_expect(is_ordinary & !HasPart<2>(c, kAll), 1) ||
         IsSpecialFine(in, out, options))) {
      return;
    }
    status = Explain(in, out, options);
  }

  const typename C::Sizes sizes;
  Status status;
  // True if no rare argument is given and all rare options have their defaults.
  bool is_ordinary = false;

 private:
  static constexpr auto kAll =
      std::make_index_sequence<calls::kNumArguments<C>>();
  static constexpr auto kAllOptions =
      std::make_index_sequence<std::size(C::kOptions)>();
  static constexpr auto kAllRules =
      std::make_index_sequence<std::size(C::kRules)>();

  template <size_t kI>
  [[gnu::always_inline]] static uint64_t RareBits(const Args& c) {
    if constexpr (IsRare(calls::ArgumentAt<C>(kI))) {
      return GivenBits(Get<C, kI>(c));
    } else {
      return 0;
    }
  }
  template <size_t... kI>
  [[gnu::always_inline]] static bool HasRareViews(const Args& c,
                                                  std::index_sequence<kI...>) {
    return (RareBits<kI>(c) | ...) != 0;
  }
  template <size_t... kI>
  static constexpr bool HasRareOption(std::index_sequence<kI...>) {
    return (!C::kOptions[kI].is_ordinary || ... || false);
  }
  [[gnu::always_inline]] static bool HasDefaults(const Args& c) {
    if constexpr (HasRareOption(kAllOptions)) {
      return AreRareOptionsDefaults<C>(c.options);
    } else {
      return true;
    }
  }
  template <size_t kI>
  [[gnu::always_inline]] static bool IsOrdinaryFine(const Args& c) {
    if constexpr (IsRare(calls::ArgumentAt<C>(kI))) return true;
    return IsFineIfGiven<C, kI>(c);
  }
  template <size_t... kI>
  [[gnu::always_inline]] static bool AreOrdinaryViewsFine(
      const Args& c, std::index_sequence<kI...>) {
    return (IsOrdinaryFine<kI>(c) && ...);
  }
  template <size_t... kI>
  static bool AreRareViewsFine(const Args& c, std::index_sequence<kI...>) {
    return ((!IsRare(calls::ArgumentAt<C>(kI)) || IsFineIfGiven<C, kI>(c)) &&
            ...);
  }
  template <int kPart, size_t kI>
  [[gnu::always_inline]] static uint64_t PartBits(const Args& c) {
    if constexpr (calls::IsRows(calls::ArgumentAt<C>(kI).field.kind)) {
      const auto& rows = Get<C, kI>(c);
      return GivenBits(kPart == 1 ? rows.scales : rows.sums);
    } else {
      return 0;
    }
  }
  // True if any argument has scales (kPart 1) or sums (kPart 2).
  template <int kPart, size_t... kI>
  [[gnu::always_inline]] static bool HasPart(const Args& c,
                                             std::index_sequence<kI...>) {
    return (PartBits<kPart, kI>(c) | ...) != 0;
  }

  // Checks the views, options and rules that only special calls need.
  [[gnu::noinline]] static bool IsSpecialFine(
      const typename C::Inputs& in, const typename C::Outputs& out,
      const typename C::Options& options) {
    const typename C::Sizes measured = C::Measure(in, out, options);
    const Args c = {in, out, options, measured};
    return AreRareViewsFine(c, kAll) && AreApart<C, kRareViews>(c) &&
           AreApart<C, kSums>(c) && AreOptionsFine<false>(c, kAllOptions) &&
           AreRulesKept<true>(c, kAllRules);
  }

  template <bool kOrdinary, size_t kI>
  [[gnu::always_inline]] static bool IsOptionFine(const Args& c) {
    constexpr const calls::Option& option = C::kOptions[kI];
    if constexpr (option.range.of == calls::Range::kAny ||
                  option.is_ordinary != kOrdinary) {
      return true;
    } else {
      return IsInRange(option.range.of, option.range,
                       At(&c.options, option.field.offset), option.field.kind);
    }
  }
  template <bool kOrdinary, size_t... kI>
  [[gnu::always_inline]] static bool AreOptionsFine(
      const Args& c, std::index_sequence<kI...>) {
    return (IsOptionFine<kOrdinary, kI>(c) && ... && true);
  }
  template <bool kSpecial, size_t kI>
  [[gnu::always_inline]] static bool IsRuleKept(const Args& c) {
    constexpr calls::Rule<Args> rule = C::kRules[kI];
    if constexpr (((rule.flags & calls::Rule<Args>::kSpecial) != 0) !=
                  kSpecial) {
      return true;
    } else {
      return rule.holds(c);
    }
  }
  template <bool kSpecial, size_t... kI>
  [[gnu::always_inline]] static bool AreRulesKept(const Args& c,
                                                  std::index_sequence<kI...>) {
    return (IsRuleKept<kSpecial, kI>(c) && ... && true);
  }

  static const char* Text(size_t message) {
    return calls::FindText(calls::kTexts<C>.data(), message);
  }
  template <size_t kI, size_t... kAt>
  static void PutInPlace(const Args& c, WalkedArgument* to,
                         std::index_sequence<kAt...>) {
    const auto put = [&](auto at) {
      if constexpr (calls::MayBeInPlace<C>(kI, at)) {
        if (!MayBeInPlaceHere<C, at, kI>(c)) return;
        to->may_be_in_place |= uint32_t{1} << at;
        const bool is = C::IsInPlace(Get<C, at>(c), Get<C, kI>(c), c);
        to->is_in_place |= uint32_t{is} << at;
      }
    };
    (put(std::integral_constant<size_t, kAt>()), ...);
  }
  template <size_t kI>
  static void Walk(const Args& c, uint16_t first_view, WalkedArgument* to) {
    constexpr const calls::Argument& a = calls::ArgumentAt<C>(kI);
    *to = {{}, &a, nullptr, 0, first_view, false, false, 0, 0};
    const auto& m = Get<C, kI>(c);
    const bool is_optional = (a.flags & calls::kOptional) != 0;
    if constexpr (!calls::IsView(a.field.kind) &&
                  a.field.kind != calls::Kind::kCount) {
      return;
    } else if constexpr (a.field.kind == calls::Kind::kCount) {
      to->view.rows = m;
      to->view.cols = 1;
      to->is_given = true;
    } else if constexpr (calls::IsSpan(a.field.kind)) {
      to->view = m;
      to->is_given = m.size != 0 || (!is_optional && m.data != nullptr);
    } else {
      to->view = m;
      to->is_given = Given(m);
    }
    if (!Holds(a.when, c)) return;
    to->is_needed = calls::IsView(a.field.kind) && !is_optional &&
                    (a.group == 0 || IsGroupGiven<C>(c, a.group, kAll));
    for (size_t i = 0; i < std::size(a.shapes); ++i) {
      if (a.shapes[i].words == nullptr || !Holds(a.shapes[i].when, c)) continue;
      to->shape = &calls::kShapes<C>[kI][i];
      to->shape_number = static_cast<uint16_t>(i);
      break;
    }
  }
  // The views must be sound, because PutInPlace() computes where they end.
  template <size_t... kI>
  static void PutAllInPlace(const Args& c, WalkedArgument* to,
                            std::index_sequence<kI...>) {
    (PutInPlace<kI>(c, to + kI, kAll), ...);
  }
  template <size_t... kI>
  static void WalkAll(const Args& c, WalkedArgument* to,
                      std::index_sequence<kI...>) {
    uint16_t view = 0;
    const auto walk = [&](auto at) {
      constexpr calls::Kind kKind = calls::ArgumentAt<C>(at).field.kind;
      Walk<at>(c, view, to + at);
      view = static_cast<uint16_t>(view + (calls::IsRows(kKind)   ? 3
                                           : calls::IsView(kKind) ? 1
                                                                  : 0));
    };
    (walk(std::integral_constant<size_t, kI>()), ...);
  }

  // Returns the status of a call that the fast path does not accept. Such a
  // call may still be valid.
  [[gnu::cold, gnu::noinline]] static Status Explain(
      const typename C::Inputs& in, const typename C::Outputs& out,
      const typename C::Options& options) {
    const typename C::Sizes measured = C::Measure(in, out, options);
    const Args c = {in, out, options, measured};
    for (size_t i = 0; i < std::size(C::kOptions); ++i) {
      const calls::Option& option = C::kOptions[i];
      if (!IsInRange(option.range.of, option.range,
                     At(&c.options, option.field.offset), option.field.kind)) {
        return RefuseOption(option, &c.options,
                            Text(calls::kFirstOption<C> + i));
      }
    }
    WalkedArgument arguments[calls::kNumArguments<C>];
    WalkAll(c, arguments, kAll);
    size_t sizes_in_order[std::size(C::kSizes)];
    const char* names_of_sizes[std::size(C::kSizes)];
    uint32_t of_options = 0;
    for (size_t i = 0; i < std::size(C::kSizes); ++i) {
      sizes_in_order[i] = c.sizes.*(C::kSizes[i].member);
      names_of_sizes[i] = C::kSizes[i].name;
      of_options |= uint32_t{C::kSizes[i].is_of_options} << i;
    }
    const WalkedCall call = {arguments,
                             calls::kNumArguments<C>,
                             calls::kNumInputs<C>,
                             calls::kViews<C>.size(),
                             sizes_in_order,
                             std::size(C::kSizes),
                             of_options,
                             names_of_sizes,
                             std::data(C::kOptions),
                             std::size(C::kOptions),
                             &c.options};
    size_t fault = FindFaultOfViews(call);
    if (fault != kNoFault) return RefuseView(call, fault, Text(fault));
    const auto find_rule = [&](bool is_before) -> size_t {
      for (size_t i = 0; i < std::size(C::kRules); ++i) {
        const auto& rule = C::kRules[i];
        const bool is_of_these =
            ((rule.flags & calls::Rule<Args>::kBeforeShapes) != 0) == is_before;
        if (is_of_these && !rule.holds(c)) return i;
      }
      return kNoFault;
    };
    const auto refuse_by_rule = [&](size_t i) {
      if (C::kRules[i].put != nullptr) {
        Details details;
        C::kRules[i].put(c, &details);
        return Refuse(StatusCode::kInvalidArgument,
                      Text(calls::kFirstRule<C> + i), details);
      }
      return RefuseByRule(call, C::kRules[i].words,
                          Text(calls::kFirstRule<C> + i));
    };
    size_t rule = find_rule(true);
    if (rule != kNoFault) return refuse_by_rule(rule);
    fault = FindFaultOfShapes(call);
    if (fault != kNoFault) return RefuseView(call, fault, Text(fault));
    PutAllInPlace(c, arguments, kAll);
    fault = FindOverlap(call);
    if (fault != kNoFault) return Invalid(Text(fault));
    rule = find_rule(false);
    return rule == kNoFault ? Status() : refuse_by_rule(rule);
  }
};

}  // namespace internal

using internal::Checked;

}  // namespace switchyard

#endif  // SWITCHYARD_SRC_CHECK_H_
