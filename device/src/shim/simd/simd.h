// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The types that shaders share with host code: simd::float4, simd_float4 and
// vector_float4 are float4; matrix_float4x4 and similar names are matrices.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SIMD_SIMD_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SIMD_SIMD_H_

#include "metal_types"

#define SWITCHYARD_NAMES(name)  \
  using simd_##name = ::name;   \
  using vector_##name = ::name; \
  namespace simd {              \
  using ::name;                 \
  }
#define SWITCHYARD_VECTORS(name)                  \
  SWITCHYARD_NAMES(name##2)                       \
  SWITCHYARD_NAMES(name##3)                       \
  SWITCHYARD_NAMES(name##4)                       \
  using simd_packed_##name##2 = packed_##name##2; \
  using simd_packed_##name##4 = packed_##name##4; \
  namespace simd {                                \
  using ::packed_##name##2;                       \
  using ::packed_##name##3;                       \
  using ::packed_##name##4;                       \
  }
SWITCHYARD_VECTORS(char)
SWITCHYARD_VECTORS(uchar)
SWITCHYARD_VECTORS(short)
SWITCHYARD_VECTORS(ushort)
SWITCHYARD_VECTORS(int)
SWITCHYARD_VECTORS(uint)
SWITCHYARD_VECTORS(long)
SWITCHYARD_VECTORS(ulong)
SWITCHYARD_VECTORS(half)
SWITCHYARD_VECTORS(float)
#undef SWITCHYARD_VECTORS

#define SWITCHYARD_MATRICES(T, N) \
  SWITCHYARD_MATRIX(T##N##x2)     \
  SWITCHYARD_MATRIX(T##N##x3)     \
  SWITCHYARD_MATRIX(T##N##x4)
#define SWITCHYARD_MATRIX(name) \
  using simd_##name = ::name;   \
  using matrix_##name = ::name; \
  namespace simd {              \
  using ::name;                 \
  }
SWITCHYARD_MATRICES(float, 2)
SWITCHYARD_MATRICES(float, 3)
SWITCHYARD_MATRICES(float, 4)
SWITCHYARD_MATRICES(half, 2)
SWITCHYARD_MATRICES(half, 3)
SWITCHYARD_MATRICES(half, 4)
#undef SWITCHYARD_MATRICES
#undef SWITCHYARD_MATRIX
#undef SWITCHYARD_NAMES

#define SWITCHYARD_SCALAR(name) \
  using simd_##name = ::name;   \
  namespace simd {              \
  using ::name;                 \
  }
SWITCHYARD_SCALAR(uchar)
SWITCHYARD_SCALAR(ushort)
SWITCHYARD_SCALAR(uint)
SWITCHYARD_SCALAR(ulong)
#undef SWITCHYARD_SCALAR
using simd_bool = bool;
using simd_char = char;
using simd_short = short;
using simd_int = int;
using simd_long = long;
using simd_half = half;
using simd_float = float;

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SIMD_SIMD_H_
