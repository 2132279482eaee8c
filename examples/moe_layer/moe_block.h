// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_MOE_BLOCK_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_MOE_BLOCK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layer_weights.h"
#include "memory.h"
#include "switchyard/bucket.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace moe_layer {

enum class Stage {
  kRouterGemm,
  kRoute,
  kBucket,
  kGather,
  kGateUpGemm,
  kActivate,
  kDownGemm,
  kWaiting,  // threads of the expert section that have run out of tiles
  kCombine,
};
constexpr size_t kNumStages = static_cast<size_t>(Stage::kCombine) + 1;

struct StageCost {
  double seconds = 0;
  double bytes = 0;  // that the stage has to read and write at least
  double flops = 0;  // of GEMMs only
};

// Where one run of the block spent its time. The stages inside the expert
// section are averages over the threads, so that all of them add up to the time
// that passed.
struct StageProfile {
  std::array<StageCost, kNumStages> stages;

  StageCost& operator[](Stage stage) {
    return stages[static_cast<size_t>(stage)];
  }
  const StageCost& operator[](Stage stage) const {
    return stages[static_cast<size_t>(stage)];
  }
  double TotalSeconds() const;
  // Route, bucket, gather, activate and combine: what Switchyard does.
  double BetweenGemmsSeconds() const;
};

// What a run of the block computes, in this order.
struct BlockResults {
  switchyard::Matrix<float> logits;         // [tokens, num_experts]
  switchyard::Matrix<float> shared_logits;  // [tokens, 1], or empty
  switchyard::Matrix<int32_t> ids;          // [tokens, top_k]
  switchyard::Matrix<float> weights;        // [tokens, top_k]
  switchyard::PackedBuckets buckets;        // of all experts
  switchyard::Matrix<int32_t> row_index;    // [tokens, top_k], the buckets'
  switchyard::Matrix<float> expert_rows;    // [tokens * top_k, hidden], packed
  switchyard::Matrix<float> shared_rows;    // [tokens, hidden], or empty
  switchyard::Matrix<float> out;            // [tokens, hidden]
  switchyard::Matrix<float> next_normed;    // [tokens, hidden]
};

// One MoE block: the part of an inference engine that Switchyard is for.
//
//   normed -> router GEMM -> RouteTopK -> BucketPacked
//   -> per expert: GatherRows -> gate and up GEMMs -> Activate -> down GEMM
//   -> Combine: the experts' rows + shared expert + residual, and the next norm
//
// The executor's threads are the only ones. All memory is taken up front.
class MoeBlock {
 public:
  // `weights` and `executor` have to outlive the block. tokens * top_k has to
  // fit an int32_t. Throws std::bad_alloc.
  MoeBlock(const LayerWeights& weights, size_t tokens,
           switchyard::Executor& executor);

  // What a block holds besides the weights, in bytes.
  static double MemoryNeeded(const MoeShape& shape, size_t tokens,
                             size_t threads);

  // hidden: the residual stream [tokens, hidden]; normed: its RMSNorm. Results
  // are the same bits for any executor. Throws std::runtime_error if a kernel,
  // a GEMM or the executor reports an error.
  void Run(switchyard::Matrix<const float> hidden,
           switchyard::Matrix<const float> normed);

  const BlockResults& results() const { return results_; }
  const StageProfile& profile() const { return profile_; }

 private:
  // Rows of one expert that go through its GEMMs together.
  struct Tile {
    size_t expert;  // or kSharedExpert
    size_t begin;   // a packed row; of the shared expert, a token
    size_t rows;
  };

  // What one of the executor's workers runs tiles in; on cache lines of its
  // own.
  struct alignas(64) Worker {
    FloatBuffer gathered;  // [tile rows, hidden]
    FloatBuffer gate_up;   // [tile rows, 2 * intermediate], fused
    std::array<double, kNumStages> seconds;
  };

  void RouterGemm();
  void CutTiles();
  void RunTile(const Tile& tile, Worker& worker);
  void Combine(switchyard::Matrix<const float> hidden);

  const LayerWeights& layer_;
  switchyard::Executor& executor_;
  const size_t tokens_;

  FloatBuffer floats_;
  std::vector<int32_t> ints_;
  std::vector<int32_t> bucket_scratch_;
  std::vector<Tile> tiles_;
  std::vector<Worker> workers_;
  BlockResults results_;
  StageProfile profile_;
  switchyard::Matrix<const float> normed_;  // during Run
};

// The norm that opens the block. In a model, the layer before has left it: it
// is that layer's "next norm". Throws std::runtime_error on failure.
void InputNorm(const LayerWeights& layer,
               switchyard::Matrix<const float> hidden,
               switchyard::Matrix<float> normed,
               switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_MOE_BLOCK_H_
