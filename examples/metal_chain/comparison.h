// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_COMPARISON_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_COMPARISON_H_

#include <cstddef>
#include <string>
#include <vector>

#include "engine.h"
#include "host_chain.h"
#include "layer.h"

namespace metal_chain {

struct Comparison {
  size_t buffers = 0;
  size_t bytes = 0;
  // "gate: ..." of each buffer that differs, and where it does so first.
  std::vector<std::string> differences;
};

// Byte by byte, everything the kernels wrote.
Comparison CompareDecode(const Shape& shape, const Activations& device,
                         const HostActivations& host);
Comparison ComparePrefill(const Shape& shape, const Activations& device,
                          const HostActivations& host);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_COMPARISON_H_
