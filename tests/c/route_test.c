// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <math.h>
#include <string.h>

#include "tests/c/check.h"

// The softmax of the logits is 1 : 2 : 3 : 4, in any order.
#define LN2 0.693147181f
#define LN3 1.09861229f
#define LN4 1.38629436f

static const float kLogits[3][4] = {
    {0.0f, LN2, LN3, LN4}, {LN3, LN4, 0.0f, LN2}, {LN2, LN2, LN2, LN2}};
static const int32_t kBest[3][2] = {{3, 2}, {1, 0}, {0, 1}};

void TestRoute(void) {
  float logits[3][4], weights[3][2];
  int32_t ids[3][2];
  int64_t wide_ids[3][2];
  swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
  swy_route_options options = SWY_ROUTE_OPTIONS_INIT;
  size_t i;
  memcpy(logits, kLogits, sizeof logits);
  in.logits = swy_dense(logits, SWY_F32, 3, 4);
  out.topk_ids = swy_dense(ids, SWY_I32, 3, 2);
  out.topk_weights = swy_dense(weights, SWY_F32, 3, 2);

  // By default, weights are divided by the sum of the selected ones.
  CHECK_OK(swy_route_top_k(&in, &out, NULL, NULL));
  CHECK_INTS(ids[0], kBest[0], 6);
  {
    const float wanted[6] = {4.0f / 7, 3.0f / 7, 4.0f / 7,
                             3.0f / 7, 0.5f,     0.5f};
    CHECK_FLOATS(weights[0], wanted, 6);
  }
  // Runs the same call on threads, with outputs of other types.
  memset(weights, 0, sizeof weights);
  out.topk_ids = swy_dense(wide_ids, SWY_I64, 3, 2);
  options.renormalize = 0;
  CHECK_OK(swy_route_top_k(&in, &out, &options, &kThreads));
  for (i = 0; i < 6; ++i) CHECK(wide_ids[i / 2][i % 2] == kBest[i / 2][i % 2]);
  {
    const float wanted[6] = {0.4f, 0.3f, 0.4f, 0.3f, 0.25f, 0.25f};
    CHECK_FLOATS(weights[0], wanted, 6);
  }
  // The C++ function finds these errors.
  options.score = 256;
  CHECK_INVALID(swy_route_top_k(&in, &out, &options, NULL),
                "RouteTopK: options: score is not a known Score");
  in.logits.data = NULL;
  CHECK_INVALID(swy_route_top_k(&in, &out, NULL, NULL),
                "RouteTopK: logits: data is null");
}
