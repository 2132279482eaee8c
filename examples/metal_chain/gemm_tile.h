// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_TILE_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_TILE_H_

#include <cstddef>

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

// outputs[p][r] = sum over c of weights[r, c] * inputs[p][c], c ascending.
// `staged` is scratch of at least kStagedFloats.
void RunGemmTile(const GemmTile& tile, switchyard::Span<float> staged);

// out[r] = sum over c of weights[r, c] * input[c]: column c in lane c mod 32,
// the lanes folded 16, 8, 4, 2, 1, as a simdgroup does.
void RunGemv(const float* weights, size_t rows, size_t cols, const float* input,
             float* out);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_GEMM_TILE_H_
