// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Combine with everything that it has, once more from the formula of its
// header: in double precision, and in f32 in the library's order.

#ifndef SWITCHYARD_TESTING_REFERENCE_COMBINE_H_
#define SWITCHYARD_TESTING_REFERENCE_COMBINE_H_

#include <cstddef>
#include <vector>

#include "switchyard/combine.h"

namespace switchyard::reference {

// One token's. Inputs are f32, rows of codes multiplied out.
template <class Real>
struct CombineRow {
  std::vector<Real> out, normed;
};
CombineRow<double> CombineForm(const CombineInputs& inputs,
                               const CombineOptions& options, size_t token);
// The bits of ISAs with FMA, before they are rounded to the outputs' types;
// `rounded` is M of round_like_unfused. Not for SharedGate::kLogit, whose
// sigmoid is the library's own.
CombineRow<float> CombineFormFixed(const CombineInputs& inputs,
                                   const CombineOptions& options, size_t token,
                                   Type rounded = Type::kF32);

// The same in double precision of a form that has neither norms nor vectors,
// and the sum of its terms' magnitudes, by which errors are judged.
struct Sum {
  double value, magnitude;
};
std::vector<Sum> CombineSums(const CombineInputs& inputs, size_t token);

// `normed` of a row of `out` to the bit.
std::vector<float> CombineNormFixed(const std::vector<float>& row,
                                    const ConstAnyMatrix& weight, float eps);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_COMBINE_H_
