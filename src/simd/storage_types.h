// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_STORAGE_TYPES_H_
#define SWITCHYARD_SRC_SIMD_STORAGE_TYPES_H_

// Types of the rows that kernels are compiled for; each kernel names its list.
// What they write is not among what they are compiled for: rows.cc converts it,
// a tile at a time in the L1 cache. A type has its entry in types.h, its loads
// in storage-inl.h and a line here, or, to be written only, a case in rows.cc.

// The types that are computed with without scales.
#define SWITCHYARD_FLOATS(X, ...) \
  X(float, __VA_ARGS__) SWITCHYARD_HALVES(X, __VA_ARGS__)
#define SWITCHYARD_HALVES(X, ...) \
  X(BFloat16, __VA_ARGS__) X(Float16, __VA_ARGS__)
// Codes that a scale turns into values.
#define SWITCHYARD_CODES(X, ...) \
  X(int8_t, __VA_ARGS__)         \
  X(uint8_t, __VA_ARGS__)        \
  X(Float8E4M3, __VA_ARGS__)     \
  X(Float8E5M2, __VA_ARGS__)
#define SWITCHYARD_FLOATS_AND_CODES(X, ...) \
  SWITCHYARD_FLOATS(X, __VA_ARGS__)         \
  SWITCHYARD_CODES(X, __VA_ARGS__)

#endif  // SWITCHYARD_SRC_SIMD_STORAGE_TYPES_H_
