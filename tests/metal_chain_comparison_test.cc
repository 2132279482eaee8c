// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// That metal_chain's comparison sees a single bit, wherever it is.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine.h"
#include "gtest/gtest.h"
#include "host_chain.h"
#include "layer.h"
#include "switchyard/executor.h"

namespace metal_chain {
namespace {

class MetalChainComparison : public testing::Test {
 protected:
  static std::shared_ptr<switchyard::Executor> Serial() {
    return {&switchyard::SerialExecutor(), [](switchyard::Executor*) {}};
  }

  MetalChainComparison() { (void)engine_.RunPrefill(prompt_, device_); }

  Comparison Compare() const {
    return CompareActivations(kSmallShape, device_, host_);
  }

  // Flips the lowest bit of the last element of a device's buffer, looks, and
  // flips it back.
  Comparison CompareFlipped(const BufferPtr& buffer) const {
    auto* const last =
        static_cast<unsigned char*>(buffer->contents()) + buffer->length() - 4;
    *last ^= 1;
    const Comparison result = Compare();
    *last ^= 1;
    return result;
  }

  const Layer layer_ = GenerateLayer(kSmallShape, *Serial());
  const HiddenStates prompt_ = GenerateHidden(3, kSmallShape, *Serial());
  const Engine engine_{layer_, Serial()};
  const Activations device_ = engine_.NewActivations(prompt_);
  const HostActivations host_ = PrefillOnHost(layer_, prompt_, *Serial());
};

TEST_F(MetalChainComparison, SeesOneBitInEachBuffer) {
  EXPECT_TRUE(Compare().differences.empty());
  EXPECT_EQ(Compare().buffers, 13u);
  const std::vector<std::pair<std::string, BufferPtr>> buffers = {
      {"logits", device_.logits},
      {"ids", device_.ids},
      {"weights", device_.weights},
      {"gate", device_.gate},
      {"up", device_.up},
      {"activated", device_.activated},
      {"down", device_.down},
      {"residual", device_.residual},
      {"normed", device_.normed},
      {"tokens_per_expert", device_.tokens_per_expert},
      {"gate_up_args", device_.gate_up_args},
      {"down_args", device_.down_args}};
  for (const auto& [name, buffer] : buffers) {
    const Comparison result = CompareFlipped(buffer);
    ASSERT_EQ(result.differences.size(), 1u) << name;
    EXPECT_EQ(result.differences[0].find(name + ": row "), 0u)
        << result.differences[0];
  }
  EXPECT_EQ(CompareFlipped(device_.down_args).differences[0],
            "down_args: row 0, column 2: 17 instead of 16; 1 of 1 row");
}

// Of an expert's bucket only what it has: the rest is nobody's.
TEST_F(MetalChainComparison, BucketsCountUpToTheirLength) {
  const size_t row_stride = RowStride(host_.ids.size());
  auto* const pairs = static_cast<int32_t*>(device_.buckets->contents());
  for (size_t e = 0; e < host_.tokens_per_expert.size(); ++e) {
    const auto num_pairs = static_cast<size_t>(host_.tokens_per_expert[e]);
    pairs[e * row_stride + num_pairs] ^= 1;
    EXPECT_TRUE(Compare().differences.empty()) << e;
    if (num_pairs == 0) continue;
    pairs[e * row_stride + num_pairs - 1] ^= 1;
    const Comparison result = Compare();
    ASSERT_EQ(result.differences.size(), 1u) << e;
    EXPECT_EQ(
        result.differences[0].find("buckets: row " + std::to_string(e) +
                                   ", column " + std::to_string(num_pairs - 1)),
        0u);
    pairs[e * row_stride + num_pairs - 1] ^= 1;
  }
}

}  // namespace
}  // namespace metal_chain
