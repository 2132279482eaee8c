// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <math.h>
#include <string.h>

#include "tests/c/check.h"

// Logits whose softmax is 1 : 2 : 3 : 4, in any order.
#define LN2 0.693147181f
#define LN3 1.09861229f
#define LN4 1.38629436f

static const float kLogits[3][4] = {
    {0.0f, LN2, LN3, LN4}, {LN3, LN4, 0.0f, LN2}, {LN2, LN2, LN2, LN2}};
static const int32_t kBest[3][2] = {{3, 2}, {1, 0}, {0, 1}};

void TestRoute(void) {
  float logits[3][4], weights[3][2], identity[3];
  int32_t ids[3][2];
  int64_t wide_ids[3][2];
  swy_report report = SWY_REPORT_INIT;
  swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
  swy_route_options options = SWY_ROUTE_OPTIONS_INIT;
  size_t i;
  memcpy(logits, kLogits, sizeof logits);
  in.logits = swy_dense(logits, SWY_F32, 3, 4);
  out.topk_ids = swy_dense(ids, SWY_I32, 3, 2);
  out.topk_weights = swy_dense(weights, SWY_F32, 3, 2);

  // The defaults: divided by the sum of the selected.
  CHECK_OK(swy_route_top_k(&in, &out, NULL, NULL));
  CHECK_INTS(ids[0], kBest[0], 6);
  {
    const float wanted[6] = {4.0f / 7, 3.0f / 7, 4.0f / 7,
                             3.0f / 7, 0.5f,     0.5f};
    CHECK_FLOATS(weights[0], wanted, 6);
  }
  // The same on threads, into other types.
  memset(weights, 0, sizeof weights);
  out.topk_ids = swy_dense(wide_ids, SWY_I64, 3, 2);
  options.renormalize = 0;
  CHECK_OK(swy_route_top_k(&in, &out, &options, &kThreads));
  for (i = 0; i < 6; ++i) CHECK(wide_ids[i / 2][i % 2] == kBest[i / 2][i % 2]);
  {
    const float wanted[6] = {0.4f, 0.3f, 0.4f, 0.3f, 0.25f, 0.25f};
    CHECK_FLOATS(weights[0], wanted, 6);
  }
  // A bias decides, and is no part of the weight; zero experts; a report.
  {
    float bias[4] = {5.0f, 0.0f, 0.0f, 0.0f};
    int32_t map[4] = {-1, 10, 20, 30};
    const float wanted[6] = {0.5f, 0.0f, 0.75f, 0.8f, 2.0f / 3, 2.0f / 3};
    in.correction_bias = swy_dense(bias, SWY_F32, 1, 4);
    in.expert_map = swy_dense(map, SWY_I32, 1, 4);
    out.topk_ids = swy_dense(ids, SWY_I32, 3, 2);
    out.identity_weights = swy_dense(identity, SWY_F32, 3, 1);
    out.report = &report;
    report.dropped = 77;
    options.score = SWY_SCORE_SIGMOID;
    options.num_zero_experts = 1;
    CHECK_OK(swy_route_top_k(&in, &out, &options, NULL));
    // Row 0 selects the zero expert second: id -1, and its weight apart.
    CHECK(ids[0][0] == -1 && ids[0][1] == -1);
    CHECK(ids[1][0] == -1 && ids[1][1] == 10);
    CHECK(ids[2][0] == -1 && ids[2][1] == 10);
    CHECK_FLOATS(weights[0], wanted, 6);
    CHECK(fabsf(identity[0] - 0.8f) < 1e-6f);
    CHECK(identity[1] == 0.0f && identity[2] == 0.0f);
    CHECK(report.elsewhere == 3 && report.invalid_ids == 0);
    CHECK(report.dropped == 77);
  }
  // NaN is never hidden.
  logits[1][2] = NAN;
  in.correction_bias = in.expert_map = swy_dense(NULL, SWY_F32, 0, 0);
  out.identity_weights = in.expert_map;
  CHECK_OK(swy_route_top_k(&in, &out, NULL, NULL));
  CHECK_INTS(ids[0], kBest[0], 6);
  CHECK(isnan(weights[1][0]) && isnan(weights[1][1]) && !isnan(weights[0][0]));
  // Errors that C++ finds.
  options.num_zero_experts = 0;
  for (options.score = -1; options.score < 300; options.score += 7) {
    if (options.score >= 0 && options.score <= SWY_SCORE_SPARSEMIXER) continue;
    CHECK_INVALID(swy_route_top_k(&in, &out, &options, NULL),
                  "RouteTopK: options: score is not a known Score");
  }
  options.score = 256;
  CHECK_INVALID(swy_route_top_k(&in, &out, &options, NULL),
                "RouteTopK: options: score is not a known Score");
  in.logits.data = NULL;
  CHECK_INVALID(swy_route_top_k(&in, &out, NULL, NULL),
                "RouteTopK: logits: data is null");
}
