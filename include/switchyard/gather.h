// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_GATHER_H_
#define SWITCHYARD_GATHER_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// out[r, :] = tokens[pairs[r] / top_k, :]
//
// Brings token rows into the order of a pair list, so that each expert's GEMM
// reads dense rows: the whole packed list of BucketPacked, or one expert's
// part of it (pairs.data + offsets[e], tpe[e]) just before its GEMM, while the
// rows are still in the cache.
//
// Shapes: tokens [num_tokens, hidden], pairs [n], out [n, hidden], each with
// its own stride. n = 0 or hidden = 0 does nothing. out may not overlap tokens
// or pairs. Values are copied bit for bit, NaN payloads included.
// A pair outside [0, num_tokens * top_k) reads nothing: its out row becomes
// zeros, and it is counted in *invalid (may be null; set on success).
// Errors: kInvalidArgument for null data, strides, shapes that do not match,
// top_k = 0, overlap, overflow; nothing written.
Status GatherRows(Matrix<const float> tokens, Span<const int32_t> pairs,
                  size_t top_k, Matrix<float> out,
                  Executor& executor = SerialExecutor(),
                  size_t* invalid = nullptr) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_GATHER_H_
