// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_GEMM_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_GEMM_H_

#include <cstddef>

#include "switchyard/views.h"

namespace moe_layer {

// y[r, o] = sum over i of x[r, i] * w[o, i], by oneDNN on the calling thread
// alone: the executor's threads already keep every core busy, and a second pool
// would fight them for the cores. `w` is [y.cols, x.cols], dense. Throws
// std::runtime_error if oneDNN fails.
void Gemm(switchyard::Matrix<const float> x, const float* w,
          switchyard::Matrix<float> y);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_GEMM_H_
