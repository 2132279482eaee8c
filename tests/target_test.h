// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Fixtures that run a test on every ISA of the machine, and on every kind of
// executor, and that fail unless exactly that ISA ran.

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

// Success of a status; a failure shows its message.
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

// An executor that counts the distinct threads that are inside bodies at the
// same time, and remembers the most. (Over time more may come: TBB's workers
// change arenas.) `Rendezvous` holds every body until as many threads as the
// pool has are inside one, so that the count does not depend on luck; use it
// with work of many grains. Fails the test if a worker's number is not below
// Concurrency() or two bodies of one call have the same one at the same time.
class RecordingExecutor : public Executor {
 public:
  virtual size_t ExpectedThreads() const = 0;
  virtual size_t DistinctThreads() const = 0;
  virtual void Rendezvous() = 0;
};
// kShuffle splits the range into single indices and small runs, shuffles them
// and runs them on three std::threads, whatever the grain.
std::unique_ptr<RecordingExecutor> MakeExecutor(Pool pool);
// All of them; without TBB's in a build with SWITCHYARD_TBB=OFF.
std::vector<Pool> EveryPool();

// Runs one index at a time, last first, on the calling thread, and fails at
// call `fail_at`, counted from 0, with kOutOfMemory and "no memory".
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

// Caps the library to one ISA for a scope. `LastIsa` is null at its start.
class ScopedIsa {
 public:
  explicit ScopedIsa(const std::string& name);
  ~ScopedIsa();
};

std::vector<std::string> IsaNames(Span<const Isa> isas);
std::vector<std::string> RunnableIsaNames();
// The ISAs that have FMA, which have to agree bit for bit.
std::vector<std::string> FmaIsaNames();

// `run` gives the same result on each of them, whatever it is.
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

// A test per runnable ISA; fails unless the last kernel that ran is of it.
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

// A test per runnable ISA, each with the executor that does its worst, and the
// best ISA with every kind: how rows are shared out is the same on all.
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
