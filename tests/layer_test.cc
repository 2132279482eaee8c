// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/layer.h"

#include "testing/layer_case.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

std::vector<uint32_t> BitsOf(const LayerResult& result) {
  std::vector<uint32_t> bits = CanonicalBits(result.out);
  const std::vector<uint32_t> normed = CanonicalBits(result.normed);
  bits.insert(bits.end(), normed.begin(), normed.end());
  return bits;
}
std::vector<uint32_t> BitsOf(const ExpertsLayer& layer, Executor& executor,
                             size_t scratch_workers = 0) {
  LayerResult result;
  EXPECT_OK(layer.Run(executor, &result, scratch_workers));
  return BitsOf(result);
}

class LayerTest : public IsaPoolTest {};

// The five calls one after the other, for any case, cut and executor.
TEST_P(LayerTest, EqualsOneCallAfterTheOther) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const ExpertsLayer layer(DrawLayerCase(random));
    const std::vector<uint32_t> expected = BitsOf(layer.OneByOne());
    ASSERT_EQ(BitsOf(layer, executor()), expected);
    // Fewer workers than threads.
    ASSERT_EQ(BitsOf(layer, executor(), 1), expected);
  }
}
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(LayerTest);

}  // namespace
}  // namespace switchyard::testing_support
