// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_OPTIONS_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "common/program.h"

namespace moe_layer {

struct Options : example::ThreadOptions {
  std::string checkpoint;  // empty: a generated layer
  std::optional<size_t> layer;
  size_t tokens = 512;
  size_t repeat = 5;
  std::optional<size_t> top_k;  // the model's
};

// Nullopt if only help was asked for, which is then printed. Throws InputError,
// naming the option.
std::optional<Options> ParseOptions(int argc, const char* const* argv);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_OPTIONS_H_
