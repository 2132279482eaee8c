// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for the tests of Activate().

#ifndef SWITCHYARD_TESTS_ACTIVATE_CASE_H_
#define SWITCHYARD_TESTS_ACTIVATE_CASE_H_

#include <vector>

#include "src/calls/names.h"
#include "src/simd/activate.h"
#include "switchyard/activate.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {

inline constexpr auto& kActivations = calls::kEnumerators<Activation>;
using internal::IsOfGate;

inline ActivateOptions Plain(Activation activation) {
  ActivateOptions options;
  options.activation = activation;
  return options;
}

// ApplyToGate() applies an activation to a row of gates alone. ApplyToBoth()
// also passes a row `up`.
inline std::vector<float> ApplyToGate(ActivateOptions options,
                                      const std::vector<float>& gate) {
  options.layout = GateUpLayout::kUngated;
  std::vector<float> out(gate.size(), 7.0f);
  EXPECT_OK(Activate({{gate.data(), 1, gate.size()}},
                     {{out.data(), 1, out.size()}}, options));
  return out;
}
inline std::vector<float> ApplyToBoth(const ActivateOptions& options,
                                      const std::vector<float>& gate,
                                      const std::vector<float>& up) {
  std::vector<float> out(gate.size(), 7.0f);
  EXPECT_OK(Activate({{gate.data(), 1, gate.size()}, {up.data(), 1, up.size()}},
                     {{out.data(), 1, out.size()}}, options));
  return out;
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_ACTIVATE_CASE_H_
