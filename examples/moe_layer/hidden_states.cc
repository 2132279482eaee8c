// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "hidden_states.h"

#include <cstdint>
#include <vector>

#include "common/for_each_range.h"
#include "common/hash_uniform.h"
#include "switchyard/combine.h"

namespace moe_layer {

FloatBuffer GenerateHidden(size_t tokens, size_t hidden,
                           switchyard::Executor& executor) {
  using example::HashUniform;
  FloatBuffer states(tokens * hidden);
  // Far from the numbers of the weights' streams.
  constexpr uint32_t kFirst = 0x80000000u;
  const uint32_t common = example::HashKey(kFirst);
  example::ForEachRange(executor, tokens, 8, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const uint32_t own =
          example::HashKey(kFirst + 1 + static_cast<uint32_t>(t));
      float* row = states.data() + t * hidden;
      for (uint32_t h = 0; h < hidden; ++h) {
        // The variance is 1: 0.4^2 + 0.917^2 is, and sqrt(3) makes each part's.
        row[h] = 1.7320508f *
                 (0.4f * HashUniform(common, h) + 0.917f * HashUniform(own, h));
      }
    }
  });
  return states;
}

void InputNorm(const LayerWeights& layer,
               switchyard::Matrix<const float> hidden,
               switchyard::Matrix<float> normed,
               switchyard::Executor& executor) {
  const std::vector<float> ones(hidden.rows, 1.0f);
  FloatBuffer copy(hidden.rows * hidden.cols);
  example::Check(
      switchyard::Combine({hidden,
                           {ones.data(), hidden.rows, 1},
                           {},
                           {},
                           {layer.norm, 1, hidden.cols}},
                          {{copy.data(), hidden.rows, hidden.cols}, normed},
                          {layer.shape.norm_eps}, executor));
}

}  // namespace moe_layer
