// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the stages of combine.h, which turn the sum of a token's terms into the
// outputs. Each stage is a loop over a tile of f32 that stays in the L1 cache.

#if defined(SWITCHYARD_SRC_SIMD_COMBINE_STAGES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_COMBINE_STAGES_INL_H_
#undef SWITCHYARD_SRC_SIMD_COMBINE_STAGES_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_COMBINE_STAGES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "src/simd/combine.h"

#include "hwy/highway.h"

#include "src/simd/combine_terms-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// PhaseScales has the scales of a phase's norms, for the block's tile and for
// the second tile. PhaseSquares has the sums of squares that give these
// scales.
struct PhaseScales {
  float block, other;
};
struct PhaseSquares {
  HWY_ALIGN float block[kSimdgroup];
  HWY_ALIGN float other[kSimdgroup];

  PhaseSquares() {
    for (size_t i = 0; i < kSimdgroup; ++i) block[i] = other[i] = 0.0f;
  }
};

// The two tiles for columns [begin, begin + n) of a token, n <= kSumTile.
struct StageTile {
  const CombineArgs& args;
  size_t token, begin, n;
  float* block;
  float* other;  // undefined between phases

  HWY_INLINE void Run(const CombineStage& stage,
                      const PhaseScales& scales) const {
    const CombineInputs& in = args.inputs;
    float* const tile = stage.other ? other : block;
    const float v = !stage.norm   ? stage.v
                    : stage.other ? scales.other
                                  : scales.block;
    const auto operand = [&]() {
      return TileOperand(*stage.operand, stage.per_token ? token : 0, begin);
    };
    switch (stage.op) {
      case CombineStage::kLoad:
        return TakeTile(operand(), n, stage.x, tile);
      case CombineStage::kAdd:
        return AddTile(operand(), n, v, stage.x, stage.sum, tile);
      case CombineStage::kMul:
        return MulTile(operand(), n, v, false, tile, tile);
      case CombineStage::kMulPlus:
        return MulTile(operand(), n, v, true, tile, tile);
      case CombineStage::kMulAdd:
        return MulAddTile(operand(), n, OfToken(in.identity.weight, token), v,
                          tile);
      case CombineStage::kShared:
      case CombineStage::kGated:
        for (size_t i = 0; i < in.shared.num_shared; ++i) {
          const size_t row = token * in.shared.num_shared + i;
          const TileOperand x(in.shared.rows, row, begin);
          const float gate = GateOf(in.shared, token, i);
          if (i == 0 && stage.op == CombineStage::kGated) {
            TakeTile(x, n, gate, tile);
          } else {
            MulAddTile(x, n, gate, i == 0 ? v : 1.0f, tile);
          }
        }
        return;
      case CombineStage::kScale:
        return TakeTile(TileOperand(tile), n, v, tile);
      case CombineStage::kRound:
        return RoundTile(args.stages->rounded, n, tile);
      case CombineStage::kJoin:
        return AddTile(TileOperand(other), n, v, stage.x, stage.sum, block);
    }
  }
  // Runs a phase's stages. Norms use the scales that the previous phase
  // computed.
  HWY_NOINLINE void RunPhase(size_t phase, const PhaseScales* scales) const {
    const CombineStages& all = *args.stages;
    const PhaseScales none = {};
    const PhaseScales& found = phase == 0 ? none : scales[phase - 1];
    for (size_t s = phase == 0 ? 0 : all.phases[phase - 1].end;
         s < all.phases[phase].end; ++s) {
      Run(all.stages[s], found);
    }
  }
  HWY_INLINE void AddPhaseSquares(size_t phase, PhaseSquares& squares) const {
    const CombinePhase& what = args.stages->phases[phase];
    if (what.block_squares) AddSquares(block, n, squares.block);
    if (what.other_squares) AddSquares(other, n, squares.other);
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_COMBINE_STAGES_INL_H_
