// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Combine: a token's terms (weighted rows of slots, identity, shared experts)
// -> their sum -> stages -> out -> final norm -> normed. CombinePlan
// (src/combine_plan.h) and the number of columns choose one of these paths:
//
//   no stages, out is f32            CombineTokens(): the sum in registers, 4
//                                      vectors of columns at a time, to out
//   no stages, another out or none   CombineOnStack(): the same to the stack,
//                                      then PutRow() to out
//   stages, up to kSumKept columns   CombineStaged(): the sum to a row, a tile
//                                      at a time, and each tile through the
//                                      stages up to the next norm
//   stages, wider rows               CombineStaged() by StagedToken::Make(): no
//                                      row; tiles are made again for each phase
//
// Without stages there are terms of one type, at most kMaxTerms of them, the
// four scales, a residual and the final norm. A norm of a part, a vector, a
// rounding between steps or a term of another type is a stage. A token of
// more than kMaxTerms terms is summed by SumSlowly(), a tile at a time. The
// final norm is a separate pass, NormedRow, on all paths.
//
//   combine_terms-inl.h     a token's terms, listed, and their numbers
//   combine-inl.h           their sum: SumListed() in registers, SumSlowly()
//   combine_stages-inl.h    stages, each a loop of tiles-inl.h over a tile
//   combine.cc              the paths above, and the final norm

#ifndef SWITCHYARD_SRC_SIMD_COMBINE_H_
#define SWITCHYARD_SRC_SIMD_COMBINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/combine.h"
#include "switchyard/types.h"

namespace switchyard::simd {

// The most terms of a token's sum that are listed. The most columns of a sum
// that are kept on the stack, if the sum is not out.
constexpr size_t kMaxTerms = 64;
constexpr size_t kSumKept = 8192;

// The steps after a token's sum of listed terms, a tile of columns at a time,
// on two tiles: the block's and another. A factor of 1 changes nothing, so a
// product with a factor needs no separate stage without it.
struct CombineStage {
  enum Op : uint8_t {
    kLoad,     // tile = x * operand
    kAdd,      // tile = (v * tile + x * operand) * sum
    kMul,      // tile = v * tile * operand
    kMulPlus,  // tile = v * tile * (1 + operand)
    kMulAdd,   // tile = fma(identity's weight, operand, tile)
    kShared,   // tile = fma(gate i, shared row i, v * tile), for each i
    kGated,    // the same, the first product stored
    kScale,    // tile = v * tile
    kRound,    // tile = M(tile)
    kJoin,     // kAdd of the other tile to the block's
  };
  Op op;
  bool other;      // than the block's tile
  bool norm;       // v is the scale of the tile's norm
  bool per_token;  // a row of the operand for each, or the same for all
  const ConstAnyMatrix* operand;
  float v, x, sum;
};

// The stages up to the next one that needs a norm of their results.
struct CombinePhase {
  size_t end;          // of its stages
  bool block_squares;  // add up, for the block's next norm
  bool other_squares;  // the same for the other tile's
};

struct CombineStages {
  static constexpr size_t kMaxStages = 64;
  static constexpr size_t kMaxPhases = 3;
  CombineStage stages[kMaxStages];
  CombinePhase phases[kMaxPhases];
  size_t num_stages = 0;
  size_t num_phases = 0;
  Type rounded = Type::kF32;  // M
};

// Checked: shapes agree with out or normed, [tokens, hidden], hidden >= 1;
// outputs are disjoint from inputs, except in place. An optional view has
// data exactly if it is given.
struct CombineArgs {
  const CombineInputs& inputs;  // copying a kilobyte would take 60 ns
  const CombineOutputs& outputs;
  const CombineOptions& options;
  // Null: all terms fit their list, at most the residual follows, and the sum
  // is out or is kept.
  const CombineStages* stages;
  const CombineScales* scales;  // null: all 1, or among the stages
  size_t cols;
  Type rows_type;                // of the listed terms
  bool shared_listed;            // the shared experts are among these,
  bool identity_listed;          // the identity expert
  std::atomic<size_t>* skipped;  // row_index values outside [-1, rows)
};

// `in`: the type of the listed terms.
RowFunction<CombineArgs> CombineRows(Type in) noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_COMBINE_H_
