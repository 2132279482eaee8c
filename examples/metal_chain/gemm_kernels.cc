// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "gemm_kernels.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "gemm_tile.h"
#include "switchyard/views.h"

namespace metal_chain {
namespace {

namespace MTL = switchyard::device;
using switchyard::Span;

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

  GemmTile tile;
  tile.weights =
      Row(context.buffer<const float>(0), 0, rows * cols) + first_row * cols;
  tile.rows = std::min(kTileRows, rows - first_row);
  tile.cols = cols;
  tile.pairs = std::min(kTilePairs, tokens - first_token);
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

  GemmTile tile;
  tile.weights = Row(context.buffer<const float>(0), expert, rows * cols) +
                 first_row * cols;
  tile.rows = std::min(kTileRows, rows - first_row);
  tile.cols = cols;
  tile.pairs = std::min(kTilePairs, num_pairs - first_pair);
  const int32_t* const pairs =
      Row(context.buffer<const int32_t>(4), expert, row_stride) + first_pair;
  const auto pair = [&](size_t p) { return Dim(pairs[p]); };
  const auto input_row = [&](size_t p) {
    return Dim(pairs[p] / params.pairs_per_input);
  };
  RunTile(context, tile, first_row, input_row, pair, rows);
}

}  // namespace

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
