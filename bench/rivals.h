// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// oneDNN's operations for what our kernels do, on one thread, at their best:
// primitives and memory objects made beforehand, called through its C API.

#ifndef SWITCHYARD_BENCH_ONEDNN_H_
#define SWITCHYARD_BENCH_ONEDNN_H_

#include <cstddef>
#include <functional>
#include <string>

namespace switchyard {
namespace bench {
namespace onednn {

std::string Version();

// Softmax over each of `rows`.
std::function<void(const float* in, float* out)> Softmax(size_t rows,
                                                         size_t cols);
// Swish, then a product.
std::function<void(const float* gate, const float* up, float* out)> SiluMul(
    size_t rows, size_t cols);
// out[t] = weights[t] rows[t] + residual[t], by a batched product; no norm.
std::function<void(const float* rows, const float* weights,
                   const float* residual, float* out)>
WeightedSum(size_t tokens, size_t top_k, size_t hidden);

}  // namespace onednn
}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_ONEDNN_H_
