// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Whole layers of model families at reduced sizes, for tests and the corpus.
// A layer begins with the router's logits and ends with the residual stream
// and the next norm. Its weights have any format.

#ifndef SWITCHYARD_TESTING_MODEL_LAYER_H_
#define SWITCHYARD_TESTING_MODEL_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/expert_weights.h"
#include "switchyard/presets.h"
#include "switchyard/status.h"
#include "testing/reference_multiply.h"

namespace switchyard::testing_support {

// A family, named by its preset, with fewer experts than its models have.
struct ModelFamily {
  const char* family;
  size_t num_experts, top_k;
};
constexpr ModelFamily kModelFamilies[] = {{"qwen3_moe", 16, 4},
                                          {"deepseek_v3", 16, 4},
                                          {"gpt_oss", 8, 4},
                                          {"mixtral", 8, 2}};

// The weight formats of gate and up, and of the down product.
struct ModelFormats {
  WeightFormat gate_up, down;
};
constexpr ModelFormats kModelFormats[] = {
    {WeightFormat::kInt8, WeightFormat::kInt8},
    {WeightFormat::kQ8_0, WeightFormat::kQ8_0},
    {WeightFormat::kQ4_0, WeightFormat::kQ4_0},
    {WeightFormat::kMXFP4, WeightFormat::kMXFP4},
    {WeightFormat::kQ4_K, WeightFormat::kQ4_K},
    {WeightFormat::kQ6_K, WeightFormat::kQ6_K},
    {WeightFormat::kF32, WeightFormat::kF32},
    {WeightFormat::kBF16, WeightFormat::kBF16},
    {WeightFormat::kQ4_K, WeightFormat::kQ8_0},
    {WeightFormat::kQ4_K, WeightFormat::kQ6_K}};

// One of several ways to compute a layer, which all give the same bits.
struct ModelCut {
  // With kByDefinition, MultiplyNaively() computes the products.
  enum Weights { kStored, kPacked, kByDefinition };
  size_t workers, tile_columns;
  Weights weights;
  // True if gate and up are separate products, as in GGUF files. Interleaved
  // weights stay one product.
  bool is_split;
};
constexpr ModelCut kModelCuts[] = {{1, 0, ModelCut::kPacked, false},
                                   {5, 32, ModelCut::kPacked, true},
                                   {1, 40, ModelCut::kStored, false},
                                   {64, 24, ModelCut::kStored, true}};

struct ModelResult {
  std::vector<int32_t> ids;
  std::vector<float> weights, out, normed;
};

class ModelLayer {
 public:
  ModelLayer(const ModelFamily& family, const ModelFormats& formats,
             size_t tokens, Executor& executor = SerialExecutor());
  ModelLayer(const ModelLayer&) = delete;

  // Runs RouteTopK(), PlanExperts() and RunExperts() on tokens [begin, end).
  Status Run(const ModelCut& cut, size_t begin, size_t end, Executor& executor,
             ModelResult* result) const;
  const Preset& preset() const { return preset_; }

 private:
  // The weights of one product, stored and packed.
  struct Weights {
    WeightBytes bytes;
    ExpertWeights stored;  // a view of `bytes`, or of other Weights
    std::vector<uint8_t> memory;
    ExpertWeights packed;

    void Make(WeightFormat format, size_t num_experts, size_t rows, size_t cols,
              uint32_t seed);
    // Makes this object a view of the first or second half of the rows of
    // each expert in `both`.
    void View(const Weights& both, bool is_second);
    Status Pack(Executor& executor);
  };
  struct Products {
    Weights both, gate, up, down;
  };

  bool IsSplit(const ModelCut& cut) const;
  LayerWeights WeightsOf(const ModelCut& cut) const;
  Status Multiply(const ModelCut& cut, const LayerWeights& weights,
                  const ExpertTile& tile) const;

  Status made_;  // the first error of PackWeights(), which Run() returns
  Preset preset_;
  size_t num_experts_, top_k_, hidden_size_, intermediate_;
  size_t shared_intermediate_ = 0;
  ModelFormats formats_;
  Products routed_, shared_;
  std::vector<float> logits_, correction_bias_, residual_, norm_;
  std::vector<float> gate_bias_, down_bias_;
  std::vector<uint16_t> hidden_;  // bf16
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_MODEL_LAYER_H_
