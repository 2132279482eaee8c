// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Activations in double precision.

#ifndef SWITCHYARD_TESTING_REFERENCE_ACTIVATE_H_
#define SWITCHYARD_TESTING_REFERENCE_ACTIVATE_H_

#include "src/calls/activate.h"
#include "switchyard/activate.h"

namespace switchyard::reference {

// The activation of a gate and an up, with the limits of the options, and the
// largest error that the library may make. Ungated layouts ignore `up`.
struct Activated {
  double of_gate;  // the gate's function without `up`
  double value;
  double error;

  Activated(const ActivateOptions& options, float gate, float up, bool fma);
  // True if `actual` is within the error, also where the value overflows or
  // `up` is infinite.
  bool IsClose(float up, float actual) const;
};

// Calls change(parameter) for each parameter of the activations that has to
// be positive.
template <class Change>
void ForEachParameter(ActivateOptions* options, const Change& change) {
  for (const calls::Option& option : calls::ActivateCall::kOptions) {
    if (option.range.of != calls::Range::kPositive) continue;
    change(reinterpret_cast<float*>(reinterpret_cast<char*>(options) +
                                    option.field.offset));
  }
}

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_ACTIVATE_H_
