// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Function constants.

#include <metal_stdlib>
using namespace metal;

constant bool kAdd [[function_constant(0)]];
constant int kBy [[function_constant(1)]];
constant uint kTimes [[function_constant(2)]];
constant float kScale [[function_constant(3)]];
constant half kOffset [[function_constant(4)]];
constant uchar kSmall [[function_constant(5)]];
constant ushort kShort [[function_constant(6)]];
constant bool kHasExtra [[function_constant(7)]];

// Constants that are computed from function constants.
constant int kStep = is_function_constant_defined(kBy) ? kBy : 100;
constant int kTwoSteps = 2 * kStep;
constant bool kMany = kTimes > 2;

kernel void apply(device const float* in [[buffer(0)]],
                  device float* out [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  float value = in[i];
  if (kAdd) {
    for (uint t = 0; t < kTimes; ++t) value += float(kTwoSteps);
  } else {
    value -= float(kStep);
  }
  if (kMany) value *= kScale;
  out[i] = value + float(kOffset) + float(kSmall) + float(kShort);
}

kernel void optional(device const float* in [[buffer(0)]],
                     device float* out [[buffer(1)]],
                     device const float* extra
                     [[buffer(2), function_constant(kHasExtra)]],
                     uint i [[thread_position_in_grid]]) {
  // The initializer reads `extra` even if no buffer is bound. Once kHasExtra is
  // known to be false, the compiler removes the read.
  const float more[2] = {extra[i], extra[7 - i]};
  out[i] = in[i];
  if (kHasExtra) out[i] += more[i % 2];
}
