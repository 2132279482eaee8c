// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A C project. Routes one row of logits, because that code calls the
// mathematics library.

#include <stdio.h>

#include "switchyard/switchyard.h"

int main(void) {
  const float logits[4] = {1.0f, 4.0f, 2.0f, 3.0f};
  float weights[2] = {0.0f, 0.0f};
  int32_t ids[2] = {-1, -1};
  swy_status status;
  swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
  in.logits = swy_dense((void*)logits, SWY_F32, 1, 4);
  out.topk_ids = swy_dense(ids, SWY_I32, 1, 2);
  out.topk_weights = swy_dense(weights, SWY_F32, 1, 2);
  status = swy_route_top_k(&in, &out, NULL, NULL);
  if (status.code != SWY_OK || ids[0] != 1 || ids[1] != 3) {
    fprintf(stderr, "%s\n", status.message);
    return 1;
  }
  printf("%s, in C\n", swy_active_isa().name);
  return 0;
}
