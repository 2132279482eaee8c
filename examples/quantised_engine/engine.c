// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// engine.cc in C: an engine that multiplies by the library's kernels, from a
// checkpoint's config.json to the residual stream. It prints the same number as
// engine.cc.

#include <stdio.h>
#include <stdlib.h>
#include <switchyard/switchyard.h>

#include "config.h"

enum { kMost = 8, kMaxLayers = 64 };  // tokens of a prompt, and layers

static void* New(size_t count, size_t size) {
  void* const memory =
      count == SIZE_MAX || size == SIZE_MAX ? NULL : calloc(count, size);
  if (memory == NULL)
    Fail("config.json: its sizes fit neither q4_0 nor memory");
  return memory;
}
// Returns made-up numbers instead of a tensor of the checkpoint.
static float* Tensor(size_t size) {
  static size_t seed = 0;
  float* const x = (float*)New(size, sizeof *x);
  const size_t first = ++seed * 104729;
  for (size_t i = 0; i < size; ++i)
    x[i] = (float)((i * 7919 + first) % 2000) / 8000.0f - 0.125f;
  return x;
}
// Quantises and packs a tensor. An engine can instead use a GGUF file's tensor
// in place.
static swy_expert_weights Load(size_t experts, size_t rows, size_t cols,
                               const swy_executor* pool) {
  swy_expert_weights weights = SWY_NO_EXPERT_WEIGHTS;
  swy_pack_weights_inputs in = SWY_PACK_WEIGHTS_INPUTS_INIT;
  swy_pack_weights_outputs out = SWY_PACK_WEIGHTS_OUTPUTS_INIT;
  float* const floats = Tensor(experts * rows * cols);
  weights.format = SWY_WEIGHTS_Q4_0, weights.rows = rows, weights.cols = cols;
  const size_t size = swy_packed_weights_size(&weights);
  in.weights = weights, out.weights = &weights;
  in.floats = swy_dense(floats, SWY_F32, experts * rows, cols);
  out.memory = swy_dense(New(experts, size), SWY_U8, experts, size);
  Check(swy_pack_weights(&in, &out, NULL, pool));
  free(floats);
  return weights;
}
int main(int argc, char** argv) {
  // Makes a pool, which lives as long as the engine. The result is null if the
  // library was built without TBB.
  const swy_executor* const pool = swy_tbb_executor_create(-1);
  const size_t workers = pool == NULL ? 1 : pool->concurrency;
  swy_model_config config = SWY_MODEL_CONFIG_INIT;
  swy_activate_options activate = SWY_ACTIVATE_OPTIONS_INIT;
  swy_combine_options combine = SWY_COMBINE_OPTIONS_INIT;
  swy_combine_form form = SWY_COMBINE_FORM_INIT;
  swy_preset preset = SWY_PRESET_INIT;
  swy_route_options route = SWY_ROUTE_OPTIONS_INIT;
  Sizes sizes = {0, 0, 0, 0};
  preset.family =
      ReadConfig(argc == 2 ? argv[1] : "config.json", &config, &sizes);
  preset.activate = &activate, preset.combine = &combine, preset.form = &form;
  Check(swy_apply_config(&config, &preset, &route));

  const size_t E = preset.num_experts, K = preset.top_k;
  const size_t H = sizes.hidden, I = sizes.intermediate, S = sizes.shared;
  const size_t L = sizes.layers;
  swy_experts_plan_options shape = SWY_EXPERTS_PLAN_OPTIONS_INIT;
  swy_experts_options options = SWY_EXPERTS_OPTIONS_INIT;
  shape.num_experts = E, shape.hidden = H, shape.intermediate = I;
  shape.shared_intermediate = S, shape.workers = workers;
  swy_set_costs(SWY_WEIGHTS_Q4_0, &shape);
  activate.layout = SWY_SPLIT;  // gate and up are two tensors, as in GGUF files
  options.activate = options.shared_activate = &activate;
  options.combine = &combine;
  options.operands = swy_operands_of(SWY_WEIGHTS_Q4_0);
  static swy_layer_weights layers[kMaxLayers];
  // The last row of each router is the shared expert's gate.
  static float* routers[kMaxLayers];
  if (L > kMaxLayers) Fail("config.json: num_hidden_layers is above 64");
  for (size_t l = 0; l < L; ++l) {
    routers[l] = Tensor((E + 1) * H);
    layers[l] = (swy_layer_weights)SWY_LAYER_WEIGHTS_INIT;
    layers[l].gate = Load(E, I, H, pool), layers[l].up = Load(E, I, H, pool);
    layers[l].down = Load(E, H, I, pool);
    layers[l].shared_gate = Load(1, S, H, pool);
    layers[l].shared_up = Load(1, S, H, pool);
    layers[l].shared_down = Load(1, H, S, pool);
  }
  float* const norms = Tensor((L + 1) * H);

  // Memory for prompts of up to kMost tokens, which all layers and steps share.
  float* const stream = Tensor(kMost * H);
  float* const rows = (float*)New(2 * kMost * H, sizeof(float));
  float* const scores = (float*)New(kMost * (E + 1), sizeof(float));
  float* const weights = (float*)New(kMost * K, sizeof(float));
  int32_t* const ids = (int32_t*)New(kMost * K, sizeof(int32_t));
  swy_i32_span memory = {NULL, swy_experts_plan_size(kMost, K, &shape)};
  swy_i32_span scratch = {NULL, swy_experts_scratch_size_of_any(
                                    kMost, K, &shape, &options, workers)};
  memory.data = (int32_t*)New(memory.size, sizeof(int32_t));
  scratch.data = (int32_t*)New(scratch.size, sizeof(int32_t));
  for (size_t step = 0; step < 2; ++step) {  // first a prompt, then a token
    const size_t tokens = step == 0 ? kMost : 1;
    const swy_matrix residual = swy_dense(stream, SWY_F32, tokens, H);
    const swy_matrix logits = swy_dense(scores, SWY_F32, tokens, E + 1);
    const swy_matrix topk_ids = swy_dense(ids, SWY_I32, tokens, K);
    const swy_matrix topk_weights = swy_dense(weights, SWY_F32, tokens, K);
    swy_matrix x[2] = {swy_dense(rows, SWY_F32, tokens, H),
                       swy_dense(rows + kMost * H, SWY_F32, tokens, H)};
    swy_combine_inputs sums = SWY_COMBINE_INPUTS_INIT;
    swy_combine_outputs out = SWY_COMBINE_OUTPUTS_INIT;
    sums.token_order = 1, sums.residual = residual;
    sums.norm_weight = swy_dense(norms, SWY_F32, 1, H);
    out.normed = swy_plain_rows(x[0]);
    Check(swy_combine(&sums, &out, &combine, pool));
    sums.token_order = 0, sums.topk_weights = topk_weights;
    sums.shared.kind = form.shared_gate;
    sums.shared.gate = swy_col_range(logits, E, E + 1);
    for (size_t l = 0; l < L; ++l) {  // this example has no attention
      const float* const normed = (const float*)x[l % 2].data;
      for (size_t i = 0; i < tokens * (E + 1); ++i) {
        scores[i] = 0;
        for (size_t h = 0; h < H; ++h)
          scores[i] +=
              normed[i / (E + 1) * H + h] * routers[l][i % (E + 1) * H + h];
      }
      swy_route_inputs router = SWY_ROUTE_INPUTS_INIT;
      swy_route_outputs routed = SWY_ROUTE_OUTPUTS_INIT;
      router.logits = swy_col_range(logits, 0, E);
      routed.topk_ids = topk_ids, routed.topk_weights = topk_weights;
      Check(swy_route_top_k(&router, &routed, &route, pool));
      swy_experts_plan plan;
      swy_experts_plan_inputs sort = SWY_EXPERTS_PLAN_INPUTS_INIT;
      swy_experts_plan_outputs planned = SWY_EXPERTS_PLAN_OUTPUTS_INIT;
      sort.topk_ids = topk_ids, planned.memory = memory, planned.plan = &plan;
      Check(swy_plan_experts(&sort, &planned, &shape, pool));
      swy_experts_inputs in = SWY_EXPERTS_INPUTS_INIT;
      swy_expert_gemm gemm = SWY_EXPERT_GEMM_INIT;
      in.plan = &plan, in.hidden = swy_plain_rows(x[l % 2]);
      in.combine = &sums, in.scratch = scratch;
      sums.norm_weight = swy_dense(norms + (l + 1) * H, SWY_F32, 1, H);
      out.out = residual, out.normed = swy_plain_rows(x[(l + 1) % 2]);
      gemm.run = swy_multiply_layer, gemm.context = &layers[l];
      Check(swy_run_experts(&in, &out, &options, &gemm, pool));
    }
  }
  double sum = 0;
  for (size_t i = 0; i < kMost * H; ++i) sum += (double)stream[i];
  printf("%.6f\n", sum);
  void* const made[] = {norms,   stream, rows,        scores,
                        weights, ids,    memory.data, scratch.data};
  for (size_t i = 0; i < sizeof made / sizeof *made; ++i) free(made[i]);
  swy_tbb_executor_destroy(pool);
  return 0;
}
