// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/c/check.h"

void TestCombine(void) {
  float rows[3][2] = {{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}};
  float weights[2][2] = {{0.5f, 0.25f}, {2.0f, 9.0f}};
  int32_t row_index[2][2] = {{2, 0}, {1, -1}};
  float shared[2][2] = {{4.0f, 8.0f}, {12.0f, 16.0f}};
  float out_rows[2][2];
  const float sums[4] = {2.75f, 3.5f, 6.0f, 8.0f};
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
  out.report = &report;
  // The rows are in the order of tokens.
  {
    const swy_combine_inputs none = SWY_COMBINE_INPUTS_INIT;
    in = none;
    in.token_order = 1;
    in.rows = swy_plain_rows(swy_dense(four, SWY_F32, 4, 2));
    in.topk_weights = swy_dense(ones, SWY_F32, 2, 2);
    out.out = swy_dense(out_rows, SWY_F32, 2, 2);
    CHECK_OK(swy_combine(&in, &out, NULL, NULL));
    CHECK(out_rows[0][0] == 1.0f && out_rows[0][1] == 1.0f);
    CHECK(out_rows[1][0] == 2.0f && out_rows[1][1] == 2.0f);
    // A call must not give both token_order and row_index.
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
  // Combine counts and skips indices outside [-1, num_rows).
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
