// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_FOR_EACH_RANGE_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_FOR_EACH_RANGE_H_

#include <cstddef>
#include <stdexcept>

#include "switchyard/executor.h"
#include "switchyard/status.h"

namespace metal_chain {

// body(begin, end) for ranges that cover [0, count), on the executor's threads.
// A body does not throw.
template <class Body>
void ForEachRange(switchyard::Executor& executor, size_t count, size_t grain,
                  const Body& body) {
  const auto run = [](void* context, size_t begin, size_t end) {
    (*static_cast<const Body*>(context))(begin, end);
  };
  const switchyard::Status status =
      executor.ParallelFor(count, grain, run, const_cast<Body*>(&body));
  if (!status.ok()) throw std::runtime_error(status.message());
}

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_FOR_EACH_RANGE_H_
