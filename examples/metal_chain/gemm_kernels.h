// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_KERNELS_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_KERNELS_H_

#include <cstdint>
#include <string>

#include "switchyard/device/device.h"

namespace metal_chain {

// The kernels that an engine brings along: all of a chain that is not around
// the GEMMs. 128 threads per threadgroup; threadgroups past the end of a matrix
// do nothing.

constexpr size_t kThreads = 128;

// The rows of `slots` experts times a vector.
//   0 weights [experts, rows, cols], 1 expert of each slot i32 [slots],
//   2 input [slots, cols], or [cols] with shared_input, 3 out [slots, rows],
//   4 params
//   grid (ceil(rows / 64), slots)
struct GemvParams {
  int32_t rows;
  int32_t cols;
  int32_t shared_input;
};

// All rows times one vector per token.
//   0 weights [rows, cols], 1 input [tokens, cols], 2 out [tokens, rows],
//   3 params, threadgroup memory 0: kStagedFloats
//   grid (ceil(tokens / 32), ceil(rows / 64))
struct GemmParams {
  int32_t tokens;
  int32_t rows;
  int32_t cols;
};

// Each expert's rows times the vectors of its pairs. The result of a pair is at
// the index of the pair.
//   0 weights [experts, rows, cols], 1 input [pairs / pairs_per_input, cols],
//   2 out [pairs, rows], 3 tokens_per_expert i32 [experts], 4 pairs of each
//   expert i32 [experts, row_stride], 5 params, threadgroup memory 0:
//   kStagedFloats
//   grid (ceil(pairs of the busiest / 32), ceil(rows / 64), experts): as
//   moe_compute_ids_tpe_f32 writes it
struct ExpertGemmParams {
  int32_t rows;
  int32_t cols;
  int32_t row_stride;
  int32_t pairs_per_input;  // top_k: a row per token; 1: a row per pair
};

// `cols` is for the cost of a threadgroup only.
switchyard::device::KernelFunction GemvKernel(std::string name, size_t cols);
switchyard::device::KernelFunction GemmKernel(std::string name, size_t cols);
switchyard::device::KernelFunction ExpertGemmKernel(std::string name,
                                                    size_t cols);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_KERNELS_H_
