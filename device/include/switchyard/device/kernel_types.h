// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The names of MSL's types in kernels: half, bfloat, and vectors with their
// swizzles. kernel.h includes this file.

#ifndef SWITCHYARD_DEVICE_KERNEL_TYPES_H_
#define SWITCHYARD_DEVICE_KERNEL_TYPES_H_

#include "switchyard/language.h"
// language.h comes first, because it refuses older standards before anything
// else fails to compile.
#include <cstdint>

#include "switchyard/device/metal/switchyard_vec.h"

namespace switchyard::device {

using switchyard_metal::as_type;
using switchyard_metal::bfloat;
using switchyard_metal::half;

#define SWITCHYARD_VECTORS(T, name)   \
  using name##2 = ::metal::vec<T, 2>; \
  using name##3 = ::metal::vec<T, 3>; \
  using name##4 = ::metal::vec<T, 4>;
SWITCHYARD_VECTORS(float, float)
SWITCHYARD_VECTORS(half, half)
SWITCHYARD_VECTORS(bfloat, bfloat)
SWITCHYARD_VECTORS(int8_t, char)
SWITCHYARD_VECTORS(uint8_t, uchar)
SWITCHYARD_VECTORS(int16_t, short)
SWITCHYARD_VECTORS(uint16_t, ushort)
SWITCHYARD_VECTORS(int32_t, int)
SWITCHYARD_VECTORS(uint32_t, uint)
SWITCHYARD_VECTORS(int64_t, long)
SWITCHYARD_VECTORS(uint64_t, ulong)
SWITCHYARD_VECTORS(bool, bool)
#undef SWITCHYARD_VECTORS

namespace kernel_internal {

template <class T>
bool IsNan(const T& value) {
  if constexpr (switchyard_metal::kIsScalar<T>) {
    return value != value;
  } else {
    return false;
  }
}

}  // namespace kernel_internal
}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_TYPES_H_
