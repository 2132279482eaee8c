// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_HYPER_H_
#define SWITCHYARD_SRC_SIMD_HYPER_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/hyper.h"

namespace switchyard::simd {

// The caller has checked that shapes agree with streams, [tokens * n, hidden]
// with hidden >= 1. An optional view that is not given has no data.
struct HyperArgs {
  const HyperInputs& inputs;
  const HyperOutputs& outputs;
  const HyperOptions& options;
};

RowFunction<HyperArgs> HyperRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_HYPER_H_
