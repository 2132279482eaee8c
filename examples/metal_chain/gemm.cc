// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "gemm.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace metal_chain {
namespace {

namespace MTL = switchyard::device;
using switchyard::Span;

// Columns [begin, end) of the inputs, pairs next to each other, zeros where
// there is no pair.
void Stage(const GemmTile& tile, size_t begin, size_t end, float* staged) {
  for (size_t p = 0; p < kTilePairs; ++p) {
    for (size_t c = begin; c < end; ++c) {
      staged[(c - begin) * kTilePairs + p] =
          p < tile.pairs ? tile.inputs[p][c] : 0.0f;
    }
  }
}

// Adds a row's products with `depth` staged columns to its sums. The sums of a
// tile's pairs fill 8 SSE or NEON registers: 35 GFLOP/s a core from GCC 12 and
// Clang 14 at -O3, half of that from GCC at -O2. (4 rows of 8 pairs: 6 from
// GCC, which unrolls before it vectorises.)
void AddProducts(const float* weights, const float* staged, size_t depth,
                 float* sums) {
  float acc[kTilePairs];
  for (size_t p = 0; p < kTilePairs; ++p) acc[p] = sums[p];
  for (size_t d = 0; d < depth; ++d) {
    for (size_t p = 0; p < kTilePairs; ++p) {
      acc[p] += weights[d] * staged[d * kTilePairs + p];
    }
  }
  for (size_t p = 0; p < kTilePairs; ++p) sums[p] = acc[p];
}

float Dot(const float* a, const float* b, size_t size) {
  constexpr size_t kLanes = 32;
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += a[i + lane] * b[i + lane];
    }
  }
  for (size_t lane = 0; i + lane < size; ++lane) {
    lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// Roughly, of one core.
constexpr double kNsPerProduct = 0.06;     // of a GEMM
constexpr double kNsPerColdProduct = 0.2;  // of a GEMV: weights from memory

size_t Dim(int32_t value) {
  if (value < 0) throw std::out_of_range("params: a dimension is negative");
  return static_cast<size_t>(value);
}

// Row `index` of a matrix of rows of `size`. What a kernel throws becomes the
// command buffer's error.
template <class T>
T* Row(const Span<T>& matrix, size_t index, size_t size) {
  if (size != 0 && index >= matrix.size / size) {
    throw std::out_of_range("a bound buffer is too short for the params");
  }
  return matrix.data + index * size;
}

void Gemv(const MTL::ThreadgroupContext& context) {
  const auto params = context.params<GemvParams>(4);
  const size_t rows = Dim(params.rows), cols = Dim(params.cols);
  const size_t first_row =
      context.threadgroup_position_in_grid.width * kTileRows;
  const size_t slot = context.threadgroup_position_in_grid.height;
  if (first_row >= rows) return;
  const size_t expert = Dim(*Row(context.buffer<const int32_t>(1), slot, 1));
  const float* const weights =
      Row(context.buffer<const float>(0), expert, rows * cols);
  const float* const input = Row(context.buffer<const float>(2),
                                 params.shared_input != 0 ? 0 : slot, cols);
  float* const out = Row(context.buffer<float>(3), slot, rows);
  RunGemv(weights + first_row * cols, std::min(kTileRows, rows - first_row),
          cols, input, out + first_row);
}

// Runs a tile whose weights and sizes are filled in. input_row and output_row
// give the rows of its pair p.
template <class InputRow, class OutputRow>
void RunTile(const MTL::ThreadgroupContext& context, GemmTile tile,
             size_t first_row, const InputRow& input_row,
             const OutputRow& output_row, size_t out_cols) {
  const auto input = context.buffer<const float>(1);
  const auto out = context.buffer<float>(2);
  const auto staged = context.threadgroup<float>(0);
  if (staged.size < kStagedFloats) {
    throw std::out_of_range("too little threadgroup memory");
  }
  for (size_t p = 0; p < tile.pairs; ++p) {
    tile.inputs[p] = Row(input, input_row(p), tile.cols);
    tile.outputs[p] = Row(out, output_row(p), out_cols) + first_row;
  }
  RunGemmTile(tile, staged);
}

void Gemm(const MTL::ThreadgroupContext& context) {
  const auto params = context.params<GemmParams>(3);
  const size_t tokens = Dim(params.tokens);
  const size_t rows = Dim(params.rows), cols = Dim(params.cols);
  const MTL::Size& at = context.threadgroup_position_in_grid;
  const size_t first_token = at.width * kTilePairs;
  const size_t first_row = at.height * kTileRows;
  if (first_token >= tokens || first_row >= rows) return;

  const GemmTile tile =
      TileAt(Row(context.buffer<const float>(0), 0, rows * cols), rows, cols,
             first_row, tokens, first_token);
  const auto token = [&](size_t p) { return first_token + p; };
  RunTile(context, tile, first_row, token, token, rows);
}

void ExpertGemm(const MTL::ThreadgroupContext& context) {
  const auto params = context.params<ExpertGemmParams>(5);
  const size_t rows = Dim(params.rows), cols = Dim(params.cols);
  const MTL::Size& at = context.threadgroup_position_in_grid;
  const size_t expert = at.depth;
  const size_t first_pair = at.width * kTilePairs;
  const size_t first_row = at.height * kTileRows;
  const size_t num_pairs =
      Dim(*Row(context.buffer<const int32_t>(3), expert, 1));
  const size_t row_stride = Dim(params.row_stride);
  if (num_pairs > row_stride || params.pairs_per_input <= 0) {
    throw std::out_of_range("params: row_stride or pairs_per_input is too low");
  }
  // The grid is as wide as the busiest expert needs.
  if (first_pair >= num_pairs || first_row >= rows) return;

  const GemmTile tile =
      TileAt(Row(context.buffer<const float>(0), expert, rows * cols), rows,
             cols, first_row, num_pairs, first_pair);
  const int32_t* const pairs =
      Row(context.buffer<const int32_t>(4), expert, row_stride) + first_pair;
  const auto pair = [&](size_t p) { return Dim(pairs[p]); };
  const auto input_row = [&](size_t p) {
    return Dim(pairs[p] / params.pairs_per_input);
  };
  RunTile(context, tile, first_row, input_row, pair, rows);
}

}  // namespace

GemmTile TileAt(const float* weights, size_t rows, size_t cols,
                size_t first_row, size_t pairs, size_t first_pair) {
  return {weights + first_row * cols,
          std::min(kTileRows, rows - first_row),
          cols,
          std::min(kTilePairs, pairs - first_pair),
          {},
          {}};
}

void RunGemmTile(const GemmTile& tile, Span<float> staged) {
  float sums[kTileRows][kTilePairs] = {};
  for (size_t begin = 0; begin < tile.cols; begin += kTileDepth) {
    const size_t end = std::min(begin + kTileDepth, tile.cols);
    Stage(tile, begin, end, staged.data);
    for (size_t r = 0; r < tile.rows; ++r) {
      AddProducts(tile.weights + r * tile.cols + begin, staged.data,
                  end - begin, sums[r]);
    }
  }
  for (size_t p = 0; p < tile.pairs; ++p) {
    for (size_t r = 0; r < tile.rows; ++r) tile.outputs[p][r] = sums[r][p];
  }
}

void RunGemv(const float* weights, size_t rows, size_t cols, const float* input,
             float* out) {
  for (size_t r = 0; r < rows; ++r)
    out[r] = Dot(weights + r * cols, input, cols);
}

MTL::KernelFunction GemvKernel(std::string name, size_t cols) {
  return {std::move(name), Gemv,
          kNsPerColdProduct * static_cast<double>(kTileRows * cols)};
}

MTL::KernelFunction GemmKernel(std::string name, size_t cols) {
  return {std::move(name), Gemm,
          kNsPerProduct * static_cast<double>(kTileRows * kTilePairs * cols)};
}

MTL::KernelFunction ExpertGemmKernel(std::string name, size_t cols) {
  return {std::move(name), ExpertGemm,
          kNsPerProduct * static_cast<double>(kTileRows * kTilePairs * cols)};
}

}  // namespace metal_chain
