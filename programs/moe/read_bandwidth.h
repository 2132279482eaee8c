// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
#define SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_

#include <cstddef>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

// Returns the bytes per second with which the executor's threads read
// `matrices` once, which takes milliseconds. If the matrices are large, the
// threads read only a part that is larger than any cache. Afterwards the caches
// hold data of this part.
double ReadBandwidth(
    const std::vector<switchyard::Span<const std::byte>>& matrices,
    switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_READ_BANDWIDTH_H_
