// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_GGML_EXPERT_GEMM_H_
#define SWITCHYARD_GGML_EXPERT_GEMM_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "switchyard/types.h"

namespace switchyard_ggml {

// Memory that grows and is kept; what it held is lost when it does.
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

// y[r, o] = sum over i of x[r, i] * weights[o, i] [+ bias[o]], y and bias f32,
// on the calling thread alone. Weights as ggml stores them. May be called from
// several threads, each with its own scratch. Throws dnnl::error,
// std::bad_alloc.
void RunGemm(const GemmShape& shape, const void* x, const void* weights,
             const float* bias, float* y, Scratch& scratch);

// The type that weights stored as `type` are multiplied in: bf16 if this CPU
// multiplies that, f32 otherwise.
switchyard::Type OperandType(switchyard::Type type);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_EXPERT_GEMM_H_
