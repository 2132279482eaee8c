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

// Rounds a size up to whole cache lines.
constexpr size_t CacheLines(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Returns the type of operands to use on this CPU instead of `wanted`. If
// `wanted` is bf16 and oneDNN would have to emulate bf16, which is slower,
// returns f32. Otherwise returns `wanted`.
switchyard::Type OperandType(switchyard::Type wanted);

constexpr switchyard::Type GemmOutType(switchyard::Type operands) {
  return operands == switchyard::Type::kF32 ? switchyard::Type::kF32
                                            : switchyard::Type::kBF16;
}

// A view of the weights of one GEMM, in the form that the GEMM reads.
struct GemmWeights {
  // If the weights are f32, each part points to one of the one or two stacked
  // matrices. Otherwise parts[0] points to all matrices, packed.
  std::array<const void*, 2> parts = {};
};

// A thread's scratch for oneDNN's GEMMs.
struct GemmScratch {
  Buffer pad;
};

// Computes y[r, o] = sum over i of x[r, i] * w[o, i]. Uses only the calling
// thread, because the executor's threads already keep every core busy, and a
// second pool would compete for the cores. With packed bf16 weights, rows must
// have no gaps. One object multiplies by any weights of its shape. Several
// threads may use the object at the same time.
//
// | x        | weights                | y    | by                         |
// |----------|------------------------|------|----------------------------|
// | f32      | f32, [out, in]         | f32  | oneDNN's sgemm             |
// | bf16     | bf16, packed           | bf16 | oneDNN's matmul            |
// | i8, q8_k | a WeightFormat, packed | bf16 | Switchyard's MultiplyTile  |
class Gemm {
 public:
  // w consists of one or two stacked matrices [rows, in], and `parts` has the
  // number of rows of each matrix. `operands` is a type that OperandType()
  // returns. Throws InputError if `format` does not allow rows of `in` weights.
  Gemm(switchyard::Type operands, size_t in, std::vector<size_t> parts,
       std::optional<switchyard::WeightFormat> format = {});
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  switchyard::Type operands() const { return operands_; }
  // Returns the format that x must have.
  switchyard::RowFormat row_format() const;
  switchyard::Type out_type() const { return GemmOutType(operands_); }
  size_t in() const { return in_; }
  size_t out() const { return out_; }
  const std::vector<size_t>& parts() const { return parts_; }

  // True if the GEMM reads f32 matrices as they are, without packing.
  bool TakesPlain() const { return operands_ == switchyard::Type::kF32; }
  // True if Run() can compute only some columns of the product.
  bool TakesColumns() const { return TakesPlain() || format_.has_value(); }
  // Returns the number of bytes of the weights in memory, packed or plain.
  size_t WeightBytes() const;
  // Returns the number of bytes of one f32 matrix, rounded up to whole cache
  // lines.
  size_t PartBytes(size_t part) const {
    return CacheLines(sizeof(float) * parts_[part] * in_);
  }
  // Returns the type of the weights that Pack() takes.
  switchyard::Type plain_type() const {
    return format_.has_value() ? switchyard::Type::kF32 : operands_;
  }
  // Packs weights [out, in] into `storage`, which must have WeightBytes() bytes
  // and start at a cache line. Do not call it if TakesPlain().
  GemmWeights Pack(const switchyard::ConstAnyRows& plain, void* storage) const;
  // Writes the values of the packed weights to `plain`: [out, in], in f32.
  void Unpack(const GemmWeights& weights, float* plain) const;

  // Computes columns [first, first + y.cols) of the product. If TakesColumns()
  // is false, the range must have all columns. Throws std::runtime_error on
  // failure.
  void Run(const switchyard::ConstAnyRows& x, const GemmWeights& weights,
           const switchyard::AnyMatrix& y, GemmScratch& scratch,
           size_t first = 0) const;

  // Returns the names of the kernels that have run.
  std::vector<std::string> Kernels() const;

 private:
  struct Packed;  // oneDNN's objects for packed bf16 weights

  // Returns a view of weights packed in format_, at `data`.
  switchyard::ExpertWeights ViewOf(const void* data) const;

  const switchyard::Type operands_;
  const size_t in_;
  const size_t out_;
  const std::vector<size_t> parts_;
  const std::optional<switchyard::WeightFormat> format_;
  std::unique_ptr<Packed> packed_;  // null unless the operands are bf16
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_GEMM_H_
