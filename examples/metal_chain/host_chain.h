// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_HOST_CHAIN_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_HOST_CHAIN_H_

#include <cstdint>
#include <vector>

#include "layer.h"
#include "switchyard/executor.h"

namespace metal_chain {

// The same chains on the plain API, without a device: every value that a
// device's chain has to leave in the buffer of the same name.
struct HostActivations {
  std::vector<float> logits, weights;
  std::vector<int32_t> ids;
  std::vector<int32_t> tokens_per_expert, buckets;
  std::vector<uint32_t> gate_up_args, down_args;
  std::vector<float> gate, up, activated, down;
  std::vector<float> residual, normed;
};

HostActivations DecodeOnHost(const Layer& layer, const HiddenStates& hidden,
                             switchyard::Executor& executor);
HostActivations PrefillOnHost(const Layer& layer, const HiddenStates& hidden,
                              switchyard::Executor& executor);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_HOST_CHAIN_H_
