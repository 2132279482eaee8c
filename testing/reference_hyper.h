// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// HyperConnect once more, from the formula of its header: in double precision,
// and in f32 in the library's order.

#ifndef SWITCHYARD_TESTING_REFERENCE_HYPER_H_
#define SWITCHYARD_TESTING_REFERENCE_HYPER_H_

#include <cstddef>
#include <vector>

#include "switchyard/hyper.h"

namespace switchyard::reference {

// One token's. Inputs are f32.
template <class Real>
struct HyperRow {
  std::vector<Real> streams, out, normed;
  Real scale;
};
HyperRow<double> Hyper(const HyperInputs& inputs, const HyperOptions& options,
                       size_t token);
// The bits of ISAs with FMA, before they are rounded to the outputs' types;
// `rounded` is M of round_like_unfused.
HyperRow<float> HyperFixed(const HyperInputs& inputs,
                           const HyperOptions& options, size_t token,
                           Type rounded);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_HYPER_H_
