// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The rivals of the library's kernels: plain C++, oneDNN, and probes.

#ifndef SWITCHYARD_BENCH_RIVALS_H_
#define SWITCHYARD_BENCH_RIVALS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/weights.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/hyper.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"

namespace switchyard::bench {

// The kernels as a programmer would write them for an engine: plain C++ in
// single precision, compiled for this machine's CPU. (See plain-inl.h.) They
// support only the options that the benchmarks use. Matrices must be
// contiguous, of type f32 or bf16.
namespace plain {

constexpr size_t kMaxExperts = 16384;
constexpr size_t kMaxHidden = 8192;
constexpr size_t kTopK = 8;  // Combine() supports only this top_k

void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               bool renormalize);
// Routes by any score except kSparsemixer. Adds one bias, which all tokens
// share, to the scores. If there are groups, each must have at least two
// experts, and there must be a bias. Divides the weights by the sum of the
// selected weights.
void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               const RouteOptions& options);
// Sorts the pairs, and returns the number of pairs of the busiest expert.
size_t BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs);
void BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs);
// Appends each (token, slot) to its expert's row: rows[expert][pair].
struct TokenSlot {
  int32_t token, slot;
};
void AppendPairs(const BucketInputs& inputs, Span<int32_t> tokens_per_expert,
                 TokenSlot* rows);
void GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs);
constexpr const char* kQuantized[] = {"bf16", "i8", "f8e4m3", "q8_0"};
void Quantize(const QuantizeInputs& inputs, const QuantizeOutputs& outputs);
void Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs);
// Computes activations other than SiLU with the C library's functions, after an
// optional limit.
void Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
              const ActivateOptions& options);
// Combines with a residual and a norm, without a shared expert. Rows must be
// whole cache lines.
void Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
             float eps);
// Mixes the streams, collapses them, or does both. Rows must be whole cache
// lines.
void HyperConnect(const HyperInputs& inputs, const HyperOutputs& outputs,
                  const HyperOptions& options);

}  // namespace plain

// oneDNN's operations that do the kernels' work, on one thread. The functions
// make the primitives and memory objects of all slots beforehand, so that only
// dnnl_primitive_execute is timed. Slots are the inputs that calls rotate over.
namespace onednn {

std::string Version();

// Operations that run in sequence.
class Operations {
 public:
  struct Step;
  explicit Operations(std::vector<Step> steps);
  void operator()(size_t slot) const;

 private:
  std::shared_ptr<const std::vector<Step>> steps_;
};

// True if oneDNN supports bf16 on this CPU.
bool SupportsBf16();

// In the functions below, the inputs of the slots lie one after the other, and
// all slots share the outputs. All arguments have one type, f32 or bf16.
//
// Computes a softmax over each of `rows` rows.
Operations Softmax(Type type, size_t rows, size_t cols, size_t slots,
                   const void* in, void* out);
// Computes swish(gate), and then its product with `up`, in a single slot.
Operations SiluMul(Type type, size_t rows, size_t cols, const void* gate,
                   const void* up, void* out);
// Computes out[t] = weights[t] rows[t] + residual[t] as a batched product,
// without a norm.
Operations WeightedSum(Type type, size_t tokens, size_t top_k, size_t hidden,
                       size_t slots, const void* rows, const void* weights,
                       const void* residual, void* out);

// Computes out[r, c] = scales[c] * (sum of rows[r, i] * weights[c, i]) +
// offsets[c], with the weights of a different expert in each slot. Multiply()
// stores the weights to `memory` in the form that oneDNN chooses.
struct Int8Product {
  size_t num_rows, in, num_out, slots;
  const uint8_t* rows;    // [num_rows, in]
  const int8_t* weights;  // [slots, num_out, in]
  const float* scales;    // [slots, num_out]
  const float* offsets;   // [slots, num_out]
  float* out;             // [num_rows, num_out]
};
Operations Multiply(const Int8Product& product, HugePages* memory);

// Computes out[r, c] = sum of rows[r, i] * weights[c, i], in f32. Rows and
// weights have the type `type`, f32 or bf16. Otherwise as above.
struct FloatProduct {
  Type type;
  size_t num_rows, in, num_out, slots;
  const void* rows;     // [num_rows, in]
  const void* weights;  // [slots, num_out, in]
  float* out;           // [num_rows, num_out]
};
Operations Multiply(const FloatProduct& product, HugePages* memory);

}  // namespace onednn

// The arguments of probes that move the bytes of Combine: a weighted sum, a
// residual and a norm, with eight experts per token.
struct CombineMove {
  const float* rows;         // [.., hidden]
  const int32_t* row_index;  // [tokens, 8]; null: rows are in order
  const float* residual;     // [tokens, hidden]
  const float* norm_weight;  // [hidden]
  float* out;                // [tokens, hidden]
  float* normed;             // [tokens, hidden]
  size_t tokens;
  size_t hidden;  // a row is whole cache lines
};

// Loops that only move a kernel's bytes, with this machine's widest vectors, so
// that no kernel can be much faster. The probes of Activate() also divide, as
// the kernel does. Outputs must start on a cache line, because the loops write
// whole lines. Inputs may start anywhere; the loops read whole vectors.
struct Probes {
  // Reads `in`, then fills `out`, in elements of 4 bytes.
  void (*move)(const void* in, size_t in_size, void* out, size_t out_size);
  // Computes out = up / gate.
  void (*divide)(const float* gate, const float* up, float* out, size_t size);
  void (*divide_streaming)(const float* gate, const float* up, float* out,
                           size_t size);
  // `sequential` moves the rows of a token one after the other; `interleaved`
  // moves all rows of a token side by side.
  void (*sequential)(const CombineMove& args);
  void (*sequential_prefetch)(const CombineMove& args);
  void (*interleaved)(const CombineMove& args);
  void (*interleaved_prefetch)(const CombineMove& args);
};

const Probes& BestProbes();

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_RIVALS_H_
