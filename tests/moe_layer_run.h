// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTS_MOE_LAYER_RUN_H_
#define SWITCHYARD_TESTS_MOE_LAYER_RUN_H_

#include <string>

#include "tests/moe_layer_files.h"
#include "tests/run_program.h"

namespace moe_layer {
namespace testing_support {

using switchyard::testing_support::Outcome;

inline Outcome RunProgram(const std::string& arguments,
                          const std::string& before = "") {
  return switchyard::testing_support::RunProgram(MOE_LAYER_PROGRAM, arguments,
                                                 before);
}

}  // namespace testing_support
}  // namespace moe_layer

#endif  // SWITCHYARD_TESTS_MOE_LAYER_RUN_H_
