// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Uses structs of pointers. The shader follows the pointers to memory that is
// bound at no index.

#include <metal_stdlib>
using namespace metal;

struct Row {
  device const float* values;
  uint length;
};
struct Arguments {
  device float* out [[id(0)]];
  constant float* scale [[id(1)]];
  Row rows[2];
  device const Row* more;
};

kernel void sum_rows(device const Arguments& arguments [[buffer(0)]],
                     uint i [[thread_position_in_grid]]) {
  float sum = 0.0f;
  for (uint r = 0; r < 2; ++r) {
    const device Row& row = arguments.rows[r];
    if (i < row.length) sum += row.values[i];
  }
  sum += arguments.more[1].values[i];
  arguments.out[i] = sum * arguments.scale[0];
}
