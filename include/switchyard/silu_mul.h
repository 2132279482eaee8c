// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SILU_MUL_H_
#define SWITCHYARD_SILU_MUL_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// Whether out goes through the caches. Results are the same.
enum class SiluMulStores : uint8_t {
  // kStreaming if gate, up and out together are above kSiluMulStreamingBytes,
  // kCached otherwise.
  kAuto,
  // The next reader finds what still fits in the caches.
  kCached,
  // Past the caches: memory is not read before it is written, and what the
  // caches hold stays there. In place this is kCached, the lines being in the
  // cache anyway.
  kStreaming,
};

// The rule: by then out has left the caches nearest to the core before it is
// read. On one core with 2 MB of L2 and a share of a large L3, streaming takes
// 1.17 of the time of cached stores at 19 MB, 0.93 at 28 MB, 0.76 at 38 MB,
// 0.71 from 57 MB on.
constexpr size_t kSiluMulStreamingBytes = size_t{32} << 20;

struct SiluMulOptions {
  SiluMulStores stores = SiluMulStores::kAuto;
};

// out[r, i] = silu(gate[r, i]) * up[r, i],  silu(x) = x / (1 + exp(-x))
//
// The activation between an expert's gate/up GEMMs and its down GEMM; rows are
// (token, expert) pairs, columns the expert's intermediate size. From the Metal
// kernels silu_mul_stacked_f32 and silu_mul_batched_f32.
//
// Shapes: gate, up and out are [rows, cols], each with its own stride. Zero
// rows or columns do nothing.
// In place: out may be exactly gate or exactly up (same data and stride); any
// other overlap of out with an input is an error. gate and up may overlap. The
// two halves of a fused gate|up output [rows, 2*cols] are views of equal stride
// in disjoint columns, so out may be the gate half.
// Values: silu is within 2.5 ulp of the exact function for x > -87.33655 and -0
// below that, -inf included; silu(+inf) = +inf; NaN gives NaN. No denormal is
// produced by silu itself. Same bits on every ISA with FMA; the others differ
// by a few ulp.
// Errors: kInvalidArgument for null data, stride < cols, shapes that differ, a
// view larger than the address space, an overlap as above, or options.stores
// outside its enumeration; nothing written.
Status SiluMul(Matrix<const float> gate, Matrix<const float> up,
               Matrix<float> out, const SiluMulOptions& options,
               Executor& executor = SerialExecutor()) noexcept;
inline Status SiluMul(Matrix<const float> gate, Matrix<const float> up,
                      Matrix<float> out,
                      Executor& executor = SerialExecutor()) noexcept {
  return SiluMul(gate, up, out, SiluMulOptions(), executor);
}

}  // namespace switchyard

#endif  // SWITCHYARD_SILU_MUL_H_
