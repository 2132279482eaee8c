// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Loops that only move a kernel's bytes, as wide as this machine's vectors:
// what no kernel can beat by much. The SiLU-mul probes add its divide.
// Pointers are on cache lines, or are read in whole vectors from elsewhere;
// whole lines of the outputs are written.

#ifndef SWITCHYARD_BENCH_PROBES_H_
#define SWITCHYARD_BENCH_PROBES_H_

#include <cstddef>
#include <cstdint>

namespace switchyard {
namespace bench {

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

}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_PROBES_H_
