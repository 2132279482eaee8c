// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Operations on a tile of floats that stays in the L1 cache, with an operand of
// any float type. They are compiled once, in tiles.cc, for all kernels. A
// factor of 1 changes nothing.

#if defined(SWITCHYARD_SRC_SIMD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_TILES_INL_H_
#undef SWITCHYARD_SRC_SIMD_TILES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_TILES_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "src/base/row_format.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

// An operand with as many elements as the tile.
struct TileOperand {
  const void* data;
  Type type;

  explicit TileOperand(const float* floats) : data(floats), type(Type::kF32) {}
  TileOperand(const ConstAnyMatrix& m, size_t row, size_t col)
      : data(RowAt(m, row) + BytesOf(m.type, col)), type(m.type) {}
};

// Computes tile = factor * x. x may be the tile.
void TakeTile(const TileOperand& x, size_t n, float factor, float* tile);
// Computes tile = (tile * tile_factor + x * x_factor) * factor.
void AddTile(const TileOperand& x, size_t n, float tile_factor, float x_factor,
             float factor, float* tile);
// Computes tile = from * factor * x or, with plus_one, from * factor * (1 + x).
// `from` may be the tile.
void MulTile(const TileOperand& x, size_t n, float factor, bool plus_one,
             const float* from, float* tile);
// Computes tile = fma(weight, x, tile * factor).
void MulAddTile(const TileOperand& x, size_t n, float weight, float factor,
                float* tile);
// Computes tile = fma(a, b, tile).
void MulAddTiles(const float* a, const float* b, size_t n, float* tile);
// Rounds each element to the nearest number of `type`.
void RoundTile(Type type, size_t n, float* tile);
// Adds the squares of n elements to the 32 lanes of a simdgroup, starting with
// lane 0. The lanes are aligned.
void AddSquares(const float* tile, size_t n, float* lanes);

// Returns the scale of an RMSNorm of `count` elements. `squares` is the sum of
// their squares.
HWY_INLINE float NormScale(float squares, size_t count, float eps) {
  return 1.0f / std::sqrt(squares / static_cast<float>(count) + eps);
}

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_TILES_INL_H_
