// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The element types that views carry at run time.

#ifndef SWITCHYARD_TYPES_H_
#define SWITCHYARD_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace switchyard {

// Floats as they are stored: the bits, to be converted by who computes.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

enum class Type : uint8_t { kF32, kBF16, kF16, kI32, kU32, kI64 };

// kType<float> is Type::kF32, and so on; not defined for other types.
template <class T>
inline constexpr Type kType = T::kNoSuchElementType;
template <>
inline constexpr Type kType<float> = Type::kF32;
template <>
inline constexpr Type kType<BFloat16> = Type::kBF16;
template <>
inline constexpr Type kType<Float16> = Type::kF16;
template <>
inline constexpr Type kType<int32_t> = Type::kI32;
template <>
inline constexpr Type kType<uint32_t> = Type::kU32;
template <>
inline constexpr Type kType<int64_t> = Type::kI64;
template <class T>
inline constexpr Type kType<const T> = kType<T>;

// Bytes of an element.
constexpr size_t SizeOf(Type type) noexcept {
  return type == Type::kI64                          ? 8
         : type == Type::kBF16 || type == Type::kF16 ? 2
                                                     : 4;
}

}  // namespace switchyard

#endif  // SWITCHYARD_TYPES_H_
