// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs loops on an engine's pool, and checks that the pool keeps its contract.

#ifndef SWITCHYARD_SRC_PARALLEL_FOR_H_
#define SWITCHYARD_SRC_PARALLEL_FOR_H_

#include <cstddef>

#include "switchyard/executor.h"
#include "switchyard/status.h"

namespace switchyard::internal {

// Calls executor.ParallelFor(). Returns an error if the executor breaks its
// contract, because otherwise rows could stay unwritten, or two threads could
// use one worker's scratch, and the caller would only see wrong values.
Status ParallelFor(Executor& executor, size_t count, size_t grain,
                   Executor::Body body, void* context) noexcept;

// Returns kInvalidArgument if the executor has no threads.
Status CheckExecutor(const Executor& executor) noexcept;

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_PARALLEL_FOR_H_
