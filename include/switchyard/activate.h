// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_ACTIVATE_H_
#define SWITCHYARD_ACTIVATE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

enum class Activation : uint8_t {
  kSilu,  // silu(gate) * up, silu(x) = x / (1 + exp(-x))
};

// Where an expert's gate and up values lie.
enum class GateUpLayout : uint8_t {
  kSplit,         // in two matrices, `gate` and `up`
  kConcatenated,  // `gate` holds both: [gate | up]; most models' fused GEMM
  kInterleaved,   // `gate` holds both: gate, up, gate, up, ...; gpt-oss
};

// Whether out goes through the caches. Results are the same.
enum class ActivateStores : uint8_t {
  // kStreaming if gate, up and out together are above kActivateStreamingBytes,
  // kCached
  // otherwise.
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
constexpr size_t kActivateStreamingBytes = size_t{32} << 20;

struct ActivateInputs {
  ConstAnyMatrix gate;     // [rows, cols], or both [rows, 2 * cols]
  ConstAnyMatrix up = {};  // [rows, cols] with kSplit
};
struct ActivateOutputs {
  AnyMatrix out;  // [rows, cols]
};
struct ActivateOptions {
  Activation activation = Activation::kSilu;
  GateUpLayout layout = GateUpLayout::kSplit;
  ActivateStores stores = ActivateStores::kAuto;
};

// out[r, i] = activation(gate[r, i], up[r, i])
//
// Between an expert's gate/up GEMMs and its down GEMM; rows are (token, expert)
// pairs, columns the expert's intermediate size. From the Metal kernels
// silu_mul_stacked_f32 and silu_mul_batched_f32.
//
// Types: gate, up and out are f32.
// Shapes: as above, each with its own stride. Zero rows or columns do nothing.
// In place: out may be exactly gate or exactly up (same data and stride), with
// kConcatenated exactly one half of gate; any other overlap of out with an
// input is an error. gate and up may overlap. Two halves of a fused gate|up
// output are views of equal stride in disjoint columns, so out may be the gate
// half with kSplit, too.
// Values: silu is within 2.5 ulp of the exact function for x > -87.33655 and -0
// below that, -inf included; silu(+inf) = +inf; NaN gives NaN. No denormal is
// produced by silu itself. Same bits on every ISA with FMA and in every layout,
// but for a NaN's sign and payload: of two NaNs, AVX2 and AVX-512 hand on
// different ones. ISAs without FMA differ by a few ulp.
// Errors: kInvalidArgument for null data, stride < cols, shapes and types that
// do not match, up beside both in gate, a view larger than the address space,
// an overlap as above, or an option outside its enumeration; nothing written.
Status Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
                const ActivateOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ACTIVATE_H_
