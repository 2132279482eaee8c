// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Products with the weights of a layer's experts, in the usual formats: an
// ExpertGemm (layer.h) for engines that have no GEMM for quantised weights.
// The weights are multiplied as a GGUF or a checkpoint stores them, or packed
// once, which is faster. Both give the same bits, on every ISA with fused
// multiply-add and for every cut by rows and columns.
//
//   ExpertWeights stored;  // a view of a GGUF's tensor blk.N.ffn_down_exps
//   stored.format = WeightFormat::kQ4_0;
//   stored.rows = 2048, stored.cols = 768;
//   stored.data = {tensor, 128, ExpertWeightsSize(stored)};
//   LayerWeights layer;  // layer.gate and layer.up likewise
//   std::vector<uint8_t> memory(128 * PackedWeightsSize(stored));
//   Status s = PackWeights({stored},
//                          {{memory.data(), 128, PackedWeightsSize(stored)},
//                           &layer.down},
//                          {}, pool);
//
//   SetCosts(WeightFormat::kQ4_0, &shape);  // of PlanExperts()
//   options.operands = OperandsOf(WeightFormat::kQ4_0);
//   options.activate.layout = GateUpLayout::kSplit;
//   s = RunExperts(in, {out}, options, layer, pool);

#ifndef SWITCHYARD_EXPERT_WEIGHTS_H_
#define SWITCHYARD_EXPERT_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/layer.h"
#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard {

// The code of one output column's weights, and the product of that column
// with a row. x is the row (codes q, scales dx), w the weights of the column,
// dot the exact int32 sum of the products of codes. Every other operation is
// f32.
//
// | format       | block | weight               | a block's term             |
// |--------------|-------|----------------------|----------------------------|
// | int8         | all   | dw * code            | dot * (dw * dx)            |
// | q8_0         | 32    | dw * code            | dot * (dw * dx)            |
// | q4_0         | 32    | dw * (code - 8)      | dot * (dw * dx)            |
// | mxfp4        | 32    | dw * e2m1            | dot(2 * e2m1) * (dw/2 * dx)|
// | q4_K         | 256   | d * s * code         | isum * (d * dx), then      |
// |              |       |   - dmin * m         |   -msum * (dmin * dx)      |
// | q6_K         | 256   | d * s * (code - 32)  | isum * (d * dx)            |
// | f32 bf16 f16 | 1     | w                    | w * x                      |
//
// From acc = +0 on, blocks in ascending order, acc = fma(float(integer), scale,
// acc); the one term of int8 is a product. isum is the exact sum of s * dot of
// the block's parts (of 32 columns, of 16 in q6_K), and msum of m times the sum
// of the part's q. dw and d are f16 (mxfp4: a power of two, e8m0; int8: f32).
//
// With int8 weights, rows that have several scales are summed by their groups
// of columns, as q8_0 sums its blocks; dw is the column's scale. int8 and
// floats take any number of columns up to 131,072; the others take multiples
// of their block.
//
// Use floats for few rows, up to about 4, which take as long as reading the
// weights. Use them for more rows only where the bits matter more than the
// time: the GEMM of another library is faster but rounds in another order.
enum class WeightFormat : uint8_t {
  kInt8,
  kQ8_0,
  kQ4_0,
  kMXFP4,
  kQ4_K,
  kQ6_K,
  kF32,
  kBF16,
  kF16
};

enum class WeightLayout : uint8_t {
  // [rows, cols] of an expert, row by row without gaps. kInt8: int8 codes.
  // kQ8_0: BlockQ8_0. Others: GGML's blocks.
  // kQ4_0: an f16 d and 16 bytes. The low nibble of byte i is element i, the
  // high nibble element i + 16. kMXFP4: an e8m0 scale and the same 16 bytes.
  // kQ4_K: f16 d and dmin, 12 bytes of s and m, and for each 64 columns 32
  // bytes: element i in the low nibble of byte i, i + 32 in the high one.
  // kQ6_K: for each 128 columns 64 bytes of the low four bits, element i in
  // the low nibble of byte i, i + 64 in the high one; for each 128 columns 32
  // bytes of the high two bits, of i, i + 32, i + 64 and i + 96 from the
  // lowest bits of byte i on; 16 int8 s; an f16 d.
  kStored,
  // Version 1, the same on every machine: groups of 16 rows, the last one
  // filled up with extra rows. A group of R blocks is
  //   codes of block 0, ..., codes of block R - 1, scales,
  // and zeros up to a multiple of 64 bytes.
  // Codes of a block: the 16 rows' bytes 0 to 3 of the block's stored codes,
  // then bytes 4 to 7, and so on. Int8 codes (kInt8, kQ8_0) are code + 128.
  // kQ6_K has, for each 128 columns, the four bytes at 0 of the first 32, of
  // the next 32 and of the high bits side by side, then the bytes at 4 of
  // each, and so on.
  // Scales: of each block the 16 rows' d; kInt8: of all blocks the 16 rows'
  // f32. In kQ4_K follow the 16 rows' dmin, then each row's four s of parts 0
  // to 3, of parts 4 to 7, and m likewise; in kQ6_K each row's s of parts 0 to
  // 3, and so on.
  // Extra rows and columns have codes for 0 (kQ4_K, kQ6_K: zeros), and extra
  // rows have scales 0.
  kPacked,
};

// A view of all experts' weights for one product: [num_experts, rows, cols].
// A row of weights gives one column of the product's output, and has as many
// columns (cols) as the product's input.
struct ExpertWeights {
  WeightFormat format = WeightFormat::kQ8_0;
  WeightLayout layout = WeightLayout::kStored;
  size_t rows = 0;
  size_t cols = 0;
  // uint8 [num_experts, ExpertWeightsSize()], the bytes of an expert in a row.
  // Any stride and address; packed weights are faster at multiples of 64.
  ConstAnyMatrix data = {};
  // kInt8 as stored: f32 [num_experts, rows].
  ConstAnyMatrix scales = {};
};

// Bytes of one expert, computed from format, layout, rows and cols alone. A
// loader compares them with the size of its file. SIZE_MAX if the size
// overflows or the format does not take this number of columns.
size_t ExpertWeightsSize(const ExpertWeights& weights) noexcept;
// The same for kPacked, whichever layout `weights` has.
size_t PackedWeightsSize(const ExpertWeights& weights) noexcept;

struct PackWeightsInputs {
  ExpertWeights weights;  // as stored
  // Or f32, bf16 or f16 [num_experts * rows, cols], which PackWeights
  // quantises; set only format, rows and cols of `weights` then.
  ConstAnyMatrix floats = {};
};
struct PackWeightsOutputs {
  AnyMatrix memory;                  // uint8 [num_experts, PackedWeightsSize()]
  ExpertWeights* weights = nullptr;  // optional: a view of memory
};
struct PackWeightsOptions {};

// Packs weights, on the executor's threads. To show progress, or to free
// experts early, call it for a few experts at a time, with data.RowRange(),
// scales.RowRange() and memory.RowRange().
//
// Floats become codes by these rules; "nearest" breaks ties to even.
// * int8: a scale of each row, amax / 127, as Quantize() does; nearest.
// * q8_0: as Quantize() does, which is GGML's reference.
// * f32, bf16, f16: to nearest; NaN stays NaN, and infinities are kept.
// * q4_0: GGML's reference. With m the first value of the largest magnitude, d
// =
//   m / -8 and codes min(15, int(x * (1 / d) + 8.5)).
// * mxfp4: OCP's. The scale is the power of two two binary places below amax;
//   the nearest e2m1, at most 6 in magnitude.
// * q4_K: of each part low = min(0, x), high = max(x), scale = (high - low) /
//   15 and min = -low; or, if that lessens the sum of the squared errors, the
//   least squares fit of the codes for 1 / 0.94, 0.965, 0.99 or 1.02 of that
//   scale. d = the largest scale / 63, dmin = the largest min / 63; s and m the
//   nearest up to 63, codes the nearest of (x + dmin * m) / (d * s).
// * q6_K: scale = m / -32 of each part, with m as in q4_0; d = the scale of the
//   largest magnitude / -128; s the nearest up to 127, codes the nearest of x /
//   (d * s).
// GGML's quantisers of q4_K and q6_K try more scales, so prefer the blocks of
// a GGUF if you have one.
// A row or block of zeros has scale 0 (mxfp4: 2^-127) and codes for 0; one with
// a NaN or an infinity has scale NaN and codes for 0. f16 scales beyond 65504
// are infinite.
//
// The bytes are the same on every ISA with FMA and every executor.
// Overlap: memory overlaps no input.
// Errors: kInvalidArgument for null data, sizes, types, an overlap; nothing
// is written. Codes and scales are not checked, because any bytes are valid
// weights.
Status PackWeights(const PackWeightsInputs& inputs,
                   const PackWeightsOutputs& outputs,
                   const PackWeightsOptions& options = {},
                   Executor& executor = SerialExecutor()) noexcept;

// The format of rows that products with weights of `format` read. It is the
// value for ExpertsOptions::operands and, if the weights of the down product
// need another one, for down_operands: int8 with f32 scales, of 32 columns
// each or, for kInt8, of a row; q8_k for kQ4_K and kQ6_K; floats of the
// weights' type.
RowFormat OperandsOf(WeightFormat format) noexcept;

// Sets tile_columns and the costs for weights of `format`: reading an
// expert's weights takes as long as 3 rows (kF32: 6), where
// ExpertsPlanOptions counts 32 by default, for a library's bf16.
void SetCosts(WeightFormat format, ExpertsPlanOptions* options) noexcept;

// tile.out = tile.rows * weights^T for the tile's columns, on the calling
// thread.
//
// Rows: q8_0, or i8 with f32 scales of rows or of groups of 32, 64 or 128
// columns; blocks of weights take the scale of the row or group that they lie
// in. For kQ4_K and kQ6_K: q8_k, or i8 with f32 scales of rows. For floats:
// f32, bf16 or f16. Codes and scales may have any bits; sums of q8_k are not
// read.
// out: f32, bf16 or f16, rounded once.
// tile.expert is an expert of weights, or kShared if weights has one expert
// only. tile.product is not read. out overlaps neither rows nor their scales.
// NaN: a NaN scale of a row or of a weight makes NaN of every output that
// uses it; an infinite one passes through the formula by IEEE 754.
// Bits: the formulas above, exactly, on every ISA with FMA, for every cut by
// rows and columns and either layout. Other ISAs stay within (terms + 2) *
// 2^-24 of the sum of the terms' magnitudes.
// Errors: kInvalidArgument names the part that does not fit; nothing is
// written.
Status MultiplyTile(const ExpertWeights& weights,
                    const ExpertTile& tile) noexcept;

// The weights of all products of a layer, as an ExpertGemm: gate_up for
// GateUpLayouts with one matrix, gate and up for kSplit. The shared_ fields
// have one expert each, and stay empty in a layer without a shared expert.
struct LayerWeights {
  ExpertWeights gate_up, gate, up, down;
  ExpertWeights shared_gate_up, shared_gate, shared_up, shared_down;

  Status operator()(const ExpertTile& tile) const noexcept;
};

// MultiplyTile() with the weights of tile.product. Errors name the weights that
// are not given: "LayerWeights: down: not given".
Status MultiplyTile(const LayerWeights& weights,
                    const ExpertTile& tile) noexcept;
inline Status LayerWeights::operator()(const ExpertTile& tile) const noexcept {
  return MultiplyTile(*this, tile);
}

}  // namespace switchyard

#endif  // SWITCHYARD_EXPERT_WEIGHTS_H_
