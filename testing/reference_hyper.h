// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes HyperConnect from the formula in its header: in double precision,
// and in f32 in the library's order.

#ifndef SWITCHYARD_TESTING_REFERENCE_HYPER_H_
#define SWITCHYARD_TESTING_REFERENCE_HYPER_H_

#include <cstddef>
#include <vector>

#include "switchyard/hyper.h"

namespace switchyard::reference {

// The results for one token. The inputs have to be f32.
template <class Real>
struct HyperRow {
  std::vector<Real> streams, out, normed;
  Real scale;
};
HyperRow<double> Hyper(const HyperInputs& inputs, const HyperOptions& options,
                       size_t token);
// Returns the bits that ISAs with FMA give, before they are rounded to the
// outputs' types. `rounded` is the type to which round_like_unfused rounds.
HyperRow<float> HyperFixed(const HyperInputs& inputs,
                           const HyperOptions& options, size_t token,
                           Type rounded);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_HYPER_H_
