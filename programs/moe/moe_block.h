// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_MOE_BLOCK_H_
#define SWITCHYARD_PROGRAMS_MOE_MOE_BLOCK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "layer_weights.h"
#include "memory.h"
#include "stage_profile.h"
#include "switchyard/bucket.h"
#include "switchyard/executor.h"
#include "switchyard/layer.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace moe_layer {

// The results of one run of the block, in the order of computation. A pair is a
// token and one of its selected experts.
struct BlockResults {
  // The inputs of the router and of the shared expert. Empty if the router, or
  // the shared expert, has no norm of its own.
  switchyard::AnyMatrix router_normed, shared_normed;  // [tokens, hidden]
  switchyard::AnyMatrix logits;                        // [tokens, logits]
  switchyard::AnyMatrix shared_logits;                 // [tokens, 1], or empty
  switchyard::Matrix<int32_t> ids;                     // [tokens, top_k]
  switchyard::Matrix<float> weights;                   // [tokens, top_k]
  switchyard::AnyMatrix identity;         // [tokens, 1], zero experts' weights
  switchyard::PackedBuckets buckets;      // the pairs, sorted by expert
  switchyard::Matrix<int32_t> row_index;  // [tokens, top_k], rows of buckets
  switchyard::AnyMatrix expert_rows;  // [pairs, hidden], sorted as `buckets`
  switchyard::AnyMatrix shared_rows;  // [tokens, hidden], or empty
  switchyard::AnyMatrix out;          // [tokens, hidden]
  switchyard::AnyMatrix next_normed;  // [tokens, hidden], or empty
};

// One MoE block, as an inference engine runs it with Switchyard.
//
//   normed -> router GEMM -> RouteTopK -> PlanExperts -> RunExperts
//
// All differences between model families are in MoeShape and LayerWeights. Only
// the executor's threads compute. The constructor allocates all memory, except
// the GEMMs' scratch.
class MoeBlock {
 public:
  // `weights` and `executor` must outlive the block. tokens * top_k must fit an
  // int32_t. Throws std::bad_alloc.
  MoeBlock(const LayerWeights& weights, size_t tokens,
           switchyard::Executor& executor);

  // Returns the largest number of bytes that a block holds, without the
  // weights.
  static double MemoryNeeded(const MoeShape& shape, const Dtype& dtype,
                             size_t tokens, size_t threads);

  // Runs the block. `hidden` is the residual stream [tokens, hidden], and
  // `normed` is its RMSNorm; both have the type Dtype::rows of the layer.
  // Results have the same bits on any executor. Throws std::runtime_error if a
  // kernel, a GEMM or the executor reports an error.
  void Run(const switchyard::ConstAnyMatrix& hidden,
           const switchyard::ConstAnyMatrix& normed);

  const BlockResults& results() const { return results_; }
  const StageProfile& profile() const { return profile_; }

 private:
  using Clock = std::chrono::steady_clock;

  // The state of one of the executor's workers, on separate cache lines.
  struct alignas(64) Worker {
    GemmScratch scratch;
    std::exception_ptr error;
    // The total times of the worker's products, and the end of its last
    // product.
    Clock::duration gate_up_time, down_time;
    Clock::time_point last_product;
  };

  void MakeResults();
  void RouterGemm(const switchyard::ConstAnyMatrix& normed);
  void Route();
  void Plan();
  void RunExperts(const switchyard::ConstAnyMatrix& hidden,
                  const switchyard::ConstAnyMatrix& normed);
  switchyard::Status Multiply(const switchyard::ExpertTile& tile);
  void SetTimes(Clock::time_point begin, Clock::time_point end);
  // If the layer has the norm `which`, computes this norm of `hidden`, writes
  // it to `out` and returns `out`. Otherwise returns `normed`.
  switchyard::ConstAnyMatrix NormOf(Vector which,
                                    const switchyard::ConstAnyMatrix& hidden,
                                    const switchyard::ConstAnyMatrix& normed,
                                    const switchyard::AnyMatrix& out);

  const LayerWeights& layer_;
  switchyard::Executor& executor_;
  const size_t tokens_;
  const switchyard::ExpertsPlanOptions plan_options_;
  const switchyard::ExpertsOptions options_;

  RowBuffer logits_, out_, next_normed_, router_normed_, shared_normed_;
  std::vector<float> topk_weights_, identity_;
  std::vector<int32_t> ids_;
  // The router's input, if the router's GEMM needs another type than `normed`.
  RowBuffer router_operands_;
  std::vector<int32_t> plan_memory_;
  switchyard::ExpertsPlan plan_;
  Buffer scratch_;
  std::vector<Worker> workers_;
  BlockResults results_;
  StageProfile profile_;
};

// Computes the norm of the block's input. In a model, the previous layer
// computes this norm as its "next norm". Throws std::runtime_error on failure.
void InputNorm(const LayerWeights& layer,
               const switchyard::ConstAnyMatrix& hidden,
               const switchyard::AnyMatrix& normed,
               switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_MOE_BLOCK_H_
