// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defines the formats of rows. Quantize converts rows from one format to
// another. GatherRows, Activate and Combine can write the same formats
// directly, without a second pass over memory.

#ifndef SWITCHYARD_QUANTIZE_H_
#define SWITCHYARD_QUANTIZE_H_

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// Inputs of Quantize(), and the formats of a [rows, cols] AnyRows. A group of
// values shares a scale: a whole row if `scales` is [rows, 1], or 32, 64 or
// 128 columns (fewer at the end of a row) if `scales` has a column for each
// group. amax is the largest magnitude in a group.
//
// | type          | scales                    | code of a value x             |
// |---------------|---------------------------|-------------------------------|
// | f32           | none                      | x                             |
// | bf16, f16     | none                      | x rounded to nearest even;    |
// |               |                           | inf beyond the type's range   |
// | i8            | f32, amax / 127           | x * (127 / amax), to nearest  |
// | u8            | f32, amax / 127           | the code of i8 plus 128       |
// | f8e4m3        | f32, amax / 448           | x * (448 / amax), to nearest  |
// | f8e5m2        | f32, amax / 57344         | x * (57344 / amax), to        |
// |               |                           | nearest                       |
// | f8e4m3        | e8m0 of 32 columns: mxfp8 | x / scale, to nearest, at     |
// |               |                           | most 448 (OCP MX)             |
// | f8e5m2        | e8m0 of 32 columns: mxfp8 | x / scale, to nearest, at     |
// |               |                           | most 57344 (OCP MX)           |
// | q8_0, q8_1    | in blocks of 32           | as GGML's reference does      |
// | q8_k          | in blocks of 256          | as GGML's reference does      |
//
// "To nearest" rounds ties to even; GGML's q8_0 and q8_1 round halves away
// from zero. cols is a multiple of 32 for q8_0 and q8_1, and of 256 for q8_k.
// `sums` is optional and for i8 and u8 only, with at most 2^24 columns. It is
// int32 [rows, 1], the sum of each row's codes (u8: of code - 128), which an
// integer GEMM uses to correct for the weights' zero point.
//
// The fields d of q8_0 and d and s of q8_1 are f16. The largest f16 is 65504,
// and d and s of finite values may exceed it: a magnitude of 8.4e6 makes d
// infinite, and a block of 32 values of 2048.0 makes s infinite, because s
// would be 65536. GGML gives the same bits, and products with such a block
// are infinite or NaN. Quantize counts these blocks, and clamps their d and s
// if clamp_overflow is set. Other functions neither count nor clamp. The d of
// q8_k and the scales of codes are f32.
//
// In f8 a zero keeps its sign. vLLM's fp8 computes x / scale instead of x *
// (448 / amax), which may give the neighbouring code if x lies between two
// codes.
//
// A group of zeros has codes for 0 and scale 0 (e8m0: 2^-127). A group with a
// NaN or an infinity has codes for 0 and scale NaN, so that products with the
// group are NaN; in q8_1, s is NaN too, and in q8_k, bsums are 0. If 127 /
// amax (or 448 / amax, and so on) overflows, as it does for amax below 4e-37,
// all codes stand for 0. Codes have the same bits on every ISA.
struct QuantizeInputs {
  ConstAnyRows from;  // [rows, cols]: the rows to copy or convert
};
// Outputs of Quantize().
struct QuantizeOutputs {
  // [rows, cols] in any format of quantize.h. Its type, scales and sums
  // choose the format.
  AnyRows rows;
  // Optional. The call sets report->overflowed_blocks, which does not count
  // blocks that are copied byte for byte.
  Report* report = nullptr;
};
// Options of Quantize().
struct QuantizeOptions {
  // For blocks of q8_0 and q8_1 with finite values. If d would be infinite,
  // the block gets d = 65504 and the codes nearest to x / d, at most 127 in
  // magnitude. If s would be infinite, it becomes 65504 with its sign.
  // Without this option, blocks have GGML's bits.
  bool clamp_overflow = false;
};

// Copies `from` to `rows`, in the type and format of `rows`.
//
// Types: `from` is f32, bf16 or f16, or i8, u8, f8e4m3 or f8e5m2 with f32
// scales, in which a value is scale * code, rounded to f32. `rows` has any
// format of the table. If `from` and `rows` have the same format, rows are
// copied byte for byte. If only `rows` has sums, the codes are not copied,
// but computed again.
// Shapes: `from` and `rows` are [rows, cols], each with its own stride. With
// zero rows or columns, the call does nothing. No output may overlap another
// view.
// Values: NaN stays NaN in f32, bf16 and f16, but its payload may change.
// Errors: kInvalidArgument for null data, strides, shapes and types that do
// not match, scales or sums for a type that does not have them, an overlap or
// an overflow; nothing is written.
//
// The formats follow GGML (quantize_row_q8_0_ref and similar functions), the
// OCP Microscaling formats, and the dynamic per-token quantisation of vLLM
// and SGLang (scaled_int8_quant; quantize_row_int8, which adds the 128).
Status Quantize(const QuantizeInputs& inputs, const QuantizeOutputs& outputs,
                const QuantizeOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_QUANTIZE_H_
