// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Combine. For each token, it adds up the terms (the weighted rows of slots,
// the identity expert, shared experts), runs the stages on the sum, and writes
// the result to `out`, and the result's final norm to `normed`. CombinePlan
// (src/combine_plan.h) and the number of columns choose one of these paths:
//
//   no stages, out is f32            CombineTokens() adds in registers, 4
//                                      vectors of columns at a time, and
//                                      stores to out
//   no stages, out is of another     CombineOnStack() does the same, but
//     type or not given                stores to the stack; PutRow() then
//                                      writes out
//   stages, at most kSumKept         CombineStaged() keeps the sum in a row.
//     columns                          Each phase runs its stages, up to the
//                                      next norm, on one tile after the other
//   stages, more columns             CombineStaged() keeps no row. In each
//                                      phase StagedToken::Make() computes
//                                      each tile again from its terms
//
// A call without stages has terms of one type, at most kMaxTerms of them, and
// may have the four scales, a residual and the final norm. Stages are: a norm
// of a part, a vector of CombineVectors, a rounding between steps, and a term
// of another type. SumSlowly() sums a token with more than kMaxTerms terms, a
// tile at a time. On all paths, the final norm is a separate pass, NormedRow.
//
//   combine_terms-inl.h     lists a token's terms, and reads their weights
//   combine-inl.h           sums terms: SumListed() in registers, SumSlowly()
//   combine_stages-inl.h    runs stages, each a loop of tiles-inl.h over a tile
//   combine.cc              has the paths above, and the final norm

#ifndef SWITCHYARD_SRC_SIMD_COMBINE_H_
#define SWITCHYARD_SRC_SIMD_COMBINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/combine.h"
#include "switchyard/types.h"

namespace switchyard::simd {

// kMaxTerms: the most terms that a token's list (Terms) holds. kSumKept: the
// most columns of a sum that is kept, either in `out` or on the stack.
constexpr size_t kMaxTerms = 64;
constexpr size_t kSumKept = 8192;

// A step after the sum of a token's listed terms. It works on one of two tiles
// of columns. The block's tile begins as the sum. The second tile holds the
// shared experts or the residual, if these have steps of their own before kJoin
// adds them to the block's tile. Factors that are not needed are 1. A factor of
// 1 changes no value, so no operation needs a second form without factors.
struct CombineStage {
  // The operations. `tile` is the block's tile or, with `other`, the second
  // tile. v, x and sum are the members below. M rounds to `rounded`.
  enum Op : uint8_t {
    kLoad,     // tile = x * operand
    kAdd,      // tile = (v * tile + x * operand) * sum
    kMul,      // tile = v * tile * operand
    kMulPlus,  // tile = v * tile * (1 + operand)
    kMulAdd,   // tile = fma(the token's identity weight, operand, v * tile)
    kShared,   // tile = fma(gate i, shared row i, v * tile), for each i
    kGated,    // as kShared, but the first product replaces the tile
    kScale,    // tile = v * tile
    kRound,    // tile = M(tile)
    kJoin,     // block's tile = (v * block's tile + x * second tile) * sum
  };
  Op op;
  bool other;      // `tile` is the second tile, not the block's
  bool norm;       // v is the scale of the tile's norm
  bool per_token;  // the operand has a row for each token, not one for all
  const ConstAnyMatrix* operand;
  float v, x, sum;
};

// Consecutive stages, up to the next norm that needs their results.
struct CombinePhase {
  size_t end;          // the index behind the phase's last stage
  bool block_squares;  // sum the block's squares, for its next norm
  bool other_squares;  // sum the second tile's squares, for its next norm
};

struct CombineStages {
  static constexpr size_t kMaxStages = 64;
  static constexpr size_t kMaxPhases = 3;
  CombineStage stages[kMaxStages];
  CombinePhase phases[kMaxPhases];
  size_t num_stages = 0;
  size_t num_phases = 0;
  Type rounded = Type::kF32;  // M rounds to this type
};

// The caller has checked that shapes agree with out or normed, which are
// [tokens, hidden] with hidden >= 1, and that outputs overlap no inputs unless
// they are in place. An optional view that is not given has no data.
struct CombineArgs {
  const CombineInputs& inputs;  // references, because copies of 1 KB take 60 ns
  const CombineOutputs& outputs;
  const CombineOptions& options;
  // Null if all terms are listed, only the residual follows them, and the sum
  // is either `out` or kept on the stack.
  const CombineStages* stages;
  const CombineScales* scales;  // null if all are 1, or if stages apply them
  size_t cols;
  Type rows_type;                // the type of the listed terms' rows
  bool shared_listed;            // the list has the shared experts
  bool identity_listed;          // the list has the identity expert
  std::atomic<size_t>* skipped;  // counts row_index values outside [-1, rows)
};

// Returns the kernel for listed terms of type `in`.
RowFunction<CombineArgs> CombineRows(Type in) noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_COMBINE_H_
