// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"

// Tokens have two slots. The third expert gets no tokens. A shared expert is as
// wide as the others.
enum { kTokens = 7, kTopK = 2, kExperts = 4, kHidden = 40, kInter = 24 };
enum { kPairs = kTokens * kTopK };
static int32_t ids[kPairs] = {0, 1, 3, 0, 0, 1, 1, 0, 3, 1, 0, 3, 1, 3};
static float hidden[kTokens * kHidden], weights[kPairs], norm[kHidden];
static float shared_gate[kTokens];

// Returns a number in [-1, 1).
static float Value(size_t seed, size_t i) {
  return (float)((i * 7919 + seed * 104729 + 17) % 2000) / 1000.0f - 1.0f;
}
static void Fill(float* values, size_t count, size_t seed) {
  size_t i;
  for (i = 0; i < count; ++i) values[i] = Value(seed, i);
}

// The engine's product. It does not store weights: Value() computes a weight
// each time the product needs it. A test can make one product fail.
struct Product {
  int32_t failing_product, failing_expert;
  swy_status status;
};
// Multiplies by weights with too many columns.
static swy_status MultiplyWrongWeights(void* context,
                                       const swy_expert_tile* tile) {
  static float row[9000];
  const swy_expert_weights wrong =
      swy_stored_weights(SWY_WEIGHTS_F32, row, 1, 1, 9000);
  swy_expert_tile first = *tile;
  first.expert = 0;
  (void)context;
  return swy_multiply_tile(&wrong, &first);
}
static swy_status Multiply(void* context, const swy_expert_tile* tile) {
  const struct Product* product = (const struct Product*)context;
  const swy_status ok = {SWY_OK, ""};
  const size_t seed = (size_t)(10 * (tile->expert + 2) + tile->product);
  const swy_matrix x = tile->rows.values;
  size_t r, c, i;
  CHECK(tile->worker < 2 && x.type == SWY_F32 && tile->out.type == SWY_F32);
  if (tile->product == product->failing_product &&
      tile->expert == product->failing_expert) {
    return product->status;
  }
  for (r = 0; r < x.rows; ++r) {
    const float* row = (const float*)x.data + r * x.stride;
    float* out = (float*)tile->out.data + r * tile->out.stride;
    for (c = 0; c < tile->out.cols; ++c) {
      const size_t first = (tile->first_column + c) * x.cols;
      double sum = 0;
      for (i = 0; i < x.cols; ++i) sum += row[i] * Value(seed, first + i);
      out[c] = (float)sum;
    }
  }
  return ok;
}

// The arguments that all calls of the layer share.
struct Layer {
  float out[kTokens * kHidden], normed[kTokens * kHidden];
  swy_experts_plan_options shape;
  swy_experts_plan plan;
  int32_t *memory, *scratch;
  swy_combine_inputs combine;
  swy_activate_options activate;
  swy_experts_options options;
  swy_experts_inputs in;
  swy_combine_outputs outputs;
  swy_report report;
  struct Product product;
  swy_expert_gemm gemm;
};
// Makes and plans the layer. Returns 0 if memory runs out.
static int MakeLayer(struct Layer* l, size_t workers) {
  const swy_experts_plan_options shape = SWY_EXPERTS_PLAN_OPTIONS_INIT;
  const swy_combine_inputs combine = SWY_COMBINE_INPUTS_INIT;
  const swy_activate_options activate = SWY_ACTIVATE_OPTIONS_INIT;
  const swy_experts_options options = SWY_EXPERTS_OPTIONS_INIT;
  const swy_experts_inputs in = SWY_EXPERTS_INPUTS_INIT;
  const swy_combine_outputs outputs = SWY_COMBINE_OUTPUTS_INIT;
  const swy_report report = SWY_REPORT_INIT;
  const swy_expert_gemm gemm = SWY_EXPERT_GEMM_INIT;
  swy_experts_plan_inputs pairs = SWY_EXPERTS_PLAN_INPUTS_INIT;
  swy_experts_plan_outputs plan = SWY_EXPERTS_PLAN_OUTPUTS_INIT;
  memset(l, 0, sizeof *l);
  Fill(hidden, kTokens * kHidden, 1);
  Fill(weights, kPairs, 2);
  Fill(norm, kHidden, 3);
  Fill(shared_gate, kTokens, 4);
  Fill(l->out, kTokens * kHidden, 5);
  l->report = report;
  l->shape = shape;
  l->shape.num_experts = kExperts;
  l->shape.hidden = kHidden;
  l->shape.intermediate = l->shape.shared_intermediate = kInter;
  l->shape.workers = workers;
  l->shape.tile_columns = 8;
  l->shape.least_cost = 0;

  plan.memory.size = swy_experts_plan_size(kTokens, kTopK, &l->shape);
  l->memory = (int32_t*)malloc(plan.memory.size * sizeof *l->memory);
  plan.memory.data = l->memory;
  plan.plan = &l->plan;
  plan.report = &l->report;
  pairs.topk_ids = swy_dense(ids, SWY_I32, kTokens, kTopK);
  if (l->memory != NULL) {
    CHECK_OK(swy_plan_experts(&pairs, &plan, &l->shape, NULL));
  }

  l->activate = activate;
  l->options = options;
  l->options.activate = l->options.shared_activate = &l->activate;
  l->in = in;
  l->in.plan = &l->plan;
  l->in.hidden = swy_plain_rows(swy_dense(hidden, SWY_F32, kTokens, kHidden));
  l->in.combine = &l->combine;
  l->in.scratch.size = swy_experts_scratch_size(&l->plan, &l->options, workers);
  l->scratch = (int32_t*)malloc(l->in.scratch.size * sizeof *l->scratch);
  l->in.scratch.data = l->scratch;
  l->outputs = outputs;
  l->outputs.out = swy_dense(l->out, SWY_F32, kTokens, kHidden);
  l->outputs.normed =
      swy_plain_rows(swy_dense(l->normed, SWY_F32, kTokens, kHidden));
  l->combine = combine;
  l->combine.topk_weights = swy_dense(weights, SWY_F32, kTokens, kTopK);
  l->combine.residual = l->outputs.out;
  l->combine.norm_weight = swy_dense(norm, SWY_F32, 1, kHidden);
  l->combine.shared.gate = swy_dense(shared_gate, SWY_F32, kTokens, 1);
  l->product.failing_product = -1;
  l->gemm = gemm;
  l->gemm.run = Multiply;
  l->gemm.context = &l->product;
  CHECK(l->memory != NULL && l->scratch != NULL);
  return l->memory != NULL && l->scratch != NULL;
}
static void FreeLayer(struct Layer* l) {
  free(l->memory);
  free(l->scratch);
}
static swy_status Run(struct Layer* l, const swy_executor* executor) {
  return swy_run_experts(&l->in, &l->outputs, &l->options, &l->gemm, executor);
}

// The bits do not depend on the number of workers. (c_experts_test compares
// layers with those of C++.)
static void TestBits(void) {
  struct Layer alone, layer;
  size_t workers;
  for (workers = 1; workers <= 2; ++workers) {
    struct Layer* const l = workers == 1 ? &alone : &layer;
    if (MakeLayer(l, workers)) {
      // A plan for two workers cuts the columns, too, so it has more tiles.
      CHECK(l->report.max_rows == 5 && l->report.dropped == 0);
      CHECK(workers == 1 ? l->report.tiles == 4 : l->report.tiles > 8);
      CHECK_OK(Run(l, workers == 1 ? NULL : &kThreads));
      CHECK(l->report.tiles != 0 && l->report.skipped == 0);
    }
    FreeLayer(l);
  }
  CHECK(memcmp(layer.out, alone.out, sizeof alone.out) == 0);
  CHECK(memcmp(layer.normed, alone.normed, sizeof alone.normed) == 0);
}

// If a product fails, the layer returns its error.
static void TestFailures(void) {
  struct Layer layer;
  int32_t product, expert;
  if (MakeLayer(&layer, 2)) {
    for (product = SWY_PRODUCT_GATE; product <= SWY_PRODUCT_DOWN; ++product) {
      for (expert = SWY_SHARED_EXPERT; expert < kExperts; ++expert) {
        if (expert == 2) continue;  // this expert has no tiles
        layer.product.failing_product = product;
        layer.product.failing_expert = expert;
        layer.product.status.code = 77;
        layer.product.status.message = "Multiply: on purpose";
        CheckStatus(Run(&layer, NULL), 77, "Multiply: on purpose", __FILE__,
                    __LINE__);
        layer.product.status.code = SWY_OUT_OF_MEMORY;
        layer.product.status.message = NULL;
        CheckStatus(Run(&layer, &kThreads), SWY_OUT_OF_MEMORY,
                    "RunExperts: gemm: run failed without a message", __FILE__,
                    __LINE__);
      }
    }
  }
  FreeLayer(&layer);
}

#define REFUSED(message) \
  CHECK_INVALID(Run(&layer, NULL), "RunExperts: " message)
// Structs of older programs end before down_operands. Without this field, the
// down product reads the same operands as the other products.
static void TestDownOperands(void) {
  swy_row_format format = {SWY_I8, SWY_F32, 32, 0};
  struct Layer layer;
  if (MakeLayer(&layer, 1)) {
    const size_t least = layer.in.scratch.size;
    size_t any =
        swy_experts_scratch_size_of_any(kTokens, kTopK, &layer.shape, NULL, 1);
    layer.options.down_operands = &format;
    CHECK(swy_experts_scratch_size(&layer.plan, &layer.options, 1) < least);
    CHECK(swy_experts_scratch_size_of_any(kTokens, kTopK, &layer.shape,
                                          &layer.options, 1) < any);
    format.scale_columns = 48;
    REFUSED("options: down_operands: is not a format of quantize.h");
    CHECK(swy_experts_scratch_size(&layer.plan, &layer.options, 1) == SIZE_MAX);
    format.type = SWY_Q8_0;
    format.scale_columns = 0;
    REFUSED(
        "options: down_operands: the plan's intermediate or "
        "shared_intermediate is not a multiple of its block");
    layer.options.size = (uint32_t)offsetof(swy_experts_options, down_operands);
    CHECK(swy_experts_scratch_size(&layer.plan, &layer.options, 1) == least);
    CHECK_OK(Run(&layer, NULL));
  }
  FreeLayer(&layer);
}

static void TestErrors(void) {
  swy_experts_plan_options shape = SWY_EXPERTS_PLAN_OPTIONS_INIT;
  swy_experts_options options = SWY_EXPERTS_OPTIONS_INIT;
  swy_experts_plan never_made;
  swy_status failed;
  struct Layer layer;
  size_t i;
  CHECK(swy_experts_plan_size(kTokens, kTopK, NULL) == SIZE_MAX);
  shape.num_experts = 4;
  CHECK(swy_experts_plan_size(kTokens, kTopK, &shape) == SIZE_MAX);
  shape.hidden = shape.intermediate = 8;
  CHECK(swy_experts_plan_size(kTokens, kTopK, &shape) < SIZE_MAX);
  shape.size = 0;
  CHECK(swy_experts_plan_size(kTokens, kTopK, &shape) == SIZE_MAX);
  CHECK(swy_experts_scratch_size(NULL, NULL, 1) == SIZE_MAX);
  if (MakeLayer(&layer, 1)) {
    const size_t least = layer.in.scratch.size;
    size_t any;
    CHECK(swy_experts_scratch_size(&layer.plan, NULL, 1) == least);
    CHECK(swy_experts_scratch_size(&layer.plan, NULL, 2) > least);
    any =
        swy_experts_scratch_size_of_any(kTokens, kTopK, &layer.shape, NULL, 1);
    CHECK(any >= least && any < SIZE_MAX);
    options.activate = &layer.activate;
    options.down_type = SWY_BF16;
    CHECK(swy_experts_scratch_size(&layer.plan, &options, 1) < least);
    CHECK(swy_experts_scratch_size_of_any(kTokens, kTopK, &layer.shape,
                                          &options, 1) < any);
    CHECK(swy_experts_scratch_size_of_any(kTokens, kTopK, NULL, NULL, 1) ==
          SIZE_MAX);
    layer.activate.size = 0;
    CHECK(swy_experts_scratch_size_of_any(kTokens, kTopK, &layer.shape,
                                          &options, 1) == SIZE_MAX);
    CHECK(swy_experts_scratch_size(&layer.plan, &options, 1) == SIZE_MAX);
    layer.activate.size = (uint32_t)sizeof layer.activate;

    layer.in.plan = NULL;
    REFUSED("plan: not given");
    // Fills a plan with arbitrary bytes, because a failed call may leave such
    // a plan.
    layer.in.plan = &never_made;
    for (i = 0; i < 256; i += 51) {
      memset(&never_made, (int)i, sizeof never_made);
      REFUSED("plan: was not made by PlanExperts");
      CHECK(swy_experts_scratch_size(&never_made, NULL, 1) == SIZE_MAX);
    }
    layer.in.plan = &layer.plan;
    layer.in.combine = NULL;
    REFUSED("combine: is null");
    layer.in.combine = &layer.combine;
    layer.combine.token_order = 1;
    REFUSED("combine: rows or row_index given, but this call computes them");
    layer.combine.token_order = 0;
    layer.in.scratch.size = least - 1;
    REFUSED("scratch: is fewer than ExpertsScratchSize elements");
    layer.in.scratch.size = least;
    layer.gemm.run = NULL;
    REFUSED("gemm: run is null");
    layer.gemm.run = Multiply;
    layer.gemm.size = (uint32_t)offsetof(swy_expert_gemm, run);
    REFUSED("gemm" NO_VERSION);
    layer.options.operands.type = SWY_Q8_0;
    layer.options.operands.has_sums = 1;
    layer.gemm.size = (uint32_t)sizeof layer.gemm;
    REFUSED("options: operands: is not a format of quantize.h");
    layer.options.operands.type = SWY_F32;
    layer.options.operands.has_sums = 0;
    CHECK_OK(Run(&layer, NULL));

    // A product of the library fails. Its details pass through the callback.
    layer.gemm.run = MultiplyWrongWeights;
    failed = Run(&layer, NULL);
    CHECK_INVALID(failed,
                  "MultiplyTile: tile.rows: is not [rows, weights.cols]");
    CHECK(strncmp(swy_status_details(failed), "got ", 4) == 0);
    CHECK(strstr(swy_status_details(failed), ", needs 9000") != NULL);
  }
  FreeLayer(&layer);
}

void TestLayer(void) {
  TestBits();
  TestFailures();
  TestDownOperands();
  TestErrors();
}
