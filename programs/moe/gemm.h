// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_GEMM_H_
#define SWITCHYARD_PROGRAMS_MOE_GEMM_H_

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "memory.h"
#include "switchyard/expert_weights.h"
#include "switchyard/views.h"

namespace moe_layer {

// Rounded up to a cache line.
constexpr size_t CacheLines(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The type that oneDNN should multiply on this CPU for `wanted`: f32 instead
// of bf16 if oneDNN would only emulate bf16, which is slower.
switchyard::Type OperandType(switchyard::Type wanted);

// The output type of a GEMM of such operands.
constexpr switchyard::Type GemmOutType(switchyard::Type operands) {
  return operands == switchyard::Type::kF32 ? switchyard::Type::kF32
                                            : switchyard::Type::kBF16;
}

// A view of the weights of one GEMM, in the form that it reads.
struct GemmWeights {
  // f32: the stacked matrices. Otherwise parts[0] has all of them, packed.
  std::array<const void*, 2> parts = {};
};

// A thread's scratch for oneDNN's GEMMs.
struct GemmScratch {
  Buffer pad;
};

// y[r, o] = sum over i of x[r, i] * w[o, i], on the calling thread alone: the
// executor's threads already keep every core busy, and a second pool would
// fight them for the cores. Rows of packed bf16 GEMMs are dense. One object
// serves all weights of one shape, from any number of threads.
//
// | x        | weights                | y    | by                         |
// |----------|------------------------|------|----------------------------|
// | f32      | f32, [out, in]         | f32  | oneDNN's sgemm             |
// | bf16     | bf16, packed           | bf16 | oneDNN's matmul            |
// | i8, q8_k | a WeightFormat, packed | bf16 | Switchyard's MultiplyTile  |
class Gemm {
 public:
  // `parts`: the rows of each of up to two matrices [rows, in] that are
  // stacked to w. `operands` as OperandType() returns it. Throws InputError if
  // the format cannot have rows of `in` weights.
  Gemm(switchyard::Type operands, size_t in, std::vector<size_t> parts,
       std::optional<switchyard::WeightFormat> format = {});
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  switchyard::Type operands() const { return operands_; }
  // The format of x.
  switchyard::RowFormat row_format() const;
  switchyard::Type out_type() const { return GemmOutType(operands_); }
  size_t in() const { return in_; }
  size_t out() const { return out_; }
  const std::vector<size_t>& parts() const { return parts_; }

  // True if f32 matrices are used in place.
  bool TakesPlain() const { return operands_ == switchyard::Type::kF32; }
  // True if Run() can multiply only some of the columns.
  bool TakesColumns() const { return TakesPlain() || format_.has_value(); }
  // The bytes of the weights in memory, packed or plain.
  size_t WeightBytes() const;
  // The bytes of a plain part, rounded up to a cache line.
  size_t PartBytes(size_t part) const {
    return CacheLines(sizeof(float) * parts_[part] * in_);
  }
  // The type of the weights that Pack() takes.
  switchyard::Type plain_type() const {
    return format_.has_value() ? switchyard::Type::kF32 : operands_;
  }
  // Writes WeightBytes() bytes, whole cache lines, at `storage`, on a cache
  // line. `plain` is [out, in]. Not with TakesPlain().
  GemmWeights Pack(const switchyard::ConstAnyRows& plain, void* storage) const;
  // Writes the values that the GEMM multiplies by: [out, in], in f32.
  void Unpack(const GemmWeights& weights, float* plain) const;

  // Columns [first, first + y.cols) of the product; all of them unless
  // TakesColumns(). Throws std::runtime_error on failure.
  void Run(const switchyard::ConstAnyRows& x, const GemmWeights& weights,
           const switchyard::AnyMatrix& y, GemmScratch& scratch,
           size_t first = 0) const;

  // The names of the kernels that have run.
  std::vector<std::string> Kernels() const;

 private:
  struct Packed;  // oneDNN's objects

  // Packed weights with a format, at `data`.
  switchyard::ExpertWeights ViewOf(const void* data) const;

  const switchyard::Type operands_;
  const size_t in_;
  const size_t out_;
  const std::vector<size_t> parts_;
  const std::optional<switchyard::WeightFormat> format_;
  std::unique_ptr<Packed> packed_;  // bf16
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_GEMM_H_
