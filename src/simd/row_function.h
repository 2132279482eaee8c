// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ROW_FUNCTION_H_
#define SWITCHYARD_SRC_SIMD_ROW_FUNCTION_H_

#include <cstddef>

namespace switchyard::internal {}

namespace switchyard::simd {

// Lets kernels use the names of src/base.
using namespace internal;

// A kernel. It computes rows [begin, end) on the calling thread, in the default
// floating-point environment. The caller has checked `args`.
template <class Args>
using RowFunction = void (*)(const Args& args, size_t begin, size_t end);

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ROW_FUNCTION_H_
