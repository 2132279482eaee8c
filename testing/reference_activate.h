// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes activations in double precision.

#ifndef SWITCHYARD_TESTING_REFERENCE_ACTIVATE_H_
#define SWITCHYARD_TESTING_REFERENCE_ACTIVATE_H_

#include "src/calls/activate.h"
#include "switchyard/activate.h"

namespace switchyard::reference {

// The activation of one gate element and one up element. The limits of the
// options are applied, and `error` is the largest error that the library may
// make. Layouts without up elements ignore `up`.
struct Activated {
  double of_gate;  // the value before it is multiplied by `up`
  double value;
  double error;

  Activated(const ActivateOptions& options, float gate, float up, bool fma);
  // True if `actual` is within the error. This also handles values that
  // overflow, and an infinite `up`.
  bool IsClose(float up, float actual) const;
};

// Calls change(parameter) for each parameter of an activation that has to be
// positive.
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
