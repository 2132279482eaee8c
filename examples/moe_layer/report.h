// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_REPORT_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layer_weights.h"
#include "moe_block.h"
#include "reference_check.h"
#include "switchyard/views.h"

namespace moe_layer {

// What is printed to stdout; all of it fits 80 columns.

void PrintLayer(const LayerWeights& weights, size_t tokens, size_t threads);

// The run with the median time, row by row.
void PrintTimes(std::vector<StageProfile> runs, size_t tokens);

// Pairs per expert as a bar chart, busiest first. `blocks`: with Unicode's.
std::string LoadChart(switchyard::Span<const int32_t> load, bool blocks);

void PrintCheck(const CheckReport& report);

// False if the environment names a locale that is not UTF-8.
bool TerminalTakesUtf8();

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_REPORT_H_
