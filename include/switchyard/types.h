// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The types of elements: C++ structs for small floats and GGML's blocks, and
// the enum Type, which tells a view's element type at run time.

#ifndef SWITCHYARD_TYPES_H_
#define SWITCHYARD_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "switchyard/language.h"

namespace switchyard {

// Floats of 16 and 8 bits. The structs only store the bits and have no
// arithmetic: convert them to float to compute.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

struct Float8E4M3 {  // the "fn" variant: no infinities, at most 448
  uint8_t bits;
};
struct Float8E5M2 {
  uint8_t bits;
};
struct Scale8E8M0 {  // 2^(bits - 127); 255 is NaN
  uint8_t bits;
};

// Blocks of quantised values, with the same bytes as GGML's block_q8_0,
// block_q8_1 and block_q8_K.
struct BlockQ8_0 {
  Float16 d;
  int8_t qs[32];  // value = d * qs
};
struct BlockQ8_1 {
  Float16 d;
  Float16 s;  // d * sum of qs
  int8_t qs[32];
};
struct BlockQ8_K {
  float d;
  int8_t qs[256];
  int16_t bsums[16];  // each is the sum of 16 codes
};

enum class Type : uint8_t {
  kF32,
  kBF16,
  kF16,
  kI32,
  kU32,
  kI64,
  // The types below, up to kE8M0, are codes and scales of quantised rows: see
  // quantize.h.
  kI8,
  kU8,
  kF8E4M3,
  kF8E5M2,
  kE8M0,  // for scales only
  // Types of blocks. BytesOf() has a fast path for the types before kQ8_0.
  kQ8_0,
  kQ8_1,
  kQ8_K,
  kU16,  // for recorded ids only: see route.h
};

// TypeOf<T>::value is the Type of a C++ type: Type::kF32 for float, and so
// on. Types that are never elements of a view have no `value`. Blocks have no
// `value` either: the sizes of a view count values, but beside a pointer to
// blocks, readers would expect sizes that count blocks.
template <class T>
struct TypeOf {};
template <class T>
struct TypeOf<const T> : TypeOf<T> {};
template <>
struct TypeOf<float> : std::integral_constant<Type, Type::kF32> {};
template <>
struct TypeOf<BFloat16> : std::integral_constant<Type, Type::kBF16> {};
template <>
struct TypeOf<Float16> : std::integral_constant<Type, Type::kF16> {};
template <>
struct TypeOf<int32_t> : std::integral_constant<Type, Type::kI32> {};
template <>
struct TypeOf<uint32_t> : std::integral_constant<Type, Type::kU32> {};
template <>
struct TypeOf<int64_t> : std::integral_constant<Type, Type::kI64> {};
template <>
struct TypeOf<int8_t> : std::integral_constant<Type, Type::kI8> {};
template <>
struct TypeOf<uint8_t> : std::integral_constant<Type, Type::kU8> {};
template <>
struct TypeOf<uint16_t> : std::integral_constant<Type, Type::kU16> {};
template <>
struct TypeOf<Float8E4M3> : std::integral_constant<Type, Type::kF8E4M3> {};
template <>
struct TypeOf<Float8E5M2> : std::integral_constant<Type, Type::kF8E5M2> {};
template <>
struct TypeOf<Scale8E8M0> : std::integral_constant<Type, Type::kE8M0> {};
template <class T>
inline constexpr Type kType = TypeOf<T>::value;

// Returns the number of bytes of an element, or of a block; 0 if `type` is
// not an enumerator.
constexpr size_t SizeOf(Type type) noexcept {
  switch (type) {
    case Type::kF32:
    case Type::kI32:
    case Type::kU32:
      return 4;
    case Type::kBF16:
    case Type::kF16:
    case Type::kU16:
      return 2;
    case Type::kI64:
      return 8;
    case Type::kI8:
    case Type::kU8:
    case Type::kF8E4M3:
    case Type::kF8E5M2:
    case Type::kE8M0:
      return 1;
    case Type::kQ8_0:
      return sizeof(BlockQ8_0);
    case Type::kQ8_1:
      return sizeof(BlockQ8_1);
    case Type::kQ8_K:
      return sizeof(BlockQ8_K);
  }
  return 0;
}

// Returns the binary logarithm of the number of values in a block; 0 for a
// type without blocks.
constexpr unsigned BlockBits(Type type) noexcept {
  return type == Type::kQ8_K                          ? 8
         : type == Type::kQ8_0 || type == Type::kQ8_1 ? 5
                                                      : 0;
}
// Returns the number of values in a block; 1 for a type without blocks.
constexpr size_t BlockOf(Type type) noexcept {
  return size_t{1} << BlockBits(type);
}
// Returns the number of bytes of `values` values. `values` must be a multiple
// of BlockOf(type).
constexpr size_t BytesOf(Type type, size_t values) noexcept {
  // The constant is a table of log2(SizeOf(type)), with four bits for each
  // type. It avoids a branch or a load, which would matter because each call of
  // the library computes sizes for two dozen views.
  if (type < Type::kQ8_0) {
    return values << (uint64_t{0x322112} >> 4 * static_cast<unsigned>(type) &
                      3);
  }
  return (values >> BlockBits(type)) * SizeOf(type);
}

}  // namespace switchyard

#endif  // SWITCHYARD_TYPES_H_
