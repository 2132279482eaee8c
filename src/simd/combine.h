// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_COMBINE_H_
#define SWITCHYARD_SRC_SIMD_COMBINE_H_

#include <atomic>
#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/combine.h"
#include "switchyard/types.h"

namespace switchyard::simd {

// Checked: shapes agree with out, [tokens, hidden], hidden >= 1; outputs are
// disjoint from inputs, but for out == residual and out == shared rows. What is
// optional has data exactly if it is given.
struct CombineArgs {
  const CombineInputs& inputs;  // to copy 400 bytes would take one token 30 ns
  const CombineOutputs& outputs;
  const CombineOptions& options;
  std::atomic<size_t>* skipped;  // row_index values outside [-1, rows)
};

// `in`: of rows, shared rows and residual; `out`: of out and normed.
RowFunction<CombineArgs> CombineRows(Type in, Type out) noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_COMBINE_H_
