// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/route.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

// The estimated time of a row decides which batches wake a second thread.
class GrainExecutor final : public Executor {
 public:
  size_t grain = 0;
  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t count, size_t rows, Body body,
                     void* context) noexcept override {
    grain = rows;
    body(context, 0, 0, count);
    return Status();
  }
};

TEST(RouteGrain, RowsTakeLongerWhereAllExpertsAreSummed) {
  const size_t tokens = 4096, experts = 128, top_k = 8;
  const std::vector<float> logits(tokens * experts, 1.0f);
  std::vector<int32_t> ids(tokens * top_k);
  std::vector<float> weights(tokens * top_k);
  const auto grain = [&](const RouteOptions& options) {
    GrainExecutor executor;
    EXPECT_OK(RouteTopK(
        {{logits.data(), tokens, experts}},
        {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}}, options,
        executor));
    return executor.grain;
  };
  const size_t renormalized = grain({true});
  EXPECT_LT(grain({false}), renormalized);
  EXPECT_LT(grain({true, 0.5f}), renormalized);  // above top_k / experts
  EXPECT_EQ(grain({true, 0.0f}), renormalized);
}

// A slower ISA's batches are worth a second thread sooner.
TEST(RouteGrain, FollowsTheIsa) {
  const size_t tokens = 4096, experts = 128, top_k = 8;
  const std::vector<float> logits(tokens * experts, 1.0f);
  std::vector<int32_t> ids(tokens * top_k);
  std::vector<float> weights(tokens * top_k);
  std::vector<size_t> grains;
  for (const Isa& isa : RunnableIsas()) {
    const ScopedIsa cap(isa.name);
    GrainExecutor executor;
    ASSERT_OK(RouteTopK(
        {{logits.data(), tokens, experts}},
        {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}}, {},
        executor));
    EXPECT_STREQ(LastIsa()->name, isa.name);
    grains.push_back(executor.grain);
  }
  EXPECT_TRUE(std::is_sorted(grains.rbegin(), grains.rend()));
  // The fallback is no vector ISA: 2.5 of its time on AVX2, more on AVX-512.
  if (grains.size() > 1) {
    EXPECT_GT(grains.front(), 2 * grains.back());
  }
}

}  // namespace
}  // namespace switchyard::testing_support
