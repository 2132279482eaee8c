// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// oneDNN's operations for what our kernels do, on one thread, its primitives
// and memory objects made beforehand. What is returned works on the memory it
// was made with.

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
std::function<void()> Softmax(const float* in, float* out, size_t rows,
                              size_t cols);
// Swish, then a product.
std::function<void()> SiluMul(const float* gate, const float* up, float* out,
                              size_t rows, size_t cols);
// out[t] = weights[t] rows[t] + residual[t], by a batched product; no norm.
std::function<void()> WeightedSum(const float* rows, const float* weights,
                                  const float* residual, float* out,
                                  size_t tokens, size_t top_k, size_t hidden);

}  // namespace onednn
}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_ONEDNN_H_
