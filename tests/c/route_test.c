// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "tests/c/check.h"

// In the first two rows of kLogits, the softmax probabilities are in the ratio
// 1 : 2 : 3 : 4, in different orders. In the third row they are equal.
#define LN2 0.693147181f
#define LN3 1.09861229f
#define LN4 1.38629436f

static const float kLogits[3][4] = {
    {0.0f, LN2, LN3, LN4}, {LN3, LN4, 0.0f, LN2}, {LN2, LN2, LN2, LN2}};
static const int32_t kBest[3][2] = {{3, 2}, {1, 0}, {0, 1}};

// Records the second layer in an array of two layers, and replays it. One of
// the tokens is padding.
static void TestRecord(void) {
  float logits[3][4], weights[3][2], again[3][2];
  int32_t ids[3][2];
  uint16_t record[3][2][2];
  uint8_t mask[3] = {1, 0, 1};
  swy_report report = SWY_REPORT_INIT;
  swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
  size_t t, i;
  memcpy(logits, kLogits, sizeof logits);
  memset(record, 0, sizeof record);
  in.logits = swy_dense(logits, SWY_F32, 3, 4);
  in.token_mask = swy_dense(mask, SWY_U8, 3, 1);
  out.topk_ids = swy_dense(ids, SWY_I32, 3, 2);
  out.topk_weights = swy_dense(weights, SWY_F32, 3, 2);
  out.record = swy_strided(&record[0][1], SWY_U16, 3, 2, 4);
  out.report = &report;
  CHECK_OK(swy_route_top_k(&in, &out, NULL, NULL));
  for (t = 0; t < 3; ++t) {
    for (i = 0; i < 2; ++i) {
      CHECK(record[t][0][i] == 0);
      CHECK(record[t][1][i] == (t == 1 ? 65535 : kBest[t][i]));
    }
  }
  // Replays without the mask. The record of the padding token (65535) still
  // gives ids of -1 and weights of 0.
  in.token_mask.data = NULL;
  in.token_mask.rows = in.token_mask.cols = in.token_mask.stride = 0;
  in.given_ids = out.record;
  memset(&out.record, 0, sizeof out.record);
  out.topk_weights = swy_dense(again, SWY_F32, 3, 2);
  CHECK_OK(swy_route_top_k(&in, &out, NULL, NULL));
  for (i = 0; i < 6; ++i) {
    CHECK(ids[i / 2][i % 2] == (i / 2 == 1 ? -1 : kBest[i / 2][i % 2]));
  }
  CHECK(memcmp(weights, again, sizeof weights) == 0);
  CHECK(report.invalid_ids == 0);
  // A struct of an older version ends before the record.
  memset(record, 0, sizeof record);
  in.given_ids.data = NULL;
  in.given_ids.rows = in.given_ids.cols = in.given_ids.stride = 0;
  out.record = swy_strided(record, SWY_U16, 3, 2, 4);
  out.size = (uint32_t)offsetof(swy_route_outputs, record);
  CHECK_OK(swy_route_top_k(&in, &out, NULL, NULL));
  CHECK(record[0][0][0] == 0 && record[0][0][1] == 0);
}

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

  // By default, weights are divided by the sum of the selected experts'
  // weights.
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
  // Errors that the C++ function finds reach the C caller.
  options.score = 256;
  CHECK_INVALID(swy_route_top_k(&in, &out, &options, NULL),
                "RouteTopK: options: score is not a known Score");
  in.logits.data = NULL;
  CHECK_INVALID(swy_route_top_k(&in, &out, NULL, NULL),
                "RouteTopK: logits: data is null");
  TestRecord();
}
