// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Multiplies rows with the weights of a layer's experts, in the usual
// formats. LayerWeights is an ExpertGemm (layer.h) for engines that have no
// GEMM for quantised weights. It reads weights as a GGUF or a checkpoint
// stores them, or packed weights, which are faster and are packed once.
// Stored and packed weights give the same bits, on every ISA with fused
// multiply-add and for every division of rows and columns into tiles. (Tiles of
// packed weights begin at a multiple of 16 columns.)
//
//   // A view of a GGUF's tensor blk.N.ffn_down_exps: [experts, rows, cols].
//   const ExpertWeights stored =
//       StoredWeights(WeightFormat::kQ4_0, tensor, 128, 2048, 768);
//   LayerWeights layer;  // pack layer.gate and layer.up in the same way
//   std::vector<uint8_t> memory(128 * PackedWeightsSize(stored));
//   Status s = PackWeights({stored},
//                          {{memory.data(), 128, PackedWeightsSize(stored)},
//                           &layer.down},
//                          {}, pool);
//
//   SetCosts(WeightFormat::kQ4_0, &shape);  // the options of PlanExperts()
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

// The formats of weights. For each format, the table has the value of a
// weight, and the term that a block of weights adds to the product of one
// output column with a row. x is the row, with codes q and scales dx. w is
// the column of weights. dot is the exact int32 sum of the products of the
// codes of x and w. Every other operation is f32.
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
// The product starts with acc = +0. For each block in ascending order, acc =
// fma(float(integer), scale, acc); int8 has only one term, which is a plain
// product. A block of q4_K has parts of 32 columns, and a block of q6_K parts
// of 16. isum is the exact sum of s * dot over the parts. msum is the exact
// sum over the parts of m * (sum of the codes q of the part). dw and d are
// f16 (mxfp4: a power of two, e8m0; int8: f32).
//
// With int8 weights, a row x may have several scales, each for a group of
// columns. Each group then adds a term, as a block of q8_0 does, and dw is
// the scale of the output column. Rows of weights have at most 131,071
// columns. In the formats with blocks of 32 or 256, the number of columns must
// be a multiple of the block.
//
// Use the float formats for few rows: for up to about 4 rows, a product takes
// as long as reading the weights. For more rows, use them only if the bits
// matter more than the time, because the GEMM of another library is faster
// but rounds in another order.
enum class WeightFormat : uint8_t {
  kInt8,   // int8 codes, with an f32 scale for each row
  kQ8_0,   // GGML's q8_0
  kQ4_0,   // GGML's q4_0
  kMXFP4,  // OCP's mxfp4 in GGML's blocks
  kQ4_K,   // GGML's q4_K
  kQ6_K,   // GGML's q6_K
  kF32,    // f32 elements
  kBF16,   // bf16 elements
  kF16     // f16 elements
};

// The order of the weights' bytes.
enum class WeightLayout : uint8_t {
  // The rows of an expert without gaps:
  // * kInt8: int8 codes.
  // * kQ8_0: BlockQ8_0.
  // * kF32, kBF16, kF16: elements.
  // The other formats have GGML's blocks:
  // * kQ4_0: an f16 d and 16 bytes. The low nibble of byte i is element i, the
  //   high nibble element i + 16.
  // * kMXFP4: an e8m0 scale and 16 bytes as in kQ4_0.
  // * kQ4_K: f16 d and dmin; 12 bytes of s and m; and 32 bytes for each 64
  //   columns. The low nibble of byte i is element i, the high nibble element
  //   i + 32.
  // * kQ6_K: 64 bytes for each 128 columns, with the low four bits: the low
  //   nibble of byte i is for element i, the high nibble for element i + 64.
  //   Then 32 bytes for each 128 columns, with the high two bits: byte i has
  //   the bits of elements i, i + 32, i + 64 and i + 96, in this order from
  //   the lowest bits. Then 16 int8 s and an f16 d.
  kStored,
  // Version 1 of the packed layout, the same on every machine. It has groups
  // of 16 rows, and extra rows fill up the last group. A group has the blocks
  // of its rows in ascending order, and zeros up to a multiple of 64 bytes. A
  // block has the scales of the 16 rows, and then their codes. In kInt8, the
  // f32 scales of the 16 rows follow the codes of all blocks.
  //
  // Codes of a block are lines of 64 bytes. The first line has bytes 0 to 3
  // of the block's stored codes for each of the 16 rows, the next line has
  // bytes 4 to 7, and so on. Int8 codes (kInt8, kQ8_0) are stored as code +
  // 128. kQ6_K has another order of lines. For each 128 columns, three lines
  // follow each other: bytes 0 to 3 of the first 32 bytes of low bits, of the
  // next 32 bytes of low bits, and of the high bits. The next three lines
  // have bytes 4 to 7 of these parts, and so on.
  //
  // Scales of a block begin with the d of the 16 rows. In kQ4_K, these are
  // followed by the dmin of the 16 rows, the four s of parts 0 to 3 of each
  // row, the s of parts 4 to 7 of each row, and m in the same order. In kQ6_K,
  // they are followed by the s of parts 0 to 3 of each row, of parts 4 to 7 of
  // each row, and so on.
  //
  // Extra rows and columns have the codes that stand for 0 (zero bytes in
  // kQ4_K and kQ6_K), and extra rows have scales of 0.
  kPacked,
};

// A view of all experts' weights for one product: [num_experts, rows, cols].
// A row of weights gives one column of the product's output, and has as many
// columns (cols) as the product's input.
struct ExpertWeights {
  WeightFormat format = WeightFormat::kQ8_0;    // the format of a weight
  WeightLayout layout = WeightLayout::kStored;  // the order of the bytes
  size_t rows = 0;  // columns of the product's output
  size_t cols = 0;  // columns of the product's input
  // uint8 [num_experts, ExpertWeightsSize()]: each row has the bytes of one
  // expert. May have any address, and any stride from this size on; packed
  // weights are faster if both are multiples of 64 bytes.
  ConstAnyMatrix data = {};
  // f32 [num_experts, rows], for kInt8 with kStored only: a scale for each
  // row.
  ConstAnyMatrix scales = {};
};

// Returns the number of bytes of one expert, computed from format, layout,
// rows and cols alone. A loader can compare this size with the size of its
// file. Returns SIZE_MAX if the size overflows, the format or the layout is
// unknown, or the format does not allow this number of columns.
size_t ExpertWeightsSize(const ExpertWeights& weights) noexcept;
// Returns the number of bytes of one expert in the layout kPacked, whatever
// weights.layout is. Returns SIZE_MAX if this size overflows or the format does
// not allow this number of columns.
size_t PackedWeightsSize(const ExpertWeights& weights) noexcept;

// Returns a view of weights [num_experts, rows, cols] in the layout kStored
// that begin at `data` and have no gaps between experts, as in a GGUF or a
// checkpoint. For kInt8, set the member `scales` too. The function checks
// nothing, because the calls that take the view do.
inline ExpertWeights StoredWeights(WeightFormat format, const void* data,
                                   size_t num_experts, size_t rows,
                                   size_t cols) noexcept {
  ExpertWeights weights;
  weights.format = format, weights.rows = rows, weights.cols = cols;
  weights.data = {static_cast<const uint8_t*>(data), num_experts,
                  ExpertWeightsSize(weights)};
  return weights;
}

// Inputs of PackWeights().
struct PackWeightsInputs {
  ExpertWeights weights;  // the weights to pack, with kStored
  // Optional: f32, bf16 or f16 weights [num_experts * rows, cols], which
  // PackWeights quantises. If you set `floats`, set only format, rows and
  // cols of `weights`.
  ConstAnyMatrix floats = {};
};
// Outputs of PackWeights().
struct PackWeightsOutputs {
  AnyMatrix memory;                  // uint8 [num_experts, PackedWeightsSize()]
  ExpertWeights* weights = nullptr;  // optional: a view of memory
};
// Options of PackWeights(). There are none so far.
struct PackWeightsOptions {};

// Packs weights on the executor's threads. To show progress or to free
// experts early, call PackWeights for a few experts at a time. RowRange()
// returns their rows of data, scales and memory.
//
// Floats become codes by the rules below. "To nearest" rounds ties to even.
// * int8: each row has the scale amax / 127, as in Quantize(); codes are
//   rounded to nearest.
// * q8_0: as Quantize() does, which follows GGML's reference.
// * f32, bf16, f16: rounded to nearest; NaN stays NaN, and infinities are
//   kept.
// * q4_0: as in GGML's reference. If m is the first value of the largest
//   magnitude, d = m / -8, and codes are min(15, int(x * (1 / d) + 8.5)).
// * mxfp4: as OCP defines it. The scale is amax rounded down to a power of
//   two, divided by 4; codes are the nearest e2m1, at most 6 in magnitude.
// * q4_K: for each part, low = min(0, x), high = max(x), scale = (high - low)
//   / 15 and min = -low. Codes are also computed with scale / r, for r =
//   0.94, 0.965, 0.99 and 1.02. A least squares fit to such codes replaces
//   scale and min if its sum of squared errors is smaller. d = the largest
//   scale / 63, dmin = the largest min / 63; s and m are rounded to nearest,
//   up to 63, and codes are (x + dmin * m) / (d * s), to nearest.
// * q6_K: for each part, scale = m / -32, with m as in q4_0. d = the scale of
//   the largest magnitude / -128; s is rounded to nearest, up to 127, and codes
//   are x / (d * s), to nearest.
// GGML's quantisers of q4_K and q6_K try more scales, so prefer the blocks of
// a GGUF if you have one.
// A row or block of zeros has scale 0 (mxfp4: 2^-127) and codes for 0. A row
// or block with a NaN or an infinity has scale NaN and codes for 0. f16
// scales beyond 65504 are infinite.
//
// The bytes are the same on every ISA with FMA and every executor. Overlap:
// memory must not overlap an input.
// Errors: kInvalidArgument for null data, wrong sizes or types, or an
// overlap; nothing is written. Codes and scales are not checked, because any
// bytes are valid weights.
Status PackWeights(const PackWeightsInputs& inputs,
                   const PackWeightsOutputs& outputs,
                   const PackWeightsOptions& options = {},
                   Executor& executor = SerialExecutor()) noexcept;

// Returns the format that a product's input rows need for weights of
// `format`. It is the value for ExpertsOptions::operands and, if the weights
// of the down product need another format, for down_operands.
// * kQ8_0, kQ4_0, kMXFP4: i8 with an f32 scale for each 32 columns
// * kInt8: i8 with an f32 scale for each row
// * kQ4_K, kQ6_K: q8_k
// * floats: the type of the weights
RowFormat OperandsOf(WeightFormat format) noexcept;

// Sets tile_columns and the costs of `options` for weights of `format`.
// Reading an expert's weights then costs as much as multiplying 3 rows (kF32:
// 6 rows). The default of ExpertsPlanOptions is 32 rows, which suits the bf16
// GEMM of another library.
void SetCosts(WeightFormat format, ExpertsPlanOptions* options) noexcept;

// Computes tile.out = tile.rows * weights^T for the tile's columns, on the
// calling thread.
//
// Rows:
// * q8_0, or i8 with an f32 scale for each row or for each group of 32, 64 or
//   128 columns. dx of a block of weights is the scale of the row, or of the
//   group in which the block lies.
// * For kQ4_K and kQ6_K: q8_k, or i8 with an f32 scale for each row.
// * For floats: f32, bf16 or f16.
// * Codes and scales may have any bits. The sums of q8_k are not read.
// out: f32, bf16 or f16, rounded once; must overlap neither rows nor their
// scales.
// tile.first_column: with packed weights, a multiple of 16. If
// ExpertsPlanOptions::tile_columns is a multiple of 16, all tiles of
// RunExperts() begin at one. tile.expert is the number of an expert of
// `weights`, or kShared if `weights` has only one expert. tile.product is not
// read. NaN: if a scale of a row or of a weight is NaN, every output that uses
// it is NaN. An infinite scale passes through the formula by IEEE 754. Bits:
// every ISA with FMA gives exactly the bits of the formulas at WeightFormat, in
// either layout and for every division into tiles. On other ISAs, the error is
// within (terms + 2) * 2^-24 of the sum of the terms' magnitudes. Errors:
// kInvalidArgument names the part that does not fit; nothing is written.
Status MultiplyTile(const ExpertWeights& weights,
                    const ExpertTile& tile) noexcept;

// The weights of all products of a layer, to pass to RunExperts() as its
// ExpertGemm. Set gate and up with GateUpLayout::kSplit, and gate_up with the
// other layouts. The shared_ fields have one expert each; leave them empty in
// a layer without a shared expert.
//
// Set `rows` of each field to the columns of its product: 2 * intermediate
// for gate_up, intermediate for gate and up, hidden for down. A product reads
// only this many rows, so a fused gate_up tensor that is passed as gate and as
// up is not refused, and gives wrong results.
struct LayerWeights {
  // The weights of the routed experts.
  ExpertWeights gate_up, gate, up, down;
  // The weights of the shared expert.
  ExpertWeights shared_gate_up, shared_gate, shared_up, shared_down;

  // Computes a tile: calls MultiplyTile() with these weights.
  Status operator()(const ExpertTile& tile) const noexcept;
};

// Calls MultiplyTile() with the weights of tile.product. An error names the
// weights: "LayerWeights: down: not given", or "down" in Status::details().
Status MultiplyTile(const LayerWeights& weights,
                    const ExpertTile& tile) noexcept;
inline Status LayerWeights::operator()(const ExpertTile& tile) const noexcept {
  return MultiplyTile(*this, tile);
}

}  // namespace switchyard

#endif  // SWITCHYARD_EXPERT_WEIGHTS_H_
