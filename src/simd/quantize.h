// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_QUANTIZE_H_
#define SWITCHYARD_SRC_SIMD_QUANTIZE_H_

#include <atomic>
#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/quantize.h"

namespace switchyard::simd {

// The caller has checked shapes and formats. `to` does not overlap `from`.
struct QuantizeArgs {
  const ConstAnyRows& from;
  const AnyRows& to;
  bool copy;  // the formats are equal, so rows are copied
  bool clamp;
  // The kernel adds the number of blocks that overflow to this counter, which
  // may be null.
  std::atomic<size_t>* overflowed;
};

RowFunction<QuantizeArgs> QuantizeRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_QUANTIZE_H_
