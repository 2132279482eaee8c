// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_GGML_EXPERT_GEMM_H_
#define SWITCHYARD_GGML_EXPERT_GEMM_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "switchyard/types.h"

namespace switchyard_ggml {

// Memory for one call after the other. It grows if a call needs more, which
// loses the old content, and never shrinks.
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

// y[r, o] = sum over i of x[r, i] * weights[o, i] [+ bias[o]], with y and
// bias in f32. Runs on the calling thread alone. Weights are as ggml stores
// them. Several threads may call it, each with its own scratch. Throws
// dnnl::error or std::bad_alloc.
void RunGemm(const GemmShape& shape, const void* x, const void* weights,
             const float* bias, float* y, Scratch& scratch);

// Returns the type in which oneDNN multiplies weights that are stored as
// `type`: bf16 if `type` is bf16 and this CPU multiplies it, otherwise f32.
switchyard::Type OperandType(switchyard::Type type);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_EXPERT_GEMM_H_
