// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Rows of tokens to the order of experts, and back.

#ifndef SWITCHYARD_GATHER_H_
#define SWITCHYARD_GATHER_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

struct GatherInputs {
  ConstAnyRows tokens;        // [num_tokens, hidden]
  Span<const int32_t> pairs;  // [n], as BucketPacked writes them
  // [num_tokens, top_k], as BucketPacked took them. Only the shape is looked
  // at: pair = token * top_k + slot.
  ConstAnyMatrix topk_ids;
  // Optional [num_tokens, top_k], as BucketPacked writes it beside `pairs`:
  // each token is converted once, and its other rows are copies. Results are
  // those without it, whatever it holds; for the whole list, not for a part.
  ConstAnyMatrix row_index = {};
};
struct GatherOutputs {
  AnyRows rows;              // [n, hidden]
  Report* report = nullptr;  // sets invalid
};
struct GatherOptions {
  // Pairs outside [0, num_tokens * top_k) are expected. Otherwise the call
  // returns kFailedPrecondition when it has met any.
  bool allow_invalid = false;
};

// rows[r, :] = tokens[pairs[r] / top_k, :]
//
// Brings token rows into the order of a pair list, so that each expert's GEMM
// reads dense rows: the whole packed list of BucketPacked, or one expert's
// part of it (pairs.data + offsets[e], tokens_per_expert[e]) just before its
// GEMM, while the rows are still in the cache.
//
// Types: tokens and rows as in quantize.h: f32, bf16, f16 or quantised, tokens
// i8, u8, f8e4m3 or f8e5m2 with f32 scales, or of the same format as rows, in
// any format: then rows are copied byte for byte, NaN payloads included.
// topk_ids int32, uint32 or int64; row_index int32.
// Shapes: as above, each matrix with its own stride. n = 0 or hidden = 0 does
// nothing. rows may not overlap an input.
//
// Quantise once: with row_index a token of top_k = 8 is quantised once instead
// of 8 times; to Quantize the tokens and to gather what comes of that does the
// same, with a copy of them all.
//
// A pair outside [0, num_tokens * top_k) reads nothing: its row becomes zeros
// (codes for 0, scales 0), and it is counted in the report; unless the options
// allow that, the call returns kFailedPrecondition, after everything is written
// as if they did.
// Errors: kInvalidArgument for null data, strides, shapes and types that do not
// match, top_k = 0, overlap, overflow; nothing written.
Status GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs,
                  const GatherOptions& options = {},
                  Executor& executor = SerialExecutor()) noexcept;

struct ScatterInputs {
  ConstAnyRows packed;       // [num_rows, hidden]
  ConstAnyMatrix row_index;  // [tokens, top_k], as BucketPacked writes it
};
struct ScatterOutputs {
  AnyRows rows;              // [tokens * top_k, hidden]
  Report* report = nullptr;  // sets skipped
};
struct ScatterOptions {
  // Values of row_index outside [-1, num_rows) are expected. Otherwise the call
  // returns kFailedPrecondition when it has met any.
  bool allow_skipped = false;
};

// outputs.rows[token * top_k + slot, :] = inputs.rows[row_index[token, slot],
// :]
//
// The inverse of GatherRows: packed rows back in the order of (token, slot),
// for engines whose graph wants that. (Combine with row_index needs no such
// copy.)
//
// Types, shapes, overlaps and errors as for GatherRows; row_index int32. Where
// it is -1 (the pair was dropped) the row becomes zeros; values outside
// [-1, num_rows) do the same and are counted: a stale row is never read.
Status ScatterRows(const ScatterInputs& inputs, const ScatterOutputs& outputs,
                   const ScatterOptions& options = {},
                   Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_GATHER_H_
