// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
#define SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_

#include <cstddef>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

// Bytes per second at which the executor's threads read `matrices`, of large
// ones a part beyond any cache: once, which takes milliseconds. That part is
// what the caches hold afterwards.
double ReadBandwidth(
    const std::vector<switchyard::Span<const std::byte>>& matrices,
    switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
