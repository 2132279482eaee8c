// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lists of the element types, for checks, names, kernels, tests and fuzzers.

#ifndef SWITCHYARD_SRC_BASE_TYPE_LIST_H_
#define SWITCHYARD_SRC_BASE_TYPE_LIST_H_

#include <cstdint>

#include "switchyard/types.h"

// Each Type with its name and its TypeKind.
#define SWITCHYARD_TYPES(X)        \
  X(kF32, "f32", kFloat)           \
  X(kBF16, "bf16", kFloat)         \
  X(kF16, "f16", kFloat)           \
  X(kI32, "i32", kId)              \
  X(kU32, "u32", kId)              \
  X(kI64, "i64", kId)              \
  X(kI8, "i8", kIntegerCode)       \
  X(kU8, "u8", kIntegerCode)       \
  X(kF8E4M3, "f8e4m3", kFloatCode) \
  X(kF8E5M2, "f8e5m2", kFloatCode) \
  X(kE8M0, "e8m0", kScale)         \
  X(kQ8_0, "q8_0", kBlock)         \
  X(kQ8_1, "q8_1", kBlock)         \
  X(kQ8_K, "q8_k", kBlock)         \
  X(kU16, "u16", kRecordedId)

// The types of rows for which kernels are compiled; each kernel picks one list.
// There are no lists of output types, because rows.cc converts outputs, a tile
// at a time in the L1 cache. storage-inl.h loads each type.

// Types that need no scales.
#define SWITCHYARD_FLOATS(X, ...) \
  X(float, __VA_ARGS__) SWITCHYARD_HALVES(X, __VA_ARGS__)
#define SWITCHYARD_HALVES(X, ...) \
  X(BFloat16, __VA_ARGS__) X(Float16, __VA_ARGS__)
// Codes. A scale multiplies a code to give a value.
#define SWITCHYARD_CODES(X, ...) \
  X(int8_t, __VA_ARGS__)         \
  X(uint8_t, __VA_ARGS__) SWITCHYARD_FLOAT_CODES(X, __VA_ARGS__)
#define SWITCHYARD_FLOAT_CODES(X, ...) \
  X(Float8E4M3, __VA_ARGS__)           \
  X(Float8E5M2, __VA_ARGS__)
#define SWITCHYARD_FLOATS_AND_CODES(X, ...) \
  SWITCHYARD_FLOATS(X, __VA_ARGS__)         \
  SWITCHYARD_CODES(X, __VA_ARGS__)

namespace switchyard::internal {

// The kinds of types. Codes have separate scales: integer codes have f32 scales
// and may have sums, and float codes have f32 or e8m0 scales. Blocks contain
// their scales. kRecordedId: only ids in a record of routing have such a type.
enum class TypeKind : uint8_t {
  kFloat,
  kId,
  kIntegerCode,
  kFloatCode,
  kScale,
  kBlock,
  kRecordedId
};

constexpr TypeKind KindOf(Type type) {
#define SWITCHYARD_CASE(name, text, kind) \
  case Type::name:                        \
    return TypeKind::kind;
  switch (type) { SWITCHYARD_TYPES(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
  return TypeKind::kScale;
}

// Returns the types of the given kinds, as a bit set.
template <class... Kind>
constexpr uint32_t TypesOf(Kind... kinds) {
  uint32_t set = 0;
#define SWITCHYARD_ADD(name, text, kind)                     \
  if (((TypeKind::kind == kinds) || ... || false)) {         \
    set |= uint32_t{1} << static_cast<unsigned>(Type::name); \
  }
  SWITCHYARD_TYPES(SWITCHYARD_ADD)
#undef SWITCHYARD_ADD
  return set;
}
constexpr bool IsIn(uint32_t set, Type type) {
  return static_cast<unsigned>(type) < 32 &&
         (set >> static_cast<unsigned>(type) & 1) != 0;
}

inline constexpr uint32_t kFloatSet = TypesOf(TypeKind::kFloat);
inline constexpr uint32_t kIdSet = TypesOf(TypeKind::kId);
inline constexpr uint32_t kCodeSet =
    TypesOf(TypeKind::kIntegerCode, TypeKind::kFloatCode);
inline constexpr uint32_t kRowSet =
    kFloatSet | kCodeSet | TypesOf(TypeKind::kBlock);

constexpr bool IsFloat(Type type) { return IsIn(kFloatSet, type); }
constexpr bool IsCode(Type type) { return IsIn(kCodeSet, type); }
constexpr bool IsRowType(Type type) { return IsIn(kRowSet, type); }

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_TYPE_LIST_H_
