// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <math.h>
#include <string.h>

#include "tests/c/check.h"

void TestCombine(void) {
  float rows[3][2] = {{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}};
  float weights[2][2] = {{0.5f, 0.25f}, {2.0f, 9.0f}};
  int32_t row_index[2][2] = {{2, 0}, {1, -1}};
  float residual[2][2] = {{10.0f, 20.0f}, {30.0f, 40.0f}};
  float norm_weight[2] = {1.0f, 2.0f};
  float shared[2][2] = {{4.0f, 8.0f}, {12.0f, 16.0f}};
  float gate[2] = {0.0f, 1.09861229f};
  float out_rows[2][2], normed[2][2];
  const float sums[4] = {2.75f, 3.5f, 6.0f, 8.0f};
  const float all[4] = {14.75f, 27.5f, 45.0f, 60.0f};
  float four[4][2] = {{1.0f, 0.0f}, {0.0f, 1.0f}, {1.0f, 1.0f}, {1.0f, 1.0f}};
  float ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};
  swy_report report = SWY_REPORT_INIT;
  swy_combine_inputs in = SWY_COMBINE_INPUTS_INIT;
  swy_combine_outputs out = SWY_COMBINE_OUTPUTS_INIT;
  swy_combine_options options = SWY_COMBINE_OPTIONS_INIT;
  in.rows = swy_plain_rows(swy_dense(rows, SWY_F32, 3, 2));
  in.topk_weights = swy_dense(weights, SWY_F32, 2, 2);
  in.row_index = swy_dense(row_index, SWY_I32, 2, 2);
  out.out = swy_dense(out_rows, SWY_F32, 2, 2);
  CHECK_OK(swy_combine(&in, &out, NULL, NULL));
  CHECK_FLOATS(out_rows[0], sums, 4);
  // Everything, in place over the residual, with the next norm.
  in.residual = swy_dense(residual, SWY_F32, 2, 2);
  in.shared.rows = swy_dense(shared, SWY_F32, 2, 2);
  in.shared.gate = swy_dense(gate, SWY_F32, 2, 1);
  in.norm_weight = swy_dense(norm_weight, SWY_F32, 1, 2);
  out.out = in.residual;
  out.normed = swy_plain_rows(swy_dense(normed, SWY_F32, 2, 2));
  out.report = &report;
  options.eps = 0.0f;
  CHECK_OK(swy_combine(&in, &out, &options, &kThreads));
  CHECK_FLOATS(residual[0], all, 4);
  {
    float wanted[4];
    size_t t;
    for (t = 0; t < 2; ++t) {
      const float a = all[2 * t], b = all[2 * t + 1];
      const float scale = 1.0f / sqrtf((a * a + b * b) / 2.0f);
      wanted[2 * t] = a * scale;
      wanted[2 * t + 1] = b * scale * 2.0f;
    }
    CHECK_FLOATS(normed[0], wanted, 4);
  }
  CHECK(report.skipped == 0);
  // In the order of tokens.
  {
    const swy_combine_inputs none = SWY_COMBINE_INPUTS_INIT;
    in = none;
    in.token_order = 1;
    in.rows = swy_plain_rows(swy_dense(four, SWY_F32, 4, 2));
    in.topk_weights = swy_dense(ones, SWY_F32, 2, 2);
    out.out = swy_dense(out_rows, SWY_F32, 2, 2);
    out.normed = swy_plain_rows(swy_dense(NULL, SWY_F32, 0, 0));
    CHECK_OK(swy_combine(&in, &out, NULL, NULL));
    CHECK(out_rows[0][0] == 1.0f && out_rows[0][1] == 1.0f);
    CHECK(out_rows[1][0] == 2.0f && out_rows[1][1] == 2.0f);
    // It is said once where rows are.
    in.row_index = swy_dense(row_index, SWY_I32, 2, 2);
    CHECK_INVALID(swy_combine(&in, &out, NULL, NULL),
                  "Combine: row_index: given with token_order");
    in.row_index.data = NULL;
    CHECK_INVALID(swy_combine(&in, &out, NULL, NULL),
                  "Combine: row_index: given with token_order");
    in.token_order = 0;
    CHECK_INVALID(swy_combine(&in, &out, NULL, NULL),
                  "Combine: row_index: data is null");
  }
  // Stale indices are counted, not followed.
  in.row_index = swy_dense(row_index, SWY_I32, 2, 2);
  row_index[0][0] = 4;
  CHECK_FAILED(swy_combine(&in, &out, NULL, NULL),
               "Combine: row_index: outside [-1, num_rows), and "
               "options.allow_skipped is not set");
  CHECK(report.skipped == 1);
  options.allow_skipped = 1;
  CHECK_OK(swy_combine(&in, &out, &options, NULL));
  options.norm = SWY_NORM_PLUS_ONE_FIRST;
  CHECK_INVALID(swy_combine(&in, &out, &options, NULL),
                "Combine: options: norm is not a NormKind for normed");
  in.shared.rows = swy_dense(shared, SWY_F32, 2, 2);
  in.shared.kind = 3;
  CHECK_INVALID(swy_combine(&in, &out, NULL, NULL),
                "Combine: shared.kind: is not a known SharedGate");
}

void TestHyper(void) {
  float streams[2][2] = {{1.0f, 2.0f}, {3.0f, 4.0f}};
  float block[2] = {10.0f, 20.0f}, post[2] = {1.0f, 0.5f};
  float comb[4] = {1.0f, 0.0f, 0.5f, 2.0f};  // from 1 to 0: 0.5
  float pre[2] = {1.0f, 2.0f}, found[2][2], out_row[2];
  const float wanted[4] = {12.5f, 24.0f, 11.0f, 18.0f};
  const float sum[2] = {34.5f, 60.0f};
  swy_hyper_inputs in = SWY_HYPER_INPUTS_INIT;
  swy_hyper_outputs out = SWY_HYPER_OUTPUTS_INIT;
  swy_hyper_options options = SWY_HYPER_OPTIONS_INIT;
  options.num_streams = 2;
  in.streams = swy_dense(streams, SWY_F32, 2, 2);
  in.block = swy_dense(block, SWY_F32, 1, 2);
  in.post = swy_dense(post, SWY_F32, 1, 2);
  in.comb = swy_dense(comb, SWY_F32, 1, 4);
  in.pre = swy_dense(pre, SWY_F32, 1, 2);
  out.streams = swy_dense(found, SWY_F32, 2, 2);
  out.out = swy_dense(out_row, SWY_F32, 1, 2);
  CHECK_OK(swy_hyper_connect(&in, &out, &options, &kThreads));
  CHECK_FLOATS(found[0], wanted, 4);
  CHECK_FLOATS(out_row, sum, 2);
  CHECK_INVALID(
      swy_hyper_connect(&in, &out, NULL, NULL),
      "HyperConnect: options: num_streams is 0 or more than kMaxStreams");
}
