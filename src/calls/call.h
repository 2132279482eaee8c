// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// One table per public function, in src/calls/<function>.h. It is data only,
// and describes the function's arguments once. The checks and their messages
// (src/check.h), the C ABI, the generated parts of the bindings, the error
// tests and the fuzzers read it.
//
// A table is a struct:
//
//   struct QuantizeSizes { size_t rows, cols; };      // the call's dimensions
//   struct QuantizeCall
//       : CallBase<QuantizeInputs, QuantizeOutputs, QuantizeOptions,
//                  QuantizeSizes, swy_quantize_inputs, ...> {
//     static constexpr const char* kName = "Quantize";
//     static constexpr Size<Sizes> kSizes[] = {{"rows", &Sizes::rows}, ...};
//     static Sizes Measure(const Inputs&, const Outputs&, const Options&);
//     static constexpr Argument kInputs[] = {...};    // an entry per field
//     static constexpr Argument kOutputs[] = {...};
//     static constexpr Option kOptions[] = {...};
//     static constexpr Rule<CallArgs<...>> kRules[] = {...};
//   };

#ifndef SWITCHYARD_SRC_CALLS_CALL_H_
#define SWITCHYARD_SRC_CALLS_CALL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "src/base/details.h"
#include "src/base/type_list.h"
#include "src/base/view_checks.h"
#include "src/calls/names.h"
#include "switchyard/combine.h"
#include "switchyard/report.h"
#include "switchyard/switchyard.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

// GCC and Clang support offsetof for structs with a base, but warn about it.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace switchyard::calls {

// Stands for a pointer of any type.
struct Pointer {
  unsigned char bytes[sizeof(void*)];
};

// The types of fields: X(kind, C++ type, C type). Views come first.
#define SWITCHYARD_KINDS(X)                                     \
  X(kConstMatrix, ConstAnyMatrix, swy_matrix)                   \
  X(kMatrix, AnyMatrix, swy_matrix)                             \
  X(kRowIndex, RowIndex, swy_matrix)                            \
  X(kConstRows, ConstAnyRows, swy_rows)                         \
  X(kRows, AnyRows, swy_rows)                                   \
  X(kConstI32Span, Span<const int32_t>, swy_i32_span)           \
  X(kI32Span, Span<int32_t>, swy_i32_span)                      \
  X(kI64Span, Span<int64_t>, swy_i64_span)                      \
  X(kU32Span, Span<uint32_t>, swy_u32_span)                     \
  X(kCount, size_t, size_t)                                     \
  X(kCount32, uint32_t, uint32_t)                               \
  X(kFlag, bool, int32_t)                                       \
  X(kNumber, float, float)                                      \
  X(kType, Type, int32_t)                                       \
  X(kEnum8, uint8_t, int32_t)                                   \
  X(kText, const char*, const char*)                            \
  X(kReport, Report*, swy_report*)                              \
  X(kPointer, Pointer, Pointer)                                 \
  X(kOptionalCount, std::optional<size_t>, swy_optional_count)  \
  X(kOptionalFlag, std::optional<bool>, swy_optional_flag)      \
  X(kOptionalNumber, std::optional<float>, swy_optional_number) \
  X(kOptionalText, std::optional<const char*>, const char*)
#define SWITCHYARD_KIND(kind, ...) kind,
enum class Kind : uint8_t { SWITCHYARD_KINDS(SWITCHYARD_KIND) };
#undef SWITCHYARD_KIND

template <Kind>
struct TypesOf;
template <class T>
constexpr Kind KindOf() {
#define SWITCHYARD_KIND(kind, CppType, CType) \
  if (std::is_same_v<T, CppType>) return Kind::kind;
  SWITCHYARD_KINDS(SWITCHYARD_KIND)
#undef SWITCHYARD_KIND
  if (std::is_pointer_v<T>) return Kind::kPointer;
  if (std::is_enum_v<T> && sizeof(T) == 1) return Kind::kEnum8;
  throw "a type that no field has";
}
#define SWITCHYARD_KIND(kind, CppType, CType) \
  template <>                                 \
  struct TypesOf<Kind::kind> {                \
    static constexpr Kind kKind = Kind::kind; \
    using Cpp = CppType;                      \
    using C = CType;                          \
  };
SWITCHYARD_KINDS(SWITCHYARD_KIND)
#undef SWITCHYARD_KIND

// Returns the size of a field's C++ type.
constexpr size_t SizeOf(Kind kind) {
  switch (kind) {
#define SWITCHYARD_KIND(kind, CppType, ...) \
  case Kind::kind:                          \
    return sizeof(CppType);
    SWITCHYARD_KINDS(SWITCHYARD_KIND)
#undef SWITCHYARD_KIND
  }
  return 0;
}
constexpr bool IsSpan(Kind kind) {
  return kind >= Kind::kConstI32Span && kind <= Kind::kU32Span;
}
constexpr bool IsRows(Kind kind) {
  return kind == Kind::kConstRows || kind == Kind::kRows;
}
constexpr bool IsView(Kind kind) { return kind <= Kind::kU32Span; }

// A field of a C++ struct and its place in the C struct. A dot joins the
// names of nested fields: "shared.rows".
struct Field {
  const char* name;
  Kind kind;
  uint16_t offset;
  uint16_t c_offset;
  uint16_t c_end;  // end in the C struct; a shorter struct, of an older
                   // version, does not have the field
};
#define SWITCHYARD_FIELD_OF(Cpp, C, member)                     \
  ::switchyard::calls::Field {                                  \
#member,                                                    \
        ::switchyard::calls::KindOf < std::remove_reference_t < \
            decltype((std::declval <Cpp&>().member))>>(),       \
        offsetof(Cpp, member), offsetof(C, member),             \
        offsetof(C, member) + sizeof(C::member)                 \
  }

// Make a Field from a member's name. The table that uses the macro defines
// Inputs, CInputs and so on.
#define INPUT(member) SWITCHYARD_FIELD_OF(Inputs, CInputs, member)
#define OUTPUT(member) SWITCHYARD_FIELD_OF(Outputs, COutputs, member)
#define OPTION(member) SWITCHYARD_FIELD_OF(Options, COptions, member)

constexpr Field Named(Field field, const char* name) {
  field.name = name;
  return field;
}

// The element types that an argument accepts: as a set, and as text for the
// message. A span's element type is fixed, so its set is empty.
struct Types {
  uint32_t set = 0;
  const char* words = "";
};
constexpr uint32_t SetOf(Type type) {
  return uint32_t{1} << static_cast<unsigned>(type);
}
inline constexpr Types kSpan = {};
inline constexpr Types kFloats = {internal::kFloatSet, "f32, bf16 or f16"};
inline constexpr Types kIds = {internal::kIdSet, "int32, uint32 or int64"};
inline constexpr Types kIdsOrU8 = {internal::kIdSet | SetOf(Type::kU8),
                                   "int32, uint32, int64 or uint8"};
inline constexpr Types kAnyIds = {kIdsOrU8.set | SetOf(Type::kU16),
                                  "int32, uint32, int64, uint8 or uint16"};
inline constexpr Types kI32 = {SetOf(Type::kI32), "int32"};
inline constexpr Types kU8 = {SetOf(Type::kU8), "uint8"};
// Rows of any type, with scales if the type needs them.
inline constexpr Types kAnyRows = {internal::kRowSet,
                                   "f32, bf16, f16 or quantised"};

// A condition on a call: a field of its inputs or options has a value in `set`.
// The default, kAlways, holds for every call.
struct When {
  enum From : uint8_t { kAlways, kInputs, kOptions } from = kAlways;
  Kind kind = Kind::kFlag;
  uint16_t offset = 0;
  uint32_t set = 0;
};
template <class... E>
constexpr uint32_t Values(E... values) {
  return ((uint32_t{1} << static_cast<unsigned>(values)) | ...);
}
#define SWITCHYARD_WHEN(from, Struct, member, ...)                         \
  ::switchyard::calls::When {                                              \
    ::switchyard::calls::When::from,                                       \
        ::switchyard::calls::KindOf<std::remove_reference_t<decltype((     \
            std::declval<Struct&>().member))>>(),                          \
        offsetof(Struct, member), ::switchyard::calls::Values(__VA_ARGS__) \
  }

// A shape, and the calls to which it applies. Each size in the shape is a
// number, one of the call's sizes, or two such terms joined by * or +.
//
//  - a matrix: "[tokens, top_k]", or two such shapes joined by " or "
//  - a span: "num_experts + 1", or ">= " and the least size
struct Shape {
  const char* words = nullptr;
  When when = {};
  // The message. If null, it is made from `words`: "is not [tokens, top_k]".
  const char* says = nullptr;
};

// An argument must be given unless it is kOptional. An argument with a `group`
// must be given only if another argument of the group is given.
enum Flags : uint8_t {
  kNeeded = 0,
  kOptional = 1,
  // Unusual arguments, which are checked only if one of them is given.
  kRare = 2 | kOptional,
  kRareGroup = 2,
  // The call writes this input.
  kScratch = 4,
};

inline constexpr size_t kMaxShapes = 3;
struct Argument {
  Field field;
  Types types = {};
  // The first shape with a condition that holds applies. If an argument has no
  // shapes, a rule checks it.
  Shape shapes[kMaxShapes] = {};
  uint8_t flags = kNeeded;
  uint8_t group = 0;
  // The argument is needed only if this condition holds.
  When when = {};
  // Names, separated by spaces, of outputs that may be the same view as this
  // input. If a call has several of these outputs, only the first may be in
  // place.
  const char* in_place = "";
};

// The values that an option may have, and the message for other values.
struct Range {
  enum Of : uint8_t {
    kAny,
    kUpTo,  // 0 <= x <= most
    kFinite,
    kFiniteNotZero,
    kPositive,  // normal, finite, above 0
    kSet,       // an enumerator of `set`
    kFrom1,     // 1 <= count <= most_count
  } of = kAny;
  float most = 0.0f;
  uint32_t set = 0;
  size_t most_count = SIZE_MAX;
  const char* words = "";
  // Returns the name of an enumerator, or null.
  const char* (*name_of)(uint32_t value) = nullptr;
};
inline constexpr Range kAnyValue = {};
inline constexpr Range kFinite = {Range::kFinite, 0, 0, 0, " is not finite"};
inline constexpr Range kNotZero = {Range::kFrom1, 0, 0, SIZE_MAX, " is 0"};
inline constexpr Range kPositive = {Range::kPositive, 0, 0, 0,
                                    " is not positive and finite"};
constexpr Range UpTo(float most, const char* words) {
  return {Range::kUpTo, most, 0, 0, words};
}

template <class E>
constexpr const char* NameAt(uint32_t value) {
  return NameOf(static_cast<E>(value));
}
// Returns the range of an option of type E: all enumerators that names.h
// lists, or only the enumerators in `set`.
template <class E>
constexpr Range OneOf(const char* words, uint32_t set = EnumeratorsOf<E>()) {
  return {Range::kSet, 0, set, 0, words, NameAt<E>};
}

struct Option {
  Field field;
  Range range = {};
  // True if an ordinary call may change this option. A call is special if it
  // changes any other option from its default: see is_ordinary in check.h.
  bool is_ordinary = false;
};

template <class S>
struct Size {
  const char* name;
  size_t S::*member;
  bool is_of_options = false;  // options give this size, not arguments
};

// The arguments of a call, as its rules get them.
template <class In, class Out, class Opt, class S>
struct CallArgs {
  const In& in;
  const Out& out;
  const Opt& options;
  const S& sizes;
};

// A condition on arguments that types and shapes cannot express.
template <class Args>
struct Rule {
  bool (*holds)(const Args&);
  const char* words;  // "argument: problem"
  // kBeforeShapes: the rule is checked before shapes, because sizes mean
  // nothing if the call breaks it. kSpecial: an ordinary call, with views below
  // 2^30 columns, cannot break the rule.
  enum Flags : uint8_t {
    kAlways = 0,
    kBeforeShapes = 1,
    kSpecial = 2,
    kSpecialBeforeShapes = 3
  } flags = kAlways;
  // Writes the numbers for the message. If `put` is null, RefuseByRule() writes
  // the numbers of the arguments, options and sizes that `words` names.
  void (*put)(const Args&, internal::Details*) = nullptr;
};

// The base of all tables. It has the types of the call's structs in C++ and
// in C, and default values of members that few tables set. For a function
// that is not in the C ABI, the C++ structs also stand for the C structs.
template <class In, class Out, class Opt, class S, class CIn = In,
          class COut = Out, class COpt = Opt>
struct CallBase {
  using Inputs = In;
  using Outputs = Out;
  using Options = Opt;
  using CInputs = CIn;
  using COutputs = COut;
  using COptions = COpt;
  using Args = CallArgs<In, Out, Opt, S>;
  using Sizes = S;

  static constexpr bool kRunsKernel = true;  // checks the environment's ISA

  // Say whether this call permits outputs in the memory of inputs, and
  // whether this output lies in the memory of this input.
  static bool MayBeInPlace(const Args&) { return true; }
  template <class O, class I>
  static bool IsInPlace(const O& out, const I& in, const Args&) {
    return internal::SameView(out, in);
  }
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_CALL_H_
