// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ACTIVATE_H_
#define SWITCHYARD_SRC_SIMD_ACTIVATE_H_

#include "src/simd/row_function.h"
#include "switchyard/activate.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Each Activation and its functor in activate.cc.
#define SWITCHYARD_ACTIVATIONS(X) X(kSilu, SiluTimesUp)

// Checked: gate and up have out's shape, or, interleaved, gate has both. out is
// gate, up or disjoint from them.
struct ActivateArgs {
  // By reference: loading a copy of views just stored would take a single row
  // as long as all of its checks.
  const ConstAnyMatrix& gate;
  const ConstAnyMatrix& up;
  const AnyMatrix& out;
  Activation activation;
  bool interleaved;
  bool streaming;  // stores bypass the caches
};

RowFunction<ActivateArgs> ActivateRows(Type in, Type out) noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ACTIVATE_H_
