// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_MOE_BLOCK_H_
#define SWITCHYARD_PROGRAMS_MOE_MOE_BLOCK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layer_weights.h"
#include "memory.h"
#include "stage_profile.h"
#include "switchyard/bucket.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace moe_layer {

// The results of a run of the block, in the order of computation.
struct BlockResults {
  // The inputs of the router and the shared expert, if these have a norm of
  // their own; else empty.
  switchyard::AnyMatrix router_normed, shared_normed;  // [tokens, hidden]
  switchyard::AnyMatrix logits;                        // [tokens, logits]
  switchyard::AnyMatrix shared_logits;                 // [tokens, 1], or empty
  switchyard::Matrix<int32_t> ids;                     // [tokens, top_k]
  switchyard::Matrix<float> weights;                   // [tokens, top_k]
  switchyard::AnyMatrix identity;         // [tokens, 1]: zero experts' weight
  switchyard::PackedBuckets buckets;      // of all experts
  switchyard::Matrix<int32_t> row_index;  // [tokens, top_k], the buckets'
  switchyard::AnyMatrix expert_rows;      // [tokens * top_k, hidden], packed
  switchyard::AnyMatrix shared_rows;      // [tokens, hidden], or empty
  switchyard::AnyMatrix out;              // [tokens, hidden]
  switchyard::AnyMatrix next_normed;      // [tokens, hidden], or empty
};

// One MoE block: the part of an inference engine that Switchyard is for.
//
//   normed -> router GEMM -> RouteTopK -> BucketPacked
//   -> Quantize, for int8: each token once
//   -> per expert: GatherRows -> gate and up GEMMs -> Activate -> down GEMM
//   -> Combine: the experts' rows + shared expert + residual, and the next norm
//
// What of this a family does otherwise is in MoeShape and LayerWeights; there
// are no other families here.
// The executor's threads are the only ones. All memory is taken up front.
class MoeBlock {
 public:
  // `weights` and `executor` have to outlive the block. tokens * top_k has to
  // fit an int32_t. Throws std::bad_alloc.
  MoeBlock(const LayerWeights& weights, size_t tokens,
           switchyard::Executor& executor);

  // The bytes that a block holds besides the weights.
  static double MemoryNeeded(const MoeShape& shape, const Dtype& dtype,
                             size_t tokens, size_t threads);

  // hidden: the residual stream [tokens, hidden]; normed: its RMSNorm; both of
  // the type that the layer's Dtype says. Results are the same bits for any
  // executor. Throws std::runtime_error if a kernel, a GEMM or the executor
  // reports an error.
  void Run(const switchyard::ConstAnyMatrix& hidden,
           const switchyard::ConstAnyMatrix& normed);

  const BlockResults& results() const { return results_; }
  const StageProfile& profile() const { return profile_; }

 private:
  static constexpr size_t kSharedExpert = SIZE_MAX;
  // A GEMM of 64 rows takes 86 us a row, of 128 rows 70, of 256 rows 61 (2048 x
  // 768, one AVX-512 core); of 512 tokens, no expert gets more than 149.
  static constexpr size_t kTileRows = 256;
  // Rows of one expert that go through its GEMMs together.
  struct Tile {
    size_t expert;  // or kSharedExpert
    size_t begin;   // a packed row; of the shared expert, a token
    size_t rows;
  };

  // The memory of one of the executor's workers for its tiles, on cache lines
  // of its own.
  struct alignas(64) Worker {
    RowBuffer gathered;            // [tile rows, hidden]
    RowBuffer gate_up;             // [tile rows, 2 * intermediate], fused
    RowBuffer activated;           // [tile rows, intermediate] if not in place
    std::vector<float> row_scale;  // [tile rows] if the input is weighted
    GemmScratch scratch;
    std::array<double, kNumStages> seconds;
  };

  void MakeBuffers();
  void MakeResults();
  void RouterGemm();
  void Route();
  void CutTiles();
  void RunTile(const Tile& tile, Worker& worker);
  void ActivateTile(const Tile& tile, const switchyard::AnyMatrix& gate_up,
                    const switchyard::AnyRows& activated, Worker& worker);
  void Combine(const switchyard::ConstAnyMatrix& hidden,
               const switchyard::ConstAnyMatrix& normed);
  // The norm `which` of `hidden`, if the layer has that; else `normed`.
  switchyard::ConstAnyMatrix NormOf(Vector which,
                                    const switchyard::ConstAnyMatrix& hidden,
                                    const switchyard::ConstAnyMatrix& normed,
                                    const switchyard::AnyMatrix& out);
  // `normed` as a GEMM multiplies it, converted to `buffer` if need be.
  switchyard::ConstAnyRows OperandsOf(const switchyard::ConstAnyMatrix& normed,
                                      const RowBuffer& buffer);

  const LayerWeights& layer_;
  switchyard::Executor& executor_;
  const size_t tokens_;

  // The results.
  RowBuffer logits_, expert_rows_, shared_rows_, out_, next_normed_;
  RowBuffer router_normed_, shared_normed_;
  std::vector<float> topk_weights_;
  std::vector<float> identity_;
  std::vector<float> ones_;  // what rows count that were weighted before
  std::vector<int32_t> ints_;
  // The normed rows where the GEMMs take another type.
  RowBuffer router_operands_, expert_operands_, shared_operands_;
  std::vector<int32_t> bucket_scratch_;
  std::vector<Tile> tiles_;
  std::vector<Worker> workers_;
  BlockResults results_;
  StageProfile profile_;
  // During Run: normed rows as the GEMMs take them.
  switchyard::ConstAnyRows router_rows_, rows_, shared_input_;
};

// The norm that opens the block. In a model, the layer before has left it: it
// is that layer's "next norm". Throws std::runtime_error on failure.
void InputNorm(const LayerWeights& layer,
               const switchyard::ConstAnyMatrix& hidden,
               const switchyard::AnyMatrix& normed,
               switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_MOE_BLOCK_H_
