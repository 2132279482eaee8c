// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <stdexcept>

namespace moe_layer {

void Gemm(switchyard::Matrix<const float> x, const float* w,
          switchyard::Matrix<float> y) {
  // Of the calling thread only, so it has to be said on each; a few ns.
  omp_set_num_threads(1);
  const auto dim = [](size_t size) { return static_cast<dnnl_dim_t>(size); };
  const dnnl_status_t status =
      dnnl_sgemm('N', 'T', dim(x.rows), dim(y.cols), dim(x.cols), 1.0f, x.data,
                 dim(x.stride), w, dim(x.cols), 0.0f, y.data, dim(y.stride));
  if (status != dnnl_success) {
    throw std::runtime_error("oneDNN: GEMM failed");
  }
}

}  // namespace moe_layer
