// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_QUANTIZE_H_
#define SWITCHYARD_SRC_SIMD_QUANTIZE_H_

#include <atomic>
#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/quantize.h"

namespace switchyard::simd {

// Checked: shapes and formats match, the rows overlap nothing.
struct QuantizeArgs {
  const ConstAnyRows& from;
  const AnyRows& to;
  bool copy;  // formats are equal
  bool clamp;
  // Counts the blocks that overflow, or null.
  std::atomic<size_t>* overflowed;
};

RowFunction<QuantizeArgs> QuantizeRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_QUANTIZE_H_
