// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
#define SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_

#include <cstddef>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

// Measures the bytes per second at which the executor's threads read
// `matrices` once, which takes milliseconds. Of large matrices it reads a part
// that exceeds any cache. The caches hold this part afterwards.
double ReadBandwidth(
    const std::vector<switchyard::Span<const std::byte>>& matrices,
    switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
