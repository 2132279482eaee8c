// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Copies rows of tokens into the order of experts, and back.

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
  // [num_tokens, top_k], the ids given to BucketPacked. Only the shape is
  // read: pair = token * top_k + slot.
  ConstAnyMatrix topk_ids;
  // Optional [num_tokens, top_k], as BucketPacked writes it beside `pairs`:
  // each token is converted once, and its other rows are copies. Results are
  // the same as without it, for any values in it. Give it with the whole pair
  // list, not with a part of it.
  ConstAnyMatrix row_index = {};
};
struct GatherOutputs {
  AnyRows rows;              // [n, hidden]
  Report* report = nullptr;  // sets invalid
};
struct GatherOptions {
  // Accept pairs outside [0, num_tokens * top_k). Otherwise the call returns
  // kFailedPrecondition when it has met any.
  bool allow_invalid = false;
};

// rows[r, :] = tokens[pairs[r] / top_k, :]
//
// Brings token rows into the order of a pair list, so that each expert's GEMM
// reads dense rows: the whole packed list of BucketPacked, or one expert's
// part of it (pairs.data + offsets[e], tokens_per_expert[e]) just before its
// GEMM, while the rows are still in the cache.
//
// Types: rows has any format of quantize.h. tokens are f32, bf16 or f16, or
// i8, u8, f8e4m3 or f8e5m2 with f32 scales, or have the same format as rows,
// whichever that is: then rows are copied byte for byte, NaN payloads
// included. topk_ids int32, uint32 or int64; row_index int32.
// Shapes: as above, each matrix with its own stride. n = 0 or hidden = 0 does
// nothing. rows may not overlap an input.
//
// Quantise once: with row_index a token of top_k = 8 is quantised once
// instead of 8 times. Calling Quantize on the tokens and gathering its result
// does the same, but makes a copy of all tokens.
//
// A pair outside [0, num_tokens * top_k) reads nothing: its row becomes zeros
// (codes for 0, scales 0), and the report counts it. Without
// options.allow_invalid the call then returns kFailedPrecondition; it has
// written the same outputs as with it.
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
  // Accept values of row_index outside [-1, num_rows). Otherwise the call
  // returns kFailedPrecondition when it has met any.
  bool allow_skipped = false;
};

// outputs.rows[token * top_k + slot, :] = inputs.rows[row_index[token, slot],
// :]
//
// The inverse of GatherRows: puts packed rows back in the order of (token,
// slot), for engines with a graph that needs this order. (Combine with
// row_index needs no such copy.)
//
// Types, shapes, overlaps and errors as for GatherRows; row_index int32.
// Where it is -1 (the pair was dropped) the row becomes zeros. A value
// outside [-1, num_rows) gives zeros too, and is counted: a stale row is
// never read.
Status ScatterRows(const ScatterInputs& inputs, const ScatterOutputs& outputs,
                   const ScatterOptions& options = {},
                   Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_GATHER_H_
