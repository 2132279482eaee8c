// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes layers with any options through the C ABI and by RunExperts().
// Both results have to have the same bits.

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "src/c/convert.h"
#include "testing/inputs.h"
#include "testing/layer_case.h"
#include "tests/target_test.h"

namespace switchyard::c {
namespace {

using testing_support::ExpertsLayer;
using testing_support::LayerCase;
using testing_support::LayerResult;

swy_matrix MatrixOf(const ConstAnyMatrix& m) {
  swy_matrix c;
  Convert(&m, &c);
  return c;
}
swy_rows RowsOf(const ConstAnyRows& rows) {
  return {MatrixOf(rows), MatrixOf(rows.scales), MatrixOf(rows.sums)};
}
swy_status Multiply(void* context, const swy_expert_tile* c) {
  ExpertTile tile = {static_cast<ExpertProduct>(c->product),
                     c->expert,
                     c->first_column,
                     c->worker,
                     {},
                     {}};
  Convert(&c->rows, &tile.rows);
  Convert(&c->out, &tile.out);
  const Status status =
      static_cast<const ExpertsLayer*>(context)->Multiply(tile);
  return {static_cast<int32_t>(status.code()), status.message()};
}

// Runs the layer like ExpertsLayer::Run(), but through the C ABI.
LayerResult RunInC(const ExpertsLayer& layer, const swy_executor* executor) {
  const LayerCase& c = layer.layer_case();
  swy_experts_plan_options shape = SWY_EXPERTS_PLAN_OPTIONS_INIT;
  WriteFields(c.plan, &shape);
  std::vector<int32_t> memory(swy_experts_plan_size(c.tokens, c.top_k, &shape));
  swy_experts_plan plan;
  swy_experts_plan_inputs pairs = SWY_EXPERTS_PLAN_INPUTS_INIT;
  pairs.topk_ids = MatrixOf(layer.ids());
  swy_experts_plan_outputs planned = SWY_EXPERTS_PLAN_OUTPUTS_INIT;
  planned.memory = {memory.data(), memory.size()};
  planned.plan = &plan;
  EXPECT_STREQ(swy_plan_experts(&pairs, &planned, &shape, executor).message,
               "");

  const ExpertsOptions cpp_options = layer.Options();
  swy_experts_options options = SWY_EXPERTS_OPTIONS_INIT;
  swy_activate_options activate = SWY_ACTIVATE_OPTIONS_INIT, shared = activate;
  WriteFields(cpp_options, &options);
  WriteFields(cpp_options.activate, &activate);
  WriteFields(cpp_options.shared_activate, &shared);
  options.activate = &activate;
  options.shared_activate = &shared;
  swy_row_format down_operands = {};
  if (cpp_options.down_operands.has_value()) {
    const RowFormat& format = *cpp_options.down_operands;
    down_operands = {static_cast<int32_t>(format.type),
                     static_cast<int32_t>(format.scale_type),
                     format.scale_columns, format.has_sums};
    options.down_operands = &down_operands;
  }
  std::vector<int32_t> scratch(swy_experts_scratch_size(&plan, &options, 2));

  const ExpertsInputs cpp_in = layer.Inputs();
  swy_combine_inputs combine = SWY_COMBINE_INPUTS_INIT;
  combine.topk_weights = MatrixOf(cpp_in.combine.topk_weights);
  combine.residual = MatrixOf(cpp_in.combine.residual);
  combine.norm_weight = MatrixOf(cpp_in.combine.norm_weight);
  combine.shared.gate = MatrixOf(cpp_in.combine.shared.gate);
  swy_experts_inputs in = SWY_EXPERTS_INPUTS_INIT;
  in.plan = &plan;
  in.hidden = RowsOf(cpp_in.hidden);
  in.shared_hidden = RowsOf(cpp_in.shared_hidden);
  in.gate_bias = MatrixOf(cpp_in.gate_bias);
  in.up_bias = MatrixOf(cpp_in.up_bias);
  in.combine = &combine;
  in.scratch = {scratch.data(), scratch.size()};

  LayerResult result;
  result.out.resize(c.tokens * c.plan.hidden);
  swy_combine_outputs out = SWY_COMBINE_OUTPUTS_INIT;
  out.out = swy_dense(result.out.data(), SWY_F32, c.tokens, c.plan.hidden);
  if (c.has_norm) {
    result.normed.resize(result.out.size());
    out.normed = swy_plain_rows(
        swy_dense(result.normed.data(), SWY_F32, c.tokens, c.plan.hidden));
  }
  swy_expert_gemm gemm = SWY_EXPERT_GEMM_INIT;
  gemm.run = Multiply;
  gemm.context = const_cast<ExpertsLayer*>(&layer);
  EXPECT_STREQ(swy_run_experts(&in, &out, &options, &gemm, executor).message,
               "");
  return result;
}

TEST(Experts, HaveTheBitsOfCpp) {
  const std::unique_ptr<const swy_executor, void (*)(const swy_executor*)> tbb(
      swy_tbb_executor_create(2), swy_tbb_executor_destroy);
  testing_support::Random random(1);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const ExpertsLayer layer(testing_support::DrawAnyLayerCase(random));
    LayerResult wanted;
    ASSERT_TRUE(layer.Run(SerialExecutor(), &wanted).ok());
    for (const swy_executor* executor : {tbb.get(), {}}) {
      const LayerResult found = RunInC(layer, executor);
      ASSERT_EQ(testing_support::CanonicalBits(found.out),
                testing_support::CanonicalBits(wanted.out));
      ASSERT_EQ(testing_support::CanonicalBits(found.normed),
                testing_support::CanonicalBits(wanted.normed));
    }
  }
}

}  // namespace
}  // namespace switchyard::c
