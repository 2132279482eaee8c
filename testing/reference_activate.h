// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Activations in double precision.

#ifndef SWITCHYARD_TESTING_REFERENCE_ACTIVATE_H_
#define SWITCHYARD_TESTING_REFERENCE_ACTIVATE_H_

#include "src/calls/activate.h"
#include "switchyard/activate.h"

namespace switchyard::reference {

// An activation of a gate and an up, the options' limits on its
// either side included, and how far off the library may be. Ungated, up is not
// looked at.
struct Activated {
  double of_gate;  // of the gate alone
  double value;
  double error;

  Activated(const ActivateOptions& options, float gate, float up, bool fma);
  // Overflow and infinite ups included.
  bool IsClose(float up, float actual) const;
};

// change(parameter) for each of activations: those that have to be positive.
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
