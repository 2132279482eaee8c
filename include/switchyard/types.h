// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The element types that views carry at run time.

#ifndef SWITCHYARD_TYPES_H_
#define SWITCHYARD_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace switchyard {

// Floats as they are stored: the bits, to be converted by who computes.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

enum class Type : uint8_t { kF32, kBF16, kF16, kI32, kU32, kI64 };

// TypeOf<float>::value is Type::kF32, and so on; other types have no value.
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
template <class T>
inline constexpr Type kType = TypeOf<T>::value;

// Bytes of an element; 0 for what is no Type.
constexpr size_t SizeOf(Type type) noexcept {
  switch (type) {
    case Type::kF32:
    case Type::kI32:
    case Type::kU32:
      return 4;
    case Type::kBF16:
    case Type::kF16:
      return 2;
    case Type::kI64:
      return 8;
  }
  return 0;
}

}  // namespace switchyard

#endif  // SWITCHYARD_TYPES_H_
