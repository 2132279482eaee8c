// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What our kernels are timed against.

#ifndef SWITCHYARD_BENCH_RIVALS_H_
#define SWITCHYARD_BENCH_RIVALS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/route.h"

namespace switchyard::bench {

// The kernels as one writes them in plain C++, single precision, at -O3 for the
// compiler's default CPU. Of the options, those that the benchmarks use.
namespace plain {

void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               bool renormalize);
// Return the busiest expert's count.
size_t BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs);
size_t BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs);
void GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs);
void Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs);
// With residual and norm, without a shared expert.
void Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
             float eps);

}  // namespace plain

// oneDNN's operations for what our kernels do, on one thread, at their best:
// primitives and memory objects made beforehand, called through its C API.
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

// Weighted sum + residual + norm with eight experts a token.
struct CombineMove {
  const float* rows;         // [.., hidden]
  const int32_t* row_index;  // [tokens, 8], or null: in order
  const float* residual;     // [tokens, hidden]
  const float* norm_weight;  // [hidden]
  float* out;                // [tokens, hidden]
  float* normed;             // [tokens, hidden]
  size_t tokens;
  size_t hidden;  // whole cache lines
};

// Loops that only move a kernel's bytes, as wide as this machine's vectors:
// what no kernel can beat by much. The SiLU-mul probes add its divide.
// Pointers are on cache lines, or are read in whole vectors from elsewhere;
// whole lines of the outputs are written.
struct Probes {
  // Reads `in`, then fills `out`, in 4-byte elements.
  void (*move)(const void* in, size_t in_size, void* out, size_t out_size);
  // out = up / gate.
  void (*divide)(const float* gate, const float* up, float* out, size_t size);
  void (*divide_streaming)(const float* gate, const float* up, float* out,
                           size_t size);
  // Row after row, or all rows of a token side by side.
  void (*sequential)(const CombineMove& args);
  void (*sequential_prefetch)(const CombineMove& args);
  void (*interleaved)(const CombineMove& args);
  void (*interleaved_prefetch)(const CombineMove& args);
};

const Probes& BestProbes();

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_RIVALS_H_
