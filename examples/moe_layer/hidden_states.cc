// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "hidden_states.h"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "hash_uniform.h"
#include "switchyard/combine.h"

namespace moe_layer {

FloatBuffer GenerateHidden(size_t tokens, size_t hidden,
                           switchyard::Executor& executor) {
  struct Job {
    float* out;
    size_t hidden;
  };
  FloatBuffer states(tokens * hidden);
  Job job = {states.data(), hidden};
  const auto body = [](void* context, size_t begin, size_t end) {
    const Job& j = *static_cast<const Job*>(context);
    // Far from the numbers of the weights' streams.
    constexpr uint32_t kFirst = 0x80000000u;
    const uint32_t common = HashKey(kFirst);
    for (size_t t = begin; t < end; ++t) {
      const uint32_t own = HashKey(kFirst + 1 + static_cast<uint32_t>(t));
      float* row = j.out + t * j.hidden;
      for (uint32_t h = 0; h < j.hidden; ++h) {
        // The variance is 1: 0.4^2 + 0.917^2 is, and sqrt(3) makes each part's.
        row[h] = 1.7320508f *
                 (0.4f * HashUniform(common, h) + 0.917f * HashUniform(own, h));
      }
    }
  };
  const switchyard::Status status =
      executor.ParallelFor(tokens, /*grain=*/8, body, &job);
  if (!status.ok()) throw std::runtime_error(status.message());
  return states;
}

void InputNorm(const LayerWeights& layer,
               switchyard::Matrix<const float> hidden,
               switchyard::Matrix<float> normed,
               switchyard::Executor& executor) {
  const std::vector<float> ones(hidden.rows, 1.0f);
  FloatBuffer copy(hidden.rows * hidden.cols);
  switchyard::CombineInputs inputs;
  inputs.rows = hidden;
  inputs.weights = {ones.data(), hidden.rows, 1};
  const switchyard::Status status = switchyard::WeightedSumRmsNorm(
      inputs, {layer.norm, hidden.cols}, layer.shape.norm_eps,
      {copy.data(), hidden.rows, hidden.cols}, normed, executor);
  if (!status.ok()) throw std::runtime_error(status.message());
}

}  // namespace moe_layer
