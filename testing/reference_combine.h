// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Combine with all its options, written from the formula in its header: in
// double precision, and in f32 in the library's order.

#ifndef SWITCHYARD_TESTING_REFERENCE_COMBINE_H_
#define SWITCHYARD_TESTING_REFERENCE_COMBINE_H_

#include <cstddef>
#include <vector>

#include "switchyard/combine.h"

namespace switchyard::reference {

// The results for one token. Inputs are f32; quantised rows are multiplied by
// their scales first.
template <class Real>
struct CombineRow {
  std::vector<Real> out, normed;
};
CombineRow<double> CombineForm(const CombineInputs& inputs,
                               const CombineOptions& options, size_t token);
// The bits that ISAs with FMA give, before they are rounded to the outputs'
// types. `rounded` is the type to which round_like_unfused rounds. Not for
// SharedGate::kLogit, because its sigmoid is the library's own.
CombineRow<float> CombineFormFixed(const CombineInputs& inputs,
                                   const CombineOptions& options, size_t token,
                                   Type rounded = Type::kF32);

// The sums in double precision, for options without norms and vectors. Errors
// are judged by `magnitude`, the sum of the terms' magnitudes.
struct Sum {
  double value, magnitude;
};
std::vector<Sum> CombineSums(const CombineInputs& inputs, size_t token);

// The bits of `normed`, from a row of `out`.
std::vector<float> CombineNormFixed(const std::vector<float>& row,
                                    const ConstAnyMatrix& weight, float eps);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_COMBINE_H_
