// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The formats of rows, and Quantize, which converts rows from one format to
// another. GatherRows, Activate and Combine write the same formats in their
// own pass over memory.

#ifndef SWITCHYARD_QUANTIZE_H_
#define SWITCHYARD_QUANTIZE_H_

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// The formats of a [rows, cols] AnyRows. amax is the largest magnitude of a
// group: of a row if `scales` is [rows, 1], or of 32, 64 or 128 columns (fewer
// at the end of a row) if it has a column for each group.
//
// | type          | scales                    | code of a value x             |
// |---------------|---------------------------|-------------------------------|
// | f32           | none                      | x                             |
// | bf16, f16     | none                      | x rounded to nearest even;    |
// |               |                           | beyond the type's range inf   |
// | i8            | f32, amax / 127           | x * (127 / amax), to nearest  |
// | u8            | f32, amax / 127           | the same plus 128             |
// | f8e4m3        | f32, amax / 448           | x * (448 / amax), to nearest  |
// | f8e5m2        | f32, amax / 57344         | x * (57344 / amax), the same  |
// | f8e4m3        | e8m0 of 32 columns: mxfp8 | x / scale, to nearest, at     |
// |               |                           | most 448 (OCP MX)             |
// | f8e5m2        | e8m0 of 32 columns: mxfp8 | the same, at most 57344       |
// | q8_0, q8_1    | in blocks of 32           | as GGML's reference does      |
// | q8_k          | in blocks of 256          | the same                      |
//
// "To nearest" is to even on ties; GGML's q8_0 and q8_1 round halves away from
// zero. cols is a multiple of 32 for q8_0 and q8_1, of 256 for q8_k. `sums`,
// for i8 and u8 only, optional and of at most 2^24 columns, is int32 [rows, 1]:
// the sum of a row's codes (u8: less 128 each), by which an integer GEMM
// corrects for the weights' zero point.
//
// The fields d of q8_0 and d and s of q8_1 are f16. The largest f16 is 65504,
// and d and s of finite values may exceed it: a magnitude of 8.4e6 makes d
// infinite, and a block of 32 values of 2048.0 makes s infinite, because s
// would be 65536. These are GGML's bits, and products with such a block are
// infinite or NaN. Quantize counts such blocks, and clamps them if
// clamp_overflow is set; other functions do neither. The d of q8_k is f32, as
// are the scales of codes.
//
// In f8 the sign of a zero is kept. vLLM's fp8 computes x / scale, which may
// give the neighbouring code where x lies between two.
//
// A group of zeros has codes for 0 and scale 0 (e8m0: 2^-127). A group with a
// NaN or an infinity has codes for 0 and scale NaN (q8_1: s too; q8_k: bsums
// 0), so that products with the group are NaN. Where 127 / amax overflows
// (amax below 4e-37, and so on), codes are for 0. Codes are the same bits on
// every ISA.
struct QuantizeInputs {
  ConstAnyRows from;  // [rows, cols]
};
struct QuantizeOutputs {
  AnyRows rows;  // [rows, cols]
  // Sets overflowed_blocks. Blocks that are copied byte for byte do not
  // count.
  Report* report = nullptr;
};
struct QuantizeOptions {
  // Blocks of q8_0 and q8_1 with an infinite d of finite values get d = 65504
  // and the codes nearest to x / d, at most 127 in magnitude; an infinite s of
  // these blocks, and of others, becomes 65504 with its sign. Off: GGML's bits.
  bool clamp_overflow = false;
};

// rows = from, in the type and format of rows.
//
// Types: from f32, bf16 or f16, or i8, u8, f8e4m3 or f8e5m2 with f32 scales:
// value = scale * code, rounded to f32. rows any of the above. Equal formats
// are copied byte for byte, except that codes are computed again if rows has
// sums and from does not.
// Shapes: as above, each with its own stride. Zero rows or columns do nothing.
// Nothing may overlap an output.
// Values: NaN stays NaN in f32, bf16 and f16 (its payload may not).
// Errors: kInvalidArgument for null data, strides, shapes and types that do
// not match, scales or sums for a type that does not have them, overlap,
// overflow; nothing written.
//
// From the definitions of GGML (quantize_row_q8_0_ref and its like), of the
// OCP Microscaling formats, and of dynamic per-token quantisation in vLLM and
// SGLang (scaled_int8_quant; quantize_row_int8, which adds the 128).
Status Quantize(const QuantizeInputs& inputs, const QuantizeOutputs& outputs,
                const QuantizeOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_QUANTIZE_H_
