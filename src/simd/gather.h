// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_GATHER_H_
#define SWITCHYARD_SRC_SIMD_GATHER_H_

#include <atomic>
#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/gather.h"
#include "switchyard/types.h"

namespace switchyard::simd {

// Checked: shapes match, rows overlap nothing. Pairs outside [0, tokens.rows *
// top_k) make rows of zeros and are added to *invalid.
struct GatherArgs {
  const GatherInputs& inputs;
  const AnyMatrix& rows;
  std::atomic<size_t>* invalid;
};

RowFunction<GatherArgs> GatherRows(Type in, Type out) noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_GATHER_H_
