// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The same bits for callers that are threads of somebody else: tasks of TBB,
// an OpenMP region, 64 threads on one executor.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/device_pass.h"
#include "tests/faults/layer.h"
#include "tests/target_test.h"
#ifdef SWITCHYARD_WITH_TBB
#include <oneapi/tbb/parallel_for.h>
#endif

namespace switchyard::testing_support {
namespace {

constexpr Shape kShape = {192, 64, 4, 96};

// A layer and its right results, each caller its own.
struct Caller {
  explicit Caller(uint64_t seed)
      : layer(kShape, seed), expected(layer.Expected()) {}
  void Call(Executor& executor) {
    if (layer.IsRight(executor, expected)) ++right;
  }

  Layer layer;
  const uint64_t expected;
  size_t right = 0;
};
std::vector<std::unique_ptr<Caller>> Callers(size_t count) {
  std::vector<std::unique_ptr<Caller>> callers;
  for (size_t i = 0; i < count; ++i) {
    callers.push_back(std::make_unique<Caller>(i));
  }
  return callers;
}

class CallersTest : public testing::TestWithParam<Pool> {};
INSTANTIATE_TEST_SUITE_P(Pools, CallersTest, testing::ValuesIn(EveryPool()));

TEST_P(CallersTest, SixtyFourThreadsOnOneExecutor) {
  const auto executor = MakeExecutor(GetParam());
  const auto callers = Callers(64);
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (const auto& caller : callers) {
    threads.emplace_back([&, c = caller.get()] {
      while (!go) std::this_thread::yield();
      for (int round = 0; round < 5; ++round) c->Call(*executor);
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 5u);
}

#ifdef SWITCHYARD_WITH_TBB

// Tasks, nested in tasks, in the default arena; the executor's is another one.
TEST_P(CallersTest, InsideTbbTasks) {
  const auto executor = MakeExecutor(GetParam());
  const auto callers = Callers(24);
  tbb::parallel_for(0, 4, [&](int outer) {
    tbb::parallel_for(0, 6, [&](int inner) {
      callers[static_cast<size_t>(outer * 6 + inner)]->Call(*executor);
    });
  });
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 1u);
}

TEST(Callers, DeviceInsideTbbTasks) {
  const DevicePass pass(kShape, 4);
  std::atomic<int> right{0};
  tbb::parallel_for(0, 8, [&](int) {
    if (pass.Run({}) == DevicePass::Outcome::kRight) ++right;
  });
  EXPECT_EQ(right, 8);
}

#endif  // SWITCHYARD_WITH_TBB

#ifdef _OPENMP

TEST_P(CallersTest, InsideAnOpenMpRegion) {
  const auto executor = MakeExecutor(GetParam());
  const auto callers = Callers(24);
#pragma omp parallel for num_threads(6) schedule(dynamic, 1)
  for (size_t i = 0; i < 24; ++i) callers[i]->Call(*executor);
  for (const auto& caller : callers) EXPECT_EQ(caller->right, 1u);
}

#endif  // _OPENMP

}  // namespace
}  // namespace switchyard::testing_support
