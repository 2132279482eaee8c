// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

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
  ConstAnyMatrix tokens;      // [num_tokens, hidden]
  Span<const int32_t> pairs;  // [n], as BucketPacked writes them
  // [num_tokens, top_k], as BucketPacked took them. Only the shape is looked
  // at: pair = token * top_k + slot.
  ConstAnyMatrix topk_ids;
};
struct GatherOutputs {
  AnyMatrix rows;            // [n, hidden]
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
// Types: tokens and rows are f32; topk_ids int32, uint32 or int64.
// Shapes: as above, each matrix with its own stride. n = 0 or hidden = 0 does
// nothing. rows may not overlap tokens or pairs. Values are copied bit for bit,
// NaN payloads included.
// A pair outside [0, num_tokens * top_k) reads nothing: its row becomes zeros,
// and it is counted in the report; unless the options allow that, the call
// returns kFailedPrecondition, after everything is written as if they did.
// Errors: kInvalidArgument for null data, strides, shapes and types that do not
// match, top_k = 0, overlap, overflow; nothing written.
Status GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs,
                  const GatherOptions& options = {},
                  Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_GATHER_H_
