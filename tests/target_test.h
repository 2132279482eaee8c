// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Fixtures that run a test on every ISA of the machine and on every kind of
// executor. They fail if a kernel ran on another ISA.

#ifndef SWITCHYARD_TESTS_TARGET_TEST_H_
#define SWITCHYARD_TESTS_TARGET_TEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"

namespace switchyard::testing_support {

// Succeeds if `status` is ok; a failure shows its message.
inline testing::AssertionResult IsOk(const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.message();
}
#define EXPECT_OK(status) \
  EXPECT_TRUE(::switchyard::testing_support::IsOk(status))
#define ASSERT_OK(status) \
  ASSERT_TRUE(::switchyard::testing_support::IsOk(status))

enum class Pool { kSerial, kTbb1, kTbb2, kTbb7, kShuffle };
std::ostream& operator<<(std::ostream& os, Pool pool);

// An executor that records the largest number of distinct threads that are
// inside bodies at the same time. (More threads may take part over time,
// because TBB's workers change arenas.)
// - Rendezvous() makes every body wait until all threads of the pool are
//   inside bodies, so that the count does not depend on luck. The call needs
//   work of many grains.
// - A test fails if a worker's number is not below Concurrency(), or if two
//   bodies of one call have the same worker at the same time.
class RecordingExecutor : public Executor {
 public:
  virtual size_t ExpectedThreads() const = 0;
  virtual size_t DistinctThreads() const = 0;
  virtual void Rendezvous() = 0;
};
// kShuffle splits the range into single indices and short runs, for any
// grain, shuffles them and runs them on three std::threads.
std::unique_ptr<RecordingExecutor> MakeExecutor(Pool pool);
// Returns all kinds of executors. The TBB pools exist only in builds with
// SWITCHYARD_TBB=ON.
std::vector<Pool> EveryPool();

// Runs one index at a time on the calling thread, the last index first. The
// call of ParallelFor() with number `fail_at`, counted from 0, fails with
// kOutOfMemory and "no memory".
class BackwardsExecutor final : public Executor {
 public:
  explicit BackwardsExecutor(size_t fail_at = SIZE_MAX) : fail_at_(fail_at) {}
  size_t Concurrency() const noexcept override { return 4; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override;

 private:
  size_t calls_ = 0;
  const size_t fail_at_;
};

// Caps the library to one ISA until the end of the scope. When the scope
// begins, LastIsa() becomes null.
class ScopedIsa {
 public:
  explicit ScopedIsa(const std::string& name);
  ~ScopedIsa();
};

std::vector<std::string> IsaNames(Span<const Isa> isas);
std::vector<std::string> RunnableIsaNames();
// Returns the names of the ISAs with FMA, which have to give the same bits.
std::vector<std::string> FmaIsaNames();

// Expects the same result of run() on each ISA with FMA.
template <class Run>
void ExpectFmaIsasAgree(Run run) {
  std::optional<decltype(run())> first;
  for (const std::string& isa : FmaIsaNames()) {
    const ScopedIsa scoped(isa);
    const auto result = run();
    ASSERT_EQ(LastIsa()->name, isa);
    if (!first) first = result;
    ASSERT_EQ(result, *first) << isa;
  }
}

// Sets flush-to-zero and denormals-are-zero on this thread for a scope.
class ScopedFlushToZero {
 public:
  ScopedFlushToZero();
  ~ScopedFlushToZero();

 private:
  unsigned long long saved_;
};

// Runs a test on every runnable ISA. Fails unless the last kernel ran on it.
class IsaTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  std::unique_ptr<ScopedIsa> isa_;
};

struct IsaAndPool {
  std::string isa;
  Pool pool;
};
std::ostream& operator<<(std::ostream& os, const IsaAndPool& param);

// Runs a test on every runnable ISA with the executor that shuffles, and on
// the best ISA with every kind of executor. This is enough, because the way
// in which rows are shared out does not depend on the ISA.
class IsaPoolTest : public testing::TestWithParam<IsaAndPool> {
 protected:
  void SetUp() override;
  void TearDown() override;
  RecordingExecutor& executor() { return *executor_; }

 private:
  std::unique_ptr<ScopedIsa> isa_;
  std::unique_ptr<RecordingExecutor> executor_;
};

std::vector<IsaAndPool> EveryIsaAndPool();

inline std::string IsaName(const testing::TestParamInfo<std::string>& param) {
  return param.param;
}

#define SWITCHYARD_FOR_EVERY_ISA(Fixture)                                   \
  INSTANTIATE_TEST_SUITE_P(                                                 \
      Isa, Fixture,                                                         \
      testing::ValuesIn(::switchyard::testing_support::RunnableIsaNames()), \
      ::switchyard::testing_support::IsaName)

#define SWITCHYARD_FOR_EVERY_ISA_AND_POOL(Fixture)                         \
  INSTANTIATE_TEST_SUITE_P(                                                \
      IsaPool, Fixture,                                                    \
      testing::ValuesIn(::switchyard::testing_support::EveryIsaAndPool()), \
      testing::PrintToStringParamName())

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_TARGET_TEST_H_
