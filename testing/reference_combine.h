// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes Combine with all its options from the formula in its header: in
// double precision, and in f32 in the library's order.

#ifndef SWITCHYARD_TESTING_REFERENCE_COMBINE_H_
#define SWITCHYARD_TESTING_REFERENCE_COMBINE_H_

#include <cstddef>
#include <vector>

#include "switchyard/combine.h"

namespace switchyard::reference {

// The results for one token. The functions below require f32 inputs. For
// quantised rows, the caller multiplies the codes by their scales first.
template <class Real>
struct CombineRow {
  std::vector<Real> out, normed;
};
CombineRow<double> CombineForm(const CombineInputs& inputs,
                               const CombineOptions& options, size_t token);
// Returns the bits that ISAs with FMA give, before they are rounded to the
// outputs' types. `rounded` is the type to which round_like_unfused rounds.
// This function cannot compute SharedGate::kLogit, because the library has
// its own sigmoid.
CombineRow<float> CombineFormFixed(const CombineInputs& inputs,
                                   const CombineOptions& options, size_t token,
                                   Type rounded = Type::kF32);

// The sums of one token in double precision, for inputs without norms and
// without learned vectors. Tests compare an error with `magnitude`, the sum
// of the terms' magnitudes.
struct Sum {
  double value, magnitude;
};
std::vector<Sum> CombineSums(const CombineInputs& inputs, size_t token);

// Returns the bits of `normed`, computed from a row of `out`.
std::vector<float> CombineNormFixed(const std::vector<float>& row,
                                    const ConstAnyMatrix& weight, float eps);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_COMBINE_H_
