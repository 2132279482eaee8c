// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_GGML_EXPERT_GEMM_H_
#define SWITCHYARD_GGML_EXPERT_GEMM_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "switchyard/types.h"

namespace switchyard_ggml {

// Memory that calls use one after the other. It never shrinks. If a call
// needs more, it grows and loses its content.
class Scratch {
 public:
  template <class T>
  T* AtLeast(size_t count) {
    return static_cast<T*>(Bytes(count * sizeof(T)));
  }

 private:
  void* Bytes(size_t size);

  struct Free {
    void operator()(void* data) const;
  };
  std::unique_ptr<void, Free> data_;
  size_t size_ = 0;
};

struct GemmShape {
  size_t rows = 0;
  size_t in = 0;
  size_t out = 0;
  switchyard::Type operands = switchyard::Type::kBF16;  // or kF32
  bool has_bias = false;

  bool operator<(const GemmShape& other) const;
};

// Computes y[r, o] = sum over i of x[r, i] * weights[o, i], plus bias[o] if
// there is a bias, with y and bias in f32. Runs on the calling thread alone.
// Weights are as ggml stores them. Several threads may call RunGemm, each
// with its own scratch. Throws dnnl::error or std::bad_alloc.
void RunGemm(const GemmShape& shape, const void* x, const void* weights,
             const float* bias, float* y, Scratch& scratch);

// Returns the type in which oneDNN multiplies weights that are stored as
// `type`: bf16 if `type` is bf16 and this CPU multiplies bf16, otherwise f32.
switchyard::Type OperandType(switchyard::Type type);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_EXPERT_GEMM_H_
