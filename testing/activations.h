// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The activations, from the list that their kernels are compiled from: tests,
// fuzzers and corpus have a new one without being told.

#ifndef SWITCHYARD_TESTING_ACTIVATIONS_H_
#define SWITCHYARD_TESTING_ACTIVATIONS_H_

#include "src/simd/activate.h"
#include "switchyard/activate.h"

namespace switchyard::testing_support {

#define SWITCHYARD_ACTIVATION(name, Function, of_gate) Activation::name,
constexpr Activation kActivations[] = {
    SWITCHYARD_ACTIVATIONS(SWITCHYARD_ACTIVATION)};
#undef SWITCHYARD_ACTIVATION

// Whether it is f(gate) * up: ungated there is f(gate), and a limit may come
// after it.
constexpr bool IsOfGate(Activation activation) {
  bool result = false;
#define SWITCHYARD_ACTIVATION(name, Function, of_gate) \
  if (activation == Activation::name) result = of_gate;
  SWITCHYARD_ACTIVATIONS(SWITCHYARD_ACTIVATION)
#undef SWITCHYARD_ACTIVATION
  return result;
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_ACTIVATIONS_H_
