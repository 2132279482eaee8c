// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_STORAGE_TYPES_H_
#define SWITCHYARD_SRC_SIMD_STORAGE_TYPES_H_

// Pairs of types (of the rows read, of the rows written) that kernels are
// compiled for; each kernel names its list. A type has a line for each pair
// that engines use, its entry in types.h, and its loads and stores in
// storage-inl.h.
#define SWITCHYARD_F32(X, ...) X(float, float, __VA_ARGS__)

#endif  // SWITCHYARD_SRC_SIMD_STORAGE_TYPES_H_
