// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ACTIVATE_H_
#define SWITCHYARD_SRC_SIMD_ACTIVATE_H_

#include <cstddef>

#include "src/base/enumerators.h"
#include "src/simd/row_function.h"
#include "switchyard/activate.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// The caller has checked that gate and up have out's shape, or that gate holds
// both, interleaved; and that out is gate, or is up, or overlaps neither.
struct ActivateArgs {
  // The views are references. Copying views that the caller has just stored
  // would wait for the stores. In a call with a single row, this wait takes
  // as long as all checks of the call.
  const ConstAnyMatrix& gate;
  const ConstAnyMatrix& up;  // no data if ungated or interleaved
  const AnyRows& out;
  bool interleaved;
  bool streaming;  // stores bypass the caches
};

// Returns the kernel of silu(gate) * up, for gate and up of type `in`.
RowFunction<ActivateArgs> ActivateRows(Type in) noexcept;

// The arguments of all other activations. Rows may have any type.
struct ActivateTilesArgs {
  const ActivateArgs& rows;
  const ActivateInputs& inputs;
  const ActivateOptions& options;
  const ConstAnyMatrix& gate_bias;  // has no data if there is no bias
  const ConstAnyMatrix& up_bias;
  bool gated;
};
RowFunction<ActivateTilesArgs> ActivateTiles() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ACTIVATE_H_
