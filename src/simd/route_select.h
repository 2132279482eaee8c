// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds the k largest keys of each row, in the order of switchyard/route.h, and
// computes a value for each. src/simd/route.h lists the callers.

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_SELECT_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_SELECT_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// The values of the selected experts: their keys, or exp(key - max) divided by
// a sum of such exps. max is the row's largest key.
struct SelectMode {
  enum Values : uint8_t {
    kKeys,             // the keys; all NaN in a row with a NaN
    kShareOfSelected,  // divided by max(sum of selected, clamp * sum of all)
    kShareOfAll,       // divided by the sum of all experts
  };
  Values values;
  float clamp;  // for kShareOfSelected, in [0, 1]
};
constexpr SelectMode SoftmaxMode(bool renormalize, float clamp) {
  return {renormalize ? SelectMode::kShareOfSelected : SelectMode::kShareOfAll,
          clamp};
}

// True if a row's values need exp of all keys, and not only of the selected
// keys. A clamp up to k / experts makes no difference, because the selected
// experts have at least that share of the sum. The answer must not depend on
// values, nor on their rounding.
constexpr bool NeedsAll(SelectMode mode, size_t experts, size_t k) {
  switch (mode.values) {
    case SelectMode::kKeys:
      return false;
    case SelectMode::kShareOfSelected:
      return static_cast<double>(mode.clamp) * static_cast<double>(experts) >
             static_cast<double>(k);
    case SelectMode::kShareOfAll:
      return true;
  }
  return true;
}

// The caller has checked that keys are [rows, experts] floats, experts < 2^31;
// ids are [rows, k] int32, uint32 or int64, 1 <= k <= experts; values are
// [rows, k] floats; and outputs overlap neither each other nor the keys.
struct SelectArgs {
  // These are references, because a copy of a view or of a mode that was just
  // made would wait until its parts have reached the cache: for the mode, 4 ns
  // of the 58 ns of a single row.
  const ConstAnyMatrix& keys;
  const AnyMatrix& ids;
  const AnyMatrix& values;
  const SelectMode& mode;
};

RowFunction<SelectArgs> SelectRows() noexcept;

// SelectBatch() returns the number of rows of a batch. The keys of a batch
// are on the stack: before the selection, rows are converted to floats, or
// their keys are computed. A batch has at most kSelectBatch rows, fits in the
// L1 cache, and consists of whole vectors of rows. It has fewer rows if it
// would otherwise have more than kTile keys.
constexpr size_t kSelectBatch = 32;
constexpr size_t kSelectCached = 8192;
constexpr size_t kSelectVector = 16;
template <size_t kTile>
constexpr size_t SelectBatch(size_t columns) {
  size_t cached = kSelectCached / columns / kSelectVector * kSelectVector;
  if (cached < kSelectVector) cached = kSelectVector;
  if (cached > kSelectBatch) cached = kSelectBatch;
  const size_t most = columns < kTile ? kTile / columns : 1;
  return cached < most ? cached : most;
}

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_SELECT_H_
