// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <math.h>

#include "tests/c/check.h"

void TestActivate(void) {
  // silu(x) = x / (1 + e^-x), so silu(ln 3) is 3/4 ln 3.
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
  // Errors that the C++ function finds reach the C caller.
  options.layout = SWY_UNGATED;
  CHECK_INVALID(swy_activate(&in, &out, &options, NULL),
                "Activate: up: given with kUngated");
  options.limit = NAN;
  CHECK_INVALID(swy_activate(&in, &out, &options, NULL),
                "Activate: options: limit is negative or NaN");
}
