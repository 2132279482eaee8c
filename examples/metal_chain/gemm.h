// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "switchyard/device/device.h"
#include "switchyard/views.h"

namespace metal_chain {

// The arithmetic of the GEMMs, in plain C++ that compilers vectorise for the
// baseline of the architecture. Each sum has one order, whatever the shape of
// the tile: results are equal bit for bit however a matrix is cut.

constexpr size_t kTilePairs = 32;
constexpr size_t kTileRows = 64;
constexpr size_t kTileDepth = 128;  // columns staged at a time
constexpr size_t kStagedFloats = kTilePairs * kTileDepth;

// A part of the product of `pairs` input vectors with a matrix.
struct GemmTile {
  const float* weights;             // [rows, cols]
  size_t rows;                      // at most kTileRows
  size_t cols;                      // any number
  size_t pairs;                     // at most kTilePairs
  const float* inputs[kTilePairs];  // of each pair: [cols]
  float* outputs[kTilePairs];       // of each pair: [rows]
};

// The one whose first row and pair these are, without its inputs and outputs.
GemmTile TileAt(const float* weights, size_t rows, size_t cols,
                size_t first_row, size_t pairs, size_t first_pair);

// outputs[p][r] = sum over c of weights[r, c] * inputs[p][c], c ascending.
// `staged` is scratch of at least kStagedFloats.
void RunGemmTile(const GemmTile& tile, switchyard::Span<float> staged);

// out[r] = sum over c of weights[r, c] * input[c]: column c in lane c mod 32,
// the lanes folded 16, 8, 4, 2, 1, as a simdgroup does.
void RunGemv(const float* weights, size_t rows, size_t cols, const float* input,
             float* out);

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

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_H_
