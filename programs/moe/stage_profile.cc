// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "stage_profile.h"

namespace moe_layer {
namespace {

// Returns the number of bytes of `rows` rows of `cols` values.
double Bytes(switchyard::Type type, double rows, double cols = 1) {
  return RowBuffer::Bytes(type, rows, cols);
}

// Returns the cost of GEMMs that multiply `rows` rows in total and read a
// weight matrix `reads` times: the bytes that they move, and their
// floating-point operations.
StageCost GemmCost(const Gemm& gemm, double rows, double reads) {
  const auto in = static_cast<double>(gemm.in());
  const auto out = static_cast<double>(gemm.out());
  return {0,
          reads * static_cast<double>(gemm.WeightBytes()) +
              Bytes(gemm.operands(), rows, in) +
              Bytes(gemm.out_type(), rows, out),
          2 * rows * in * out};
}

}  // namespace

double StageProfile::TotalSeconds() const {
  double total = 0;
  for (const StageCost& cost : stages) total += cost.seconds;
  return total;
}

double StageProfile::BetweenGemmsSeconds() const {
  double total = 0;
  for (const Stage stage :
       {Stage::kRoute, Stage::kBucket, Stage::kAroundGemms}) {
    total += (*this)[stage].seconds;
  }
  return total;
}

void AddWork(const LayerWeights& layer, size_t tokens, const WeightReads& reads,
             StageProfile* profile) {
  constexpr double kWord = 4;  // bytes of an index, a weight or a float
  const MoeShape& shape = layer.shape;
  const auto t = static_cast<double>(tokens);
  const auto pairs = t * static_cast<double>(shape.top_k);
  const auto h = static_cast<double>(shape.hidden);
  const auto e = static_cast<double>(shape.NumLogits());
  const switchyard::Type rows = layer.dtype.rows;
  const auto add = [&](Stage stage, double bytes, double flops = 0) {
    (*profile)[stage].bytes += bytes;
    (*profile)[stage].flops += flops;
  };
  const auto add_gemm = [&](Stage stage, const Gemm& gemm, double count,
                            size_t read, size_t matrices) {
    const StageCost cost = GemmCost(gemm, count, static_cast<double>(read));
    add(stage, cost.bytes, cost.flops);
    profile->weight_bytes +=
        static_cast<double>(matrices) * static_cast<double>(gemm.WeightBytes());
  };
  const auto add_experts = [&](const ExpertGemms& gemms, double count,
                               size_t read, size_t matrices) {
    add_gemm(Stage::kGateUpGemm, *gemms.gate_up, count, read, matrices);
    add_gemm(Stage::kDownGemm, *gemms.down, count, read, matrices);
    add(Stage::kAroundGemms, Bytes(gemms.gate_up->out_type(), count,
                                   static_cast<double>(gemms.gate_up->out())) +
                                 Bytes(gemms.down->operands(), count,
                                       static_cast<double>(gemms.down->in())));
  };
  for (StageCost& cost : profile->stages) cost.bytes = cost.flops = 0;
  profile->weight_bytes = 0;

  const Gemm& router = *layer.router_gemm;
  add_gemm(Stage::kRouterGemm, router, t, 1, 1);
  add(Stage::kRoute, Bytes(router.out_type(), t, e) + 2 * pairs * kWord);
  add(Stage::kBucket, (3 * pairs + 2 * e) * kWord);
  const Gemm& down = *layer.expert_gemms.down;
  add_experts(layer.expert_gemms, pairs, reads.tiles, reads.experts);
  const switchyard::Type operands = down.operands();
  add(Stage::kAroundGemms, 2 * Bytes(operands, pairs, h));
  if (operands != rows) {  // each token is converted once before the GEMMs
    add(Stage::kAroundGemms, Bytes(rows, t, h) + Bytes(operands, t, h));
  }
  // Combine reads rows, weights, row_index and the residual, and writes the sum
  // and its norm.
  add(Stage::kAroundGemms, Bytes(down.out_type(), pairs, h) +
                               2 * pairs * kWord + 3 * Bytes(rows, t, h) +
                               h * kWord);
  if (shape.shared_intermediate != 0) {
    add_experts(layer.shared_gemms, t, reads.shared_tiles, 1);
    add(Stage::kAroundGemms,
        Bytes(down.out_type(), t, h) + Bytes(router.out_type(), t));
  }
}

}  // namespace moe_layer
