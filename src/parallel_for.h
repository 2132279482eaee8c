// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Loops of kernels on an engine's pool, which is held to its contract.

#ifndef SWITCHYARD_SRC_PARALLEL_FOR_H_
#define SWITCHYARD_SRC_PARALLEL_FOR_H_

#include <cstddef>

#include "switchyard/executor.h"
#include "switchyard/status.h"

namespace switchyard::internal {

// executor.ParallelFor(), and its error if the executor breaks its contract:
// rows would stay unwritten, or two threads use the scratch of one worker, and
// a caller would see wrong values only.
Status ParallelFor(Executor& executor, size_t count, size_t grain,
                   Executor::Body body, void* context) noexcept;

// kInvalidArgument if it has no threads.
Status CheckExecutor(const Executor& executor) noexcept;

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_PARALLEL_FOR_H_
