// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_HOST_CHAIN_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_HOST_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine.h"
#include "layer.h"
#include "switchyard/executor.h"

namespace metal_chain {

// The same chains on the plain API, without a device: every value that a
// device's chain has to leave in the buffer of the same name.
using HostActivations = ActivationsOf<std::vector<float>, std::vector<int32_t>,
                                      std::vector<uint32_t>>;

HostActivations DecodeOnHost(const Layer& layer, const HiddenStates& hidden,
                             switchyard::Executor& executor);
HostActivations PrefillOnHost(const Layer& layer, const HiddenStates& hidden,
                              switchyard::Executor& executor);

struct Comparison {
  size_t buffers = 0;
  size_t bytes = 0;
  // "gate: ..." of each buffer that differs, and where it does so first.
  std::vector<std::string> differences;
};
// Everything the kernels wrote: byte by byte, or with a `bound`, where others'
// kernels wrote it, floats to that part of the largest in their row and buckets
// in any order.
Comparison CompareActivations(const Shape& shape, const Activations& device,
                              const HostActivations& host, float bound = 0);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_HOST_CHAIN_H_
