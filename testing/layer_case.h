// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Layers of RunExperts() with any options. OneByOne() computes the same layer
// with single calls, for comparison. Tests, fuzzers and the corpus use this
// file. The matrix product of the layers gives the same bits for any tiling.

#ifndef SWITCHYARD_TESTING_LAYER_CASE_H_
#define SWITCHYARD_TESTING_LAYER_CASE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/layer.h"
#include "testing/formats.h"

namespace switchyard::testing_support {

// The parameters of a layer.
struct LayerCase {
  ExpertsPlanOptions plan;
  size_t tokens = 1, top_k = 1;
  Activation activation = Activation::kSilu;
  GateUpLayout layout = GateUpLayout::kConcatenated;
  Format operands = kF32Rows, hidden = kF32Rows;
  std::optional<Format> down_operands;
  Type gate_up_type = Type::kF32, down_type = Type::kF32,
       weight_type = Type::kF32;
  bool has_biases = false, has_residual = false, has_norm = false,
       has_shared_hidden = false, weights_on_input = false;
  // If not 0, about 1 / dropped of all ids name no expert.
  size_t dropped = 0;
  uint32_t seed = 1;
};

// Draws a format that ExpertsLayer multiplies. In this file, `source` has a
// method size_t Below(size_t n).
template <class Source>
Format DrawLayerFormat(Source& source) {
  for (;;) {
    const Format& f = kFormats[source.Below(std::size(kFormats))];
    if (f.IsSource()) return f;
  }
}
// Draws a case without down_operands. The corpus holds digests of such cases,
// so the draws and their order may not change.
template <class Source>
LayerCase DrawLayerCase(Source& source) {
  LayerCase c;
  const auto flag = [&] { return source.Below(2) != 0; };
  const auto type = [&] { return static_cast<Type>(source.Below(3)); };
  const auto format = [&] { return DrawLayerFormat(source); };
  c.tokens = flag() ? 1 + source.Below(3) : source.Below(70);
  c.plan.num_experts = 1 + source.Below(12);
  c.top_k = 1 + source.Below(c.plan.num_experts);
  c.plan.hidden = 1 + source.Below(90);
  c.plan.intermediate = 1 + source.Below(70);
  if (flag()) c.plan.shared_intermediate = 1 + source.Below(90);
  c.plan.workers = 1 + source.Below(20);
  c.plan.tile_rows = 1 + source.Below(20);
  c.plan.tile_columns = flag() ? source.Below(20) : 1 + source.Below(3);
  c.plan.max_rows = 1 + source.Below(40);
  c.plan.weight_cost = flag() ? 512 : source.Below(100);
  c.plan.row_cost = source.Below(20);
  c.plan.least_cost = flag() ? 0 : source.Below(200);
  c.plan.allow_dropped = flag();
  if (c.plan.allow_dropped) c.dropped = source.Below(5);
  c.layout = static_cast<GateUpLayout>(source.Below(4));
  c.activation = flag() ? Activation::kSilu : Activation::kRelu;
  c.operands = flag() ? kF32Rows : format();
  c.hidden = flag() ? c.operands : format();
  c.gate_up_type = type();
  c.down_type = type();
  c.weight_type = type();
  c.has_biases = flag();
  c.has_residual = flag();
  c.has_norm = flag();
  c.has_shared_hidden = c.plan.shared_intermediate != 0 && flag();
  c.weights_on_input = flag();
  c.seed = static_cast<uint32_t>(source.Below(1000));
  return c;
}
// Draws a case with or without down_operands.
template <class Source>
LayerCase DrawAnyLayerCase(Source& source) {
  LayerCase c = DrawLayerCase(source);
  if (source.Below(2) != 0) c.down_operands = DrawLayerFormat(source);
  return c;
}

struct LayerResult {
  std::vector<float> out, normed;
};

// The inputs and weights of a case.
class ExpertsLayer {
 public:
  explicit ExpertsLayer(const LayerCase& c);
  ExpertsLayer(const ExpertsLayer&) = delete;

  ExpertsOptions Options() const;
  // Returns the inputs. The caller sets the plan and the scratch.
  ExpertsInputs Inputs() const;
  ConstAnyMatrix ids() const;
  const LayerCase& layer_case() const { return case_; }
  Format down_operands() const {
    return case_.down_operands.value_or(case_.operands);
  }
  // out[r, c] = sum over i of rows[r, i] * weights[i, c], added in double in
  // the order of i and rounded twice. So any tiling gives the same bits.
  Status Multiply(const ExpertTile& tile) const;

  // Runs PlanExperts() and RunExperts() in memory of exactly the required
  // size. The scratch has room for `scratch_workers` workers or, if that is
  // 0, for all workers of the executor.
  Status Run(Executor& executor, LayerResult* result,
             size_t scratch_workers = 0) const;
  // Runs the layer with the caller's matrix product.
  Status Run(const ExpertGemm& gemm, Executor& executor, LayerResult* result,
             size_t scratch_workers = 0) const;
  // Computes the layer with one call after the other. Each call computes all
  // rows.
  LayerResult OneByOne() const;

 private:
  CombineOutputs OutputsOf(LayerResult* result) const;
  const float* WeightsOf(ExpertProduct product, int32_t expert) const;

  const LayerCase case_;
  std::vector<int32_t> ids_;
  FormatRows hidden_, shared_hidden_;
  FormatRows topk_weights_;
  std::vector<float> gate_up_, down_, shared_gate_up_, shared_down_;
  std::vector<float> gate_bias_, up_bias_, residual_, norm_, shared_gate_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_LAYER_CASE_H_
