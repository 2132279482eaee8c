// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Selection: the k largest of each row of keys, in the order of route.h, and
// a value for each. route.h in this folder lists its callers.

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_SELECT_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_SELECT_H_

#include <cstddef>
#include <cstdint>

#include "src/simd/row_function.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// The values of the selected: their keys, or exp(key - max) over a sum.
struct SelectMode {
  enum Values : uint8_t {
    kKeys,             // all NaN in a row with a NaN
    kShareOfSelected,  // the sum is max(the selected's, clamp * all experts')
    kShareOfAll,       // the sum is over all experts
  };
  Values values;
  float clamp;  // of kShareOfSelected, in [0, 1]
};
constexpr SelectMode SoftmaxMode(bool renormalize, float clamp) {
  return {renormalize ? SelectMode::kShareOfSelected : SelectMode::kShareOfAll,
          clamp};
}

// True if a row's values need exp of all its keys, not of the selected alone.
// A clamp up to k / experts cannot matter, because the selected have at least
// that share of the sum. The choice must not depend on values, nor on their
// rounding.
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

// Checked: keys [rows, experts], floats, experts < 2^31; ids [rows, k], int32,
// uint32 or int64, 1 <= k <= experts; values [rows, k], floats; outputs
// disjoint from each other and from keys.
struct SelectArgs {
  // References, because copying a view or a mode that was just made waits for
  // its parts to reach the cache: 4 ns of a lone row's 58 for the mode.
  const ConstAnyMatrix& keys;
  const AnyMatrix& ids;
  const AnyMatrix& values;
  const SelectMode& mode;
};

RowFunction<SelectArgs> SelectRows() noexcept;

// Rows that are converted or made before selection are on the stack, a batch
// at a time: up to kSelectBatch rows, in whole vectors of rows, which stay in
// the L1 cache together; fewer if kTile keys hold fewer.
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
