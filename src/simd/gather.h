// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_GATHER_H_
#define SWITCHYARD_SRC_SIMD_GATHER_H_

#include <atomic>
#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/gather.h"

namespace switchyard::simd {

// Checked: shapes and formats match, rows overlap nothing. Pairs outside [0,
// tokens.rows * top_k) make rows of zeros, and their number is added to
// *invalid.
struct GatherArgs {
  const GatherInputs& inputs;
  const AnyRows& rows;
  bool copy;  // tokens and rows are of the same format
  std::atomic<size_t>* invalid;
};

// Gathers rows.
RowFunction<GatherArgs> GatherRows() noexcept;
// The two steps with row_index: a row of each token, then all other rows.
RowFunction<GatherArgs> GatherTokens() noexcept;
RowFunction<GatherArgs> GatherOthers() noexcept;

// Checked, as above. The number of row_index values outside [-1, rows) is
// added to *skipped.
struct ScatterArgs {
  const ScatterInputs& inputs;
  const AnyRows& rows;
  bool copy;
  std::atomic<size_t>* skipped;
};

// Its range is of the rows that are written.
RowFunction<ScatterArgs> ScatterRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_GATHER_H_
