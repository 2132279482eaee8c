// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_INPUT_ERROR_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_INPUT_ERROR_H_

#include <stdexcept>

namespace moe_layer {

// Something the user gave is wrong. The message is one line that names the file
// and the tensor or key, or the option; main prints it and exits with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_INPUT_ERROR_H_
