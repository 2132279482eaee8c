// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Copies rows of tokens into the order of experts, and back. A pair is a
// token and one of its top_k slots: pair = token * top_k + slot.

#ifndef SWITCHYARD_GATHER_H_
#define SWITCHYARD_GATHER_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// Inputs of GatherRows().
struct GatherInputs {
  ConstAnyRows tokens;        // [num_tokens, hidden]: a row for each token
  Span<const int32_t> pairs;  // [n]: pairs, as BucketPacked writes them
  // [num_tokens, top_k], the ids given to BucketPacked. Only the shape is
  // read: pair = token * top_k + slot.
  ConstAnyMatrix topk_ids;
  // Optional [num_tokens, top_k], as BucketPacked writes it beside `pairs`.
  // With row_index, each token is converted once, and the token's other rows
  // are copies of the result. The values of row_index never change the results.
  // Give row_index with the whole list of pairs, not with a part of the list.
  ConstAnyMatrix row_index = {};
};
// Outputs of GatherRows().
struct GatherOutputs {
  AnyRows rows;              // [n, hidden]: a row for each pair
  Report* report = nullptr;  // optional; the call sets report->invalid
};
// Options of GatherRows().
struct GatherOptions {
  // Accept pairs outside [0, num_tokens * top_k). If this is false and the
  // call meets such a pair, it returns kFailedPrecondition.
  bool allow_invalid = false;
};

// Computes rows[r, :] = tokens[pairs[r] / top_k, :].
//
// Brings token rows into the order of a pair list, so that each expert's GEMM
// reads dense rows: the whole packed list of BucketPacked, or one expert's
// part of it (pairs.data + offsets[e], tokens_per_expert[e]) just before its
// GEMM, while the rows are still in the cache.
//
// Types: rows has any format of quantize.h. tokens are f32, bf16 or f16, or
// i8, u8, f8e4m3 or f8e5m2 with f32 scales. If tokens and rows have the same
// format, which may be any, rows are copied byte for byte, NaN payloads
// included. topk_ids are int32, uint32 or int64; row_index is int32. Shapes:
// as in GatherInputs and GatherOutputs, each matrix with its own stride. With
// n = 0 or hidden = 0, the call does nothing. rows may not overlap an input.
//
// Speed: if top_k is 8, a token is quantised once with row_index, and 8 times
// without it. Calling Quantize before GatherRows would also quantise each
// token once, but needs a quantised copy of all tokens.
//
// For a pair outside [0, num_tokens * top_k), no token is read: the pair's row
// becomes zeros (codes for 0, scales 0), and the report counts the pair. If
// options.allow_invalid is false, the call then returns kFailedPrecondition,
// after everything is written.
// Errors: kInvalidArgument for null data, strides, shapes and types that do
// not match, top_k = 0, an overlap or an overflow; nothing is written.
Status GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs,
                  const GatherOptions& options = {},
                  Executor& executor = SerialExecutor()) noexcept;

// Inputs of ScatterRows().
struct ScatterInputs {
  ConstAnyRows packed;       // [num_rows, hidden]: rows sorted by expert
  ConstAnyMatrix row_index;  // [tokens, top_k], as BucketPacked writes it
};
// Outputs of ScatterRows().
struct ScatterOutputs {
  AnyRows rows;              // [tokens * top_k, hidden]: a row for each pair
  Report* report = nullptr;  // optional; the call sets report->skipped
};
// Options of ScatterRows().
struct ScatterOptions {
  // Accept values of row_index outside [-1, num_rows). If this is false and
  // the call meets such a value, it returns kFailedPrecondition.
  bool allow_skipped = false;
};

// Computes outputs.rows[token * top_k + slot, :] =
// inputs.packed[row_index[token, slot], :].
//
// The inverse of GatherRows. It copies packed rows back into the order of
// (token, slot), for engines with a graph that needs this order. (Combine
// reads packed rows directly, with row_index.)
//
// Types, shapes, overlaps and errors are those of GatherRows; row_index is
// int32. Where row_index is -1, because the pair was dropped, the row becomes
// zeros. A value outside [-1, num_rows) gives zeros, too, so that a stale row
// is never read. The report counts such values.
Status ScatterRows(const ScatterInputs& inputs, const ScatterOutputs& outputs,
                   const ScatterOptions& options = {},
                   Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_GATHER_H_
