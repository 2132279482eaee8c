// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <math.h>
#include <string.h>

#include "tests/c/check.h"

static float tokens[2][3] = {{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}};
// Two slots each: packed rows are of tokens 1, 0, 0, and none.
static int32_t pairs[4] = {2, 0, 1, 7};
static int32_t row_index[4] = {1, 2, 0, -1};

static void TestGather(void) {
  const float wanted[12] = {4.0f, 5.0f, 6.0f, 1.0f, 2.0f, 3.0f,
                            1.0f, 2.0f, 3.0f, 0.0f, 0.0f, 0.0f};
  const float scattered[12] = {1.0f, 2.0f, 3.0f, 1.0f, 2.0f, 3.0f,
                               4.0f, 5.0f, 6.0f, 0.0f, 0.0f, 0.0f};
  float packed[4][3], back[4][3];
  swy_report report = SWY_REPORT_INIT;
  swy_gather_inputs in = SWY_GATHER_INPUTS_INIT;
  swy_gather_outputs out = SWY_GATHER_OUTPUTS_INIT;
  swy_gather_options options = SWY_GATHER_OPTIONS_INIT;
  swy_scatter_inputs from = SWY_SCATTER_INPUTS_INIT;
  swy_scatter_outputs to = SWY_SCATTER_OUTPUTS_INIT;
  swy_scatter_options scatter = SWY_SCATTER_OPTIONS_INIT;
  in.tokens = swy_plain_rows(swy_dense(tokens, SWY_F32, 2, 3));
  in.pairs.data = pairs;
  in.pairs.size = 4;
  in.topk_ids = swy_dense(row_index, SWY_I32, 2, 2);
  out.rows = swy_plain_rows(swy_dense(packed, SWY_F32, 4, 3));
  out.report = &report;
  CHECK_FAILED(swy_gather_rows(&in, &out, NULL, NULL),
               "GatherRows: pairs: outside [0, num_tokens * top_k), and "
               "options.allow_invalid is not set");
  CHECK_FLOATS(packed[0], wanted, 12);
  memset(packed, 0, sizeof packed);
  options.allow_invalid = 1;
  CHECK_OK(swy_gather_rows(&in, &out, &options, &kThreads));
  CHECK_FLOATS(packed[0], wanted, 12);
  CHECK(report.invalid == 1);

  from.packed = out.rows;
  from.row_index = swy_dense(row_index, SWY_I32, 2, 2);
  to.rows = swy_plain_rows(swy_dense(back, SWY_F32, 4, 3));
  to.report = &report;
  CHECK_OK(swy_scatter_rows(&from, &to, NULL, NULL));
  CHECK_FLOATS(back[0], scattered, 12);
  CHECK(report.skipped == 0);
  from.packed.values.rows = 2;  // the row of index 2 is no more
  scatter.allow_skipped = 1;
  CHECK_OK(swy_scatter_rows(&from, &to, &scatter, NULL));
  CHECK(report.skipped == 1 && back[1][0] == 0.0f && back[2][0] == 4.0f);
}

static void TestQuantize(void) {
  float from[2][4] = {{0.0f, 1.0f, -2.0f, 4.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
  const int8_t wanted[8] = {0, 32, -64, 127, 0, 0, 0, 0};
  const float scales[2] = {4.0f / 127.0f, 0.0f};
  const int32_t sums[2] = {95, 0};
  int8_t codes[2][4];
  float found_scales[2];
  int32_t found_sums[2];
  swy_quantize_inputs in = SWY_QUANTIZE_INPUTS_INIT;
  swy_quantize_outputs out = SWY_QUANTIZE_OUTPUTS_INIT;
  swy_quantize_options options = SWY_QUANTIZE_OPTIONS_INIT;
  in.from = swy_plain_rows(swy_dense(from, SWY_F32, 2, 4));
  out.rows.values = swy_dense(codes, SWY_I8, 2, 4);
  out.rows.scales = swy_dense(found_scales, SWY_F32, 2, 1);
  out.rows.sums = swy_dense(found_sums, SWY_I32, 2, 1);
  CHECK_OK(swy_quantize(&in, &out, &options, NULL));
  CHECK(memcmp(codes, wanted, sizeof codes) == 0);
  CHECK_FLOATS(found_scales, scales, 2);
  CHECK_INTS(found_sums, sums, 2);
}

void TestRows(void) {
  TestGather();
  TestQuantize();
}

void TestActivate(void) {
  // silu(x) = x / (1 + e^-x): with e^x = 3 it is 3/4 ln 3.
  const float ln3 = 1.09861229f;
  float both[2][4];
  const float wanted[4] = {0.75f * 1.09861229f * 2.0f, 0.0f,
                           -0.25f * 1.09861229f, 0.5f};
  float out_rows[2][2];
  swy_activate_inputs in = SWY_ACTIVATE_INPUTS_INIT;
  swy_activate_outputs out = SWY_ACTIVATE_OUTPUTS_INIT;
  swy_activate_options options = SWY_ACTIVATE_OPTIONS_INIT;
  both[0][0] = ln3, both[0][1] = 0.0f, both[0][2] = 2.0f, both[0][3] = 7.0f;
  both[1][0] = -ln3, both[1][1] = ln3, both[1][2] = 1.0f;
  both[1][3] = 0.5f / (0.75f * ln3);
  in.gate = swy_strided(both, SWY_F32, 2, 2, 4);
  in.up = swy_col_range(swy_dense(both, SWY_F32, 2, 4), 2, 4);
  CHECK(in.up.data == &both[0][2] && in.up.stride == 4 && in.up.cols == 2);
  out.out = swy_plain_rows(swy_dense(out_rows, SWY_F32, 2, 2));
  CHECK_OK(swy_activate(&in, &out, NULL, NULL));
  CHECK_FLOATS(out_rows[0], wanted, 4);
  // Errors that C++ finds, in an argument and in an option.
  options.layout = SWY_UNGATED;
  CHECK_INVALID(swy_activate(&in, &out, &options, NULL),
                "Activate: up: given with kUngated");
  options.limit = NAN;
  CHECK_INVALID(swy_activate(&in, &out, &options, NULL),
                "Activate: options: limit is negative or NaN");
}
