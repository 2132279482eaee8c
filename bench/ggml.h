// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// llama.cpp's operations in an MoE layer, run by ggml's CPU backend. The
// operations, their order and their sharing of memory are the same as in
// llama.cpp.
//
// The graphs are built, allocated and planned beforehand. A call sets the
// pointers of inputs and outputs, and computes. Its time includes the fixed
// cost of a computation in llama.cpp: some 60 ns and, on several threads, a
// barrier after each operation. (llama.cpp also plans the graph again for each
// computation.) A call on one thread wakes no other thread.

#ifndef SWITCHYARD_BENCH_GGML_H_
#define SWITCHYARD_BENCH_GGML_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "switchyard/expert_weights.h"

namespace switchyard::bench::ggml {

// True if this program was built with ggml. Otherwise the functions below
// return empty objects.
bool Available();

// Stops ggml's threads that wait for the next call. Otherwise they would occupy
// a core for milliseconds, although the next contender needs the core.
void Rest();

// Returns a contender called "ggml", or "ggml:2" on two threads.
inline Contender Named(size_t threads, const std::vector<size_t>& writes) {
  Contender contender = {"ggml", writes};
  if (threads != 1) {
    contender.name += ":" + std::to_string(threads);
    contender.rest = Rest;
  }
  return contender;
}

// Returns ggml's version, its commit, and AVX512 if ggml was built for it, for
// example "0.25.3 0c1e570 AVX512". Returns "none" without ggml.
std::string Version();

// run() computes a softmax, an argsort, and the top_k probabilities, divided by
// their sum if `renormalize`. The ids are the first columns of the argsort,
// from which llama.cpp's next operation would read them. ids() copies the ids
// of the last run, [tokens, top_k].
struct Router {
  std::function<void(const float* logits, float* weights)> run;
  std::function<void(int32_t* ids)> ids;
};
Router Route(size_t tokens, size_t experts, size_t top_k, bool renormalize,
             size_t threads = 1);

// Computes out[r] = tokens[index[r]].
std::function<void(const float* tokens, const int32_t* index, float* out)>
GatherRows(size_t tokens, size_t rows, size_t hidden, size_t threads = 1);

// Computes SiLU(gate) * up in f32 or f16.
std::function<void(const void* gate, const void* up, void* out)> SiluMul(
    Type type, size_t rows, size_t cols, size_t threads = 1);

// Combines rows as llama.cpp does: multiplies each row by its weight, adds a
// token's rows with top_k - 1 additions, adds the residual, computes the norm,
// and multiplies it by norm_weight. A token's rows are adjacent. llama.cpp
// multiplies in place; this graph does not change the rows.
struct CombineArgs {
  const float* rows;         // [tokens, top_k, hidden]
  const float* weights;      // [tokens, top_k]
  const float* residual;     // [tokens, hidden]
  const float* norm_weight;  // [hidden]
  float* out;                // [tokens, hidden]
  float* normed;             // [tokens, hidden]
};
std::function<void(const CombineArgs& args)> Combine(size_t tokens,
                                                     size_t top_k,
                                                     size_t hidden, float eps,
                                                     size_t threads = 1);

// The weights of a layer's experts as a ggml tensor.
class Loaded;
// True if ggml multiplies weights of the format. ggml has no int8 format.
bool Has(WeightFormat format);
// True if llama.cpp would repack weights of this format and size on this CPU
// when it loads a model.
bool Repacks(WeightFormat format, size_t rows, size_t cols);
// Returns the weights as llama.cpp loads them: repacked, or in place if
// `repacked` is false.
std::shared_ptr<const Loaded> Load(const ExpertWeights& stored, bool repacked);

// Computes out = rows * weights^T for one expert. ggml quantises the rows in
// each call.
std::function<void(size_t expert, const float* rows, float* out)> Multiply(
    std::shared_ptr<const Loaded> weights, size_t rows, size_t threads = 1);

// Computes the experts of a layer as llama.cpp does: gate and up by mul_mat_id,
// SiLU(gate) * up, down by mul_mat_id, a multiplication of each row by its
// weight, top_k - 1 additions of rows, and the addition of the residual.
struct ExpertsArgs {
  const float* hidden;    // [tokens, hidden]
  const int32_t* ids;     // [tokens, top_k]
  const float* weights;   // [tokens, top_k]
  const float* residual;  // [tokens, hidden]
  float* out;             // [tokens, hidden]
};
struct ExpertsWeights {
  std::shared_ptr<const Loaded> gate, up, down;
};
std::function<void(const ExpertsArgs&)> Experts(const ExpertsWeights& weights,
                                                size_t tokens, size_t top_k,
                                                size_t threads = 1);

}  // namespace switchyard::bench::ggml

#endif  // SWITCHYARD_BENCH_GGML_H_
