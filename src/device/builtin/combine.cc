// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include "src/device/call.h"
#include "switchyard/device/kernels.h"

namespace switchyard {
namespace device {
namespace {

// Rows and weights of the first `part.rows` tokens, the first `part.cols`
// columns.
CombineInputs Inputs(const Part& part, Matrix<const float> rows,
                     Matrix<const float> weights) {
  CombineInputs inputs;
  inputs.rows = Part{part.rows * weights.cols, part.cols}(rows);
  inputs.weights = weights.RowRange(0, part.rows);
  return inputs;
}

// Reads the buffers of rows and weights.
void Touch(Call& call, size_t rows, size_t weights,
           const CombineInputs& inputs) {
  call.Reads(rows, inputs.rows);
  call.Reads(weights, inputs.weights);
}

// One token; with or without the residual that buffer 2 then is.
void Stacked(Call& call, bool residual) {
  const auto p = call.Params<WeightedSumStackedParams>(3);
  const size_t slots = call.Dim("n_slots", p.n_slots);
  const size_t hidden = call.Dim("hidden", p.hidden);
  const auto rows = call.In<float>(0, "slots", slots, hidden);
  const auto weights = call.In<float>(1, "weights", 1, slots);
  const auto out = call.Out<float>(2, residual ? "residual" : "out", 1, hidden);
  const Part part = call.ColumnTiles(hidden);
  if (!call.ok()) return;
  CombineInputs inputs = Inputs(part, rows, weights);
  if (residual) inputs.residual = part(out);
  Touch(call, 0, 1, inputs);
  if (residual) call.Reads(2, part(out));
  call.Writes(2, part(out));
  if (!call.ok()) return;
  call.Finish(WeightedSum(inputs, part(out), call.executor));
}

void SumStacked(Call& call) { Stacked(call, false); }
void SumResidualStacked(Call& call) { Stacked(call, true); }

void SumBatched(Call& call) {
  const auto p = call.Params<WeightedSumBatchedParams>(3);
  const size_t batch = call.Dim("batch", p.batch);
  const size_t top_k = call.Dim("top_k", p.top_k);
  const size_t hidden = call.Dim("hidden", p.hidden);
  const auto rows = call.In<float>(0, "slots", batch * top_k, hidden);
  const auto weights = call.In<float>(1, "weights", batch, top_k);
  const auto out = call.Out<float>(2, "out", batch, hidden);
  const Part part = call.ColumnTiles(batch, hidden);
  if (!call.ok()) return;
  const CombineInputs inputs = Inputs(part, rows, weights);
  Touch(call, 0, 1, inputs);
  call.Writes(2, part(out));
  if (!call.ok()) return;
  call.Finish(WeightedSum(inputs, part(out), call.executor));
}

// `tokens` of a batch.
void RunNorm(Call& call, size_t tokens, size_t batch, size_t top_k,
             size_t hidden, float eps) {
  const auto rows = call.In<float>(0, "slots", batch * top_k, hidden);
  const auto weights = call.In<float>(1, "weights", batch, top_k);
  const auto residual = call.Out<float>(2, "residual", batch, hidden);
  const auto norm_weight = call.In<float>(3, "next_norm_w", 1, hidden);
  const auto normed = call.Out<float>(4, "normed", batch, hidden);
  if (!call.ok()) return;
  const Part part = {tokens, hidden};
  CombineInputs inputs = Inputs(part, rows, weights);
  inputs.residual = part(residual);
  Touch(call, 0, 1, inputs);
  call.Reads(2, part(residual));
  call.Reads(3, norm_weight);
  call.Writes(2, part(residual));
  call.Writes(4, part(normed));
  if (!call.ok()) return;
  call.Finish(WeightedSumRmsNorm(inputs, {norm_weight.data, hidden}, eps,
                                 part(residual), part(normed), call.executor));
}

void NormStacked(Call& call) {
  const auto p = call.Params<WeightedSumResidualNormStackedParams>(5);
  const size_t slots = call.Dim("n_slots", p.n_slots);
  const size_t hidden = call.Dim("hidden", p.hidden);
  call.OneThreadgroup(256);
  RunNorm(call, 1, 1, slots, hidden, p.eps);
}

void NormBatched(Call& call) {
  const auto p = call.Params<WeightedSumResidualNormBatchedParams>(5);
  const size_t batch = call.Dim("batch", p.batch);
  const size_t top_k = call.Dim("top_k", p.top_k);
  const size_t hidden = call.Dim("hidden", p.hidden);
  const size_t tokens = call.RowPerThreadgroup(256, batch);
  RunNorm(call, tokens, batch, top_k, hidden, p.eps);
}

void WeightedReduce(Call& call) {
  const auto p = call.Params<MoeWeightedReduceParams>(0);
  const size_t tokens = call.Dim("n_tokens", p.n_tokens);
  const size_t top_k = call.Dim("top_k", p.top_k);
  const size_t hidden = call.Dim("h", p.h);
  const auto weights = call.In<float>(1, "expert_w", tokens, top_k);
  const auto rows = call.In<float>(2, "y_expert", tokens * top_k, hidden);
  const auto gate = call.In<float>(3, "sh_gate", 1, tokens);
  const auto shared = call.In<float>(4, "y_shared", tokens, hidden);
  Matrix<const float> residual;
  if (p.add_residual != 0) {
    residual = call.In<float>(5, "residual", tokens, hidden);
  }
  const auto out = call.Out<float>(6, "output", tokens, hidden);
  const Part part = call.ColumnTiles(tokens, hidden);
  if (!call.ok()) return;
  CombineInputs inputs = Inputs(part, rows, weights);
  inputs.shared = {part(shared), {gate.data, part.rows}, SharedGate::kLogit};
  if (residual.data != nullptr) inputs.residual = part(residual);
  Touch(call, 2, 1, inputs);
  call.Reads(3, gate.ColRange(0, part.rows));
  call.Reads(4, part(shared));
  if (residual.data != nullptr) call.Reads(5, part(residual));
  call.Writes(6, part(out));
  if (!call.ok()) return;
  call.Finish(WeightedSum(inputs, part(out), call.executor));
}

constexpr BuiltIn kKernels[] = {
    {"weighted_sum_stacked_f32", SumStacked},
    {"weighted_sum_residual_stacked_f32", SumResidualStacked},
    {"weighted_sum_batched_f32", SumBatched},
    {"weighted_sum_residual_norm_stacked_f32", NormStacked},
    {"weighted_sum_residual_norm_batched_f32", NormBatched},
    {"moe_weighted_reduce_f32", WeightedReduce},
};

}  // namespace

Span<const BuiltIn> CombineKernels() { return kKernels; }

}  // namespace device
}  // namespace switchyard
