// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/target_test.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#ifdef SWITCHYARD_WITH_TBB
#include <oneapi/tbb/global_control.h>
#endif

namespace switchyard {

namespace simd {
extern std::atomic<int64_t> g_last_target;  // of src/simd/targets.h
}  // namespace simd

namespace testing_support {
namespace {

// Splits the range and shuffles the parts, for any grain. The interface
// allows this.
class ShuffleExecutor final : public Executor {
 public:
  static constexpr size_t kThreads = 3;
  size_t Concurrency() const noexcept override { return kThreads; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    std::mt19937 rng(static_cast<uint32_t>(count));
    std::vector<std::pair<size_t, size_t>> ranges;
    const size_t longest = 1 + count / 24;
    for (size_t begin = 0; begin < count;) {
      const size_t end = std::min(count, begin + 1 + rng() % longest);
      ranges.emplace_back(begin, end);
      begin = end;
    }
    std::shuffle(ranges.begin(), ranges.end(), rng);
    std::atomic<size_t> next{0};
    const auto run = [&](size_t worker) {
      for (size_t i; (i = next.fetch_add(1)) < ranges.size();) {
        body(context, worker, ranges[i].first, ranges[i].second);
      }
    };
    std::vector<std::thread> threads;
    for (size_t i = 1; i < kThreads; ++i) threads.emplace_back(run, i);
    run(0);
    for (std::thread& thread : threads) thread.join();
    return Status();
  }
};

class Recorder final : public RecordingExecutor {
 public:
  Recorder(Executor& inner, std::unique_ptr<Executor> owned, size_t expected)
      : inner_(inner), owned_(std::move(owned)), expected_(expected) {}

  size_t Concurrency() const noexcept override { return inner_.Concurrency(); }
  size_t ForkNs() const noexcept override { return inner_.ForkNs(); }
  size_t ExpectedThreads() const override { return expected_; }
  size_t DistinctThreads() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return most_inside_;
  }
  void Rendezvous() override { rendezvous_ = true; }

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    Call call = {*this, body, context,
                 std::vector<std::atomic<bool>>(Concurrency())};
    return inner_.ParallelFor(
        count, grain,
        [](void* opaque, size_t worker, size_t begin, size_t end) {
          static_cast<Call*>(opaque)->Run(worker, begin, end);
        },
        &call);
  }

 private:
  struct Call {
    Recorder& self;
    Body body;
    void* context;
    std::vector<std::atomic<bool>> busy;  // for each worker

    void Run(size_t worker, size_t begin, size_t end) {
      ASSERT_LT(worker, busy.size());
      EXPECT_FALSE(busy[worker].exchange(true))
          << "two bodies at a time as worker " << worker;
      self.Enter();
      body(context, worker, begin, end);
      self.Leave();
      busy[worker].store(false);
    }
  };

  // Bodies do not nest, so each running body is on another thread.
  void Enter() {
    std::unique_lock<std::mutex> lock(mutex_);
    most_inside_ = std::max(most_inside_, ++inside_);
    changed_.notify_all();
    if (!rendezvous_) return;
    // The time is enough on a loaded machine. The wait happens once only: if
    // threads are missing after it, the test's check of their number fails.
    rendezvous_ = changed_.wait_for(lock, std::chrono::seconds(10),
                                    [&] { return most_inside_ >= expected_; });
  }
  void Leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --inside_;
  }

  Executor& inner_;
  std::unique_ptr<Executor> owned_;
  const size_t expected_;
  bool rendezvous_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t inside_ = 0;
  size_t most_inside_ = 0;
};

// The kinds of executors, in the order of Pool. `threads` is the number of
// threads of a TBB pool, and 0 for other kinds.
constexpr struct {
  const char* name;
  int threads;
} kPools[] = {
    {"serial", 0}, {"tbb1", 1}, {"tbb2", 2}, {"tbb7", 7}, {"shuffle3", 0}};

void ExpectRan(const std::string& isa) {
  ASSERT_NE(LastIsa(), nullptr) << "no kernel ran at all";
  EXPECT_EQ(LastIsa()->name, isa);
}

}  // namespace

std::unique_ptr<RecordingExecutor> MakeExecutor(Pool pool) {
#ifdef SWITCHYARD_WITH_TBB
  // Allows more threads than cores, or TBB would silently use fewer.
  static tbb::global_control more_threads(
      tbb::global_control::max_allowed_parallelism, 8);
#endif
  const int threads = kPools[static_cast<size_t>(pool)].threads;
  const size_t expected =
      pool == Pool::kShuffle
          ? ShuffleExecutor::kThreads
          : std::max<size_t>(1, static_cast<size_t>(threads));
  std::unique_ptr<Executor> owned;
  if (pool == Pool::kShuffle) owned = std::make_unique<ShuffleExecutor>();
  if (threads != 0) {
    owned = MakeTbbExecutor(threads);
    if (owned == nullptr) return nullptr;
  }
  Executor& inner = owned == nullptr ? SerialExecutor() : *owned;
  return std::make_unique<Recorder>(inner, std::move(owned), expected);
}

Status BackwardsExecutor::ParallelFor(size_t count, size_t grain, Body body,
                                      void* context) noexcept {
  EXPECT_GE(grain, 1u);
  if (calls_++ == fail_at_) {
    return Status(StatusCode::kOutOfMemory, "no memory");
  }
  while (count-- != 0) body(context, count % Concurrency(), count, count + 1);
  return Status();
}

ScopedIsa::ScopedIsa(const std::string& name) {
  const Status status = CapIsa(name.c_str());
  EXPECT_TRUE(status.ok()) << name << ": " << status.message();
  EXPECT_EQ(ActiveIsa().name, name);
  simd::g_last_target.store(0);
  EXPECT_EQ(LastIsa(), nullptr);
}
ScopedIsa::~ScopedIsa() { EXPECT_OK(CapIsa(nullptr)); }

std::vector<std::string> IsaNames(Span<const Isa> isas) {
  std::vector<std::string> names;
  for (const Isa& isa : isas) names.push_back(isa.name);
  return names;
}
std::vector<std::string> RunnableIsaNames() { return IsaNames(RunnableIsas()); }
std::vector<std::string> FmaIsaNames() {
  std::vector<std::string> names;
  for (const Isa& isa : RunnableIsas()) {
    if (isa.fma) names.push_back(isa.name);
  }
  return names;
}

namespace {
#if defined(__x86_64__)
constexpr unsigned long long kFlush = 0x8040;
unsigned long long ReadMode() { return _mm_getcsr(); }
void WriteMode(unsigned long long mode) {
  _mm_setcsr(static_cast<unsigned>(mode));
}
#elif defined(__aarch64__)
constexpr unsigned long long kFlush = 1ull << 24;
unsigned long long ReadMode() {
  unsigned long long mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void WriteMode(unsigned long long mode) {
  asm volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#endif
}  // namespace

ScopedFlushToZero::ScopedFlushToZero() : saved_(ReadMode()) {
  WriteMode(saved_ | kFlush);
}
ScopedFlushToZero::~ScopedFlushToZero() {
  // The library must not have changed the caller's mode.
  EXPECT_EQ(ReadMode() & kFlush, kFlush);
  WriteMode(saved_);
}

void IsaTest::SetUp() { isa_ = std::make_unique<ScopedIsa>(GetParam()); }
void IsaTest::TearDown() {
  ExpectRan(GetParam());
  isa_.reset();
}

std::ostream& operator<<(std::ostream& os, Pool pool) {
  return os << kPools[static_cast<size_t>(pool)].name;
}

std::ostream& operator<<(std::ostream& os, const IsaAndPool& param) {
  return os << param.isa << "_" << param.pool;
}

void IsaPoolTest::SetUp() {
  isa_ = std::make_unique<ScopedIsa>(GetParam().isa);
  executor_ = MakeExecutor(GetParam().pool);
  ASSERT_NE(executor_, nullptr);
}
void IsaPoolTest::TearDown() {
  ExpectRan(GetParam().isa);
  isa_.reset();
}

std::vector<Pool> EveryPool() {
#ifdef SWITCHYARD_WITH_TBB
  return {Pool::kSerial, Pool::kTbb1, Pool::kTbb2, Pool::kTbb7, Pool::kShuffle};
#else
  return {Pool::kSerial, Pool::kShuffle};
#endif
}

std::vector<IsaAndPool> EveryIsaAndPool() {
  std::vector<IsaAndPool> params;
  for (const std::string& isa : RunnableIsaNames()) {
    for (const Pool pool : EveryPool()) {
      if (params.empty() || params.front().isa == isa ||
          pool == Pool::kShuffle) {
        params.push_back({isa, pool});
      }
    }
  }
  return params;
}

}  // namespace testing_support
}  // namespace switchyard
