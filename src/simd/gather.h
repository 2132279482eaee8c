// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_GATHER_H_
#define SWITCHYARD_SRC_SIMD_GATHER_H_

#include <atomic>
#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/gather.h"

namespace switchyard::simd {

// The caller has checked that shapes and formats match, that `rows` overlaps no
// input, and that the rows of `rows` do not overlap each other. A pair outside
// [0, tokens.rows * top_k) gives a row of zeros, and is counted in *invalid.
struct GatherArgs {
  const GatherInputs& inputs;
  const AnyRows& rows;
  bool copy;  // tokens and rows have the same format, so rows are copied
  std::atomic<size_t>* invalid;
};

// Computes rows [begin, end) of args.rows.
RowFunction<GatherArgs> GatherRows() noexcept;
// With row_index, work that converts takes two steps: GatherTokens() writes one
// row of each token, and then GatherOthers() writes all other rows.
RowFunction<GatherArgs> GatherTokens() noexcept;
RowFunction<GatherArgs> GatherOthers() noexcept;

// The caller has checked the arguments as for GatherArgs. The kernel counts
// row_index values outside [-1, rows) in *skipped.
struct ScatterArgs {
  const ScatterInputs& inputs;
  const AnyRows& rows;
  bool copy;
  std::atomic<size_t>* skipped;
};

// Computes rows [begin, end) of args.rows.
RowFunction<ScatterArgs> ScatterRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_GATHER_H_
