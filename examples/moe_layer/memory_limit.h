// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_MEMORY_LIMIT_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_MEMORY_LIMIT_H_

#include <string>

namespace moe_layer {

// Throws InputError if `bytes` are more than the machine's memory. Asked before
// large allocations: Linux grants them anyway and kills the program later. A
// double, since a product of sizes may not fit 64 bits.
void RequireMemory(double bytes, const std::string& what);

// The most this process has held at once, in bytes.
double PeakMemory();

// "2.25 GiB"
std::string BytesText(double bytes);

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_MEMORY_LIMIT_H_
