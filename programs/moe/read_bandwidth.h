// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
#define SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_

#include <cstddef>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

// Makes the executor's threads read `matrices` once, and returns the bytes per
// second. The read stops after 128 MiB, which most caches cannot hold, so a
// call takes milliseconds. Afterwards, the caches hold the matrices that were
// read last.
double ReadBandwidth(
    const std::vector<switchyard::Span<const std::byte>>& matrices,
    switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
