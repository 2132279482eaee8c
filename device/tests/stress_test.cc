// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Commits 10,000 command buffers from 8 threads to 2 queues. No buffer may be
// lost or change its place in its queue, and no memory may leak.

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/tests/device_test.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kThreads = 8;
constexpr size_t kQueues = 2;

struct Id {
  // `serial` numbers the buffers that a thread commits to one queue.
  int32_t thread = 0, serial = 0;
  bool operator==(const Id& o) const {
    return thread == o.thread && serial == o.serial;
  }
};

// How command buffers take their places in the queue.
enum class Order {
  kCommit,    // all threads call commit() at once
  kRecorded,  // one thread at a time calls commit() and records the order
  kEnqueued,  // enqueue() in recorded order, then commit() in any order
};

class DeviceStress : public DeviceTest,
                     public testing::WithParamInterface<Order> {
 protected:
  struct PerQueue {
    std::shared_ptr<CommandQueue> queue;
    std::mutex order;
    std::vector<Id> expected;  // empty if places are not recorded
    // Only one kernel or handler of the queue at a time writes these members.
    // No mutex guards them, so that ThreadSanitizer can check this rule.
    std::vector<Id> kernels, handlers;
    size_t errors = 0;
  };

  DeviceStress() {
    for (PerQueue& q : queues_) q.queue = device_->newCommandQueue();
    note_ = Pipeline([](const ThreadgroupContext& context) {
      const Id id = context.params<Id>(0);
      PerQueue& q = *context.params<PerQueue*>(1);
      ++context.buffer<int32_t>(2).data[0];
      q.kernels.push_back(id);
      // Some kernels fail on purpose.
      if (id.serial % 100 == 99) throw std::runtime_error("as agreed");
    });
  }

  void Thread(int32_t thread, int32_t buffers) {
    std::vector<std::shared_ptr<CommandBuffer>> own;
    int32_t serials[kQueues] = {};
    for (int32_t i = 0; i < buffers; ++i) {
      const size_t which = static_cast<size_t>(i / 3 + thread) % kQueues;
      PerQueue& q = queues_[which];
      const Id id = {thread, serials[which]++};
      const auto buffer = q.queue->commandBuffer();
      Encode(*buffer, q, id);
      Commit(*buffer, q, id);
      own.push_back(buffer);
      if (i % 7 == 3) buffer->waitUntilCompleted();
      if (i % 31 == 30) own[own.size() / 2]->waitUntilCompleted();
      if (own.size() == 40) own.erase(own.begin(), own.begin() + 30);
    }
  }
  void Encode(CommandBuffer& buffer, PerQueue& q, Id id) {
    auto* const value = new int32_t(id.serial);
    ++live_;
    const auto shared = device_->newBufferWithBytesNoCopy(
        static_cast<void*>(value), sizeof(*value), ResourceStorageModeShared,
        [this, id](void* pointer, size_t) {
          const auto* const last = static_cast<const int32_t*>(pointer);
          if (*last != id.serial + 2) ++wrong_values_;
          delete last;
          --live_;
        });
    PerQueue* const where = &q;
    const auto encoder = buffer.computeCommandEncoder();
    encoder->setComputePipelineState(note_);
    encoder->setBytes(&id, sizeof(id), 0);
    encoder->setBytes(&where, sizeof(where), 1);
    encoder->setBuffer(shared, 0, 2);
    DispatchOne(*encoder);
    encoder->endEncoding();
    buffer.addCompletedHandler([shared, where, id](CommandBuffer* completed) {
      ++*static_cast<int32_t*>(shared->contents());
      where->handlers.push_back(id);
      if (completed->status() == CommandBufferStatusError) {
        ++where->errors;
      }
    });
  }
  void Commit(CommandBuffer& buffer, PerQueue& q, Id id) {
    if (GetParam() == Order::kCommit) {
      buffer.commit();
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(q.order);
      q.expected.push_back(id);
      if (GetParam() == Order::kEnqueued) {
        buffer.enqueue();
      } else {
        buffer.commit();
      }
    }
    if (GetParam() == Order::kEnqueued) buffer.commit();
  }

  void RunThreads(size_t buffers) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, buffers] {
        Thread(static_cast<int32_t>(t),
               static_cast<int32_t>(buffers / kThreads));
      });
    }
    for (std::thread& thread : threads) thread.join();
    // When `last` is complete, all earlier buffers must be complete, too.
    for (PerQueue& q : queues_) {
      const auto last = q.queue->commandBuffer();
      CommitAndWait(*last);
    }
  }
  // Checks the records and frees their memory.
  void Check(size_t buffers) {
    size_t total = 0;
    for (PerQueue& q : queues_) {
      total += q.kernels.size();
      EXPECT_TRUE(q.handlers == q.kernels);
      if (GetParam() != Order::kCommit) {
        EXPECT_TRUE(q.kernels == q.expected);
      }
      int32_t next[kThreads] = {};
      size_t errors = 0;
      for (const Id& id : q.kernels) {
        ASSERT_EQ(id.serial, next[id.thread]) << "thread " << id.thread;
        ++next[id.thread];
        if (id.serial % 100 == 99) ++errors;
      }
      EXPECT_EQ(q.errors, errors);
      EXPECT_GT(errors, 0u);
      q.errors = 0;
      for (std::vector<Id>* ids : {&q.kernels, &q.handlers, &q.expected}) {
        std::vector<Id>().swap(*ids);
      }
    }
    EXPECT_EQ(total, buffers);
    EXPECT_EQ(live_, 0);
    EXPECT_EQ(wrong_values_, 0);
  }

  PerQueue queues_[kQueues];
  std::shared_ptr<ComputePipelineState> note_;
  std::atomic<int> live_{0}, wrong_values_{0};
};
std::ostream& operator<<(std::ostream& os, Order order) {
  constexpr const char* kNames[] = {"Commit", "Recorded", "Enqueued"};
  return os << kNames[static_cast<size_t>(order)];
}
INSTANTIATE_TEST_SUITE_P(Orders, DeviceStress,
                         testing::Values(Order::kCommit, Order::kRecorded,
                                         Order::kEnqueued),
                         testing::PrintToStringParamName());

size_t HeapInUse() {
#ifdef SWITCHYARD_SANITIZED
  return 0;  // mallinfo2() does not see the allocator of a sanitizer
#else
  return mallinfo2().uordblks;
#endif
}

TEST_P(DeviceStress, NothingLostNothingReorderedNothingKept) {
  constexpr size_t kBuffers = 10000;
  constexpr size_t kWarmUp = 2000;
  RunThreads(kWarmUp);
  Check(kWarmUp);
  const size_t before = HeapInUse();
  RunThreads(kBuffers);
  Check(kBuffers);
  // Each buffer allocates several hundred bytes. This limit detects even a
  // leak of 26 bytes per command buffer.
  EXPECT_LT(HeapInUse(), before + (size_t{256} << 10));
}

// For two seconds, several threads perform random actions: they encode,
// dispatch, commit, wait for and drop work. Queues come and go. Kernels,
// handlers and deallocators hold references to other queues.

constexpr size_t kActors = 4;
constexpr size_t kSlots = 3;
// Handlers may commit work that has handlers, too, down to this depth.
constexpr int kMaxDepth = 2;

// An executor that counts its objects. A queue's thread releases its executor
// last, so all work is done when no executor is left.
class CountedExecutor final : public Executor {
 public:
  CountedExecutor(Pool pool, std::atomic<int>& live)
      : inner_(MakeExecutor(pool)), live_(live) {
    ++live_;
  }
  ~CountedExecutor() override {
    inner_.reset();
    --live_;
  }
  size_t Concurrency() const noexcept override { return inner_->Concurrency(); }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    return inner_->ParallelFor(count, grain, body, context);
  }

 private:
  std::unique_ptr<Executor> inner_;
  std::atomic<int>& live_;
};

// Returns the seed in SWITCHYARD_SEED, or else a random one. With a fixed seed,
// the sequence of actions can be repeated (but threads still race).
uint64_t Seed() {
  const char* const given = std::getenv("SWITCHYARD_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0)
                          : std::random_device()();
}

class DeviceSequences : public testing::Test {
 protected:
  // A queue with its number in the order of creation. Handlers wait only for
  // their own queue and for younger queues, so two handlers never wait for
  // each other.
  struct Numbered {
    std::shared_ptr<CommandQueue> queue;
    uint64_t number = 0;
  };
  struct Slot {
    std::mutex mutex;
    Numbered queue;
  };
  using BufferOf = std::shared_ptr<CommandBuffer>;

  Numbered NewQueue(Random& random) {
    const std::vector<Pool> pools = EveryPool();
    DeviceOptions options;
    options.executor = std::make_shared<CountedExecutor>(
        pools[random.Below(pools.size())], live_executors_);
    options.check_kernels = random.Below(3) == 0;
    options.schedule_seed = random.Below(2);
    return {CreateDevice(options)->newCommandQueue(), ++last_number_};
  }
  Numbered AnyQueue(Random& random) {
    Slot& slot = slots_[random.Below(kSlots)];
    const std::lock_guard<std::mutex> lock(slot.mutex);
    return slot.queue;
  }
  // Replaces a queue. The old queue is dropped while the mutex is not locked,
  // because this reference may be the last one.
  void ReplaceQueue(Random& random) {
    Swap(slots_[random.Below(kSlots)], NewQueue(random));
  }
  static void Swap(Slot& slot, Numbered queue) {
    {
      const std::lock_guard<std::mutex> lock(slot.mutex);
      std::swap(slot.queue, queue);
    }
  }

  // Returns a kernel that counts its threadgroups. The threadgroup that runs
  // first, on any thread, drops `held`.
  KernelFunction Counting(std::shared_ptr<CommandQueue> held) {
    struct Held {
      std::atomic<bool> taken{false};
      std::shared_ptr<CommandQueue> queue;
    };
    const auto shared = std::make_shared<Held>();
    shared->queue = std::move(held);
    KernelFunction kernel;
    kernel.name = "count";
    kernel.threadgroup = [this, shared](const ThreadgroupContext&) {
      ++kernels_;
      if (!shared->taken.exchange(true)) shared->queue.reset();
    };
    return kernel;
  }
  static KernelFunction Failing() {
    KernelFunction kernel;
    kernel.name = "fail";
    kernel.threadgroup = [](const ThreadgroupContext&) {
      throw std::runtime_error("as agreed");
    };
    return kernel;
  }
  // Returns memory with a deallocator that holds another queue.
  BufferPtr Holding(Device& device, std::shared_ptr<CommandQueue> held) {
    static char byte;
    ++buffers_;
    return device.newBufferWithBytesNoCopy(
        static_cast<void*>(&byte), 1, ResourceStorageModeShared,
        [this, held = std::move(held)](void*, size_t) mutable {
          held.reset();
          --buffers_;
        });
  }

  // Encodes some dispatches and handlers, and usually commits them. The
  // kernels, handlers and deallocators hold references to other queues.
  // Returns the buffer.
  BufferOf Work(const Numbered& queue, Random& random, int depth) {
    Device& device = *queue.queue->device();
    const BufferOf buffer = queue.queue->commandBuffer();
    const bool early = random.Below(4) == 0;
    if (early) buffer->enqueue();
    uint64_t kernels = 0;
    const auto encoder = buffer->computeCommandEncoder();
    for (size_t i = random.Below(4); i != 0; --i) {
      if (random.Below(4) == 0) {
        encoder->setBuffer(Holding(device, AnyQueue(random).queue), 0, 0);
      }
      const size_t grid = 1 + random.Below(30);
      encoder->setComputePipelineState(
          device.newComputePipelineState(Counting(AnyQueue(random).queue)));
      encoder->dispatchThreadgroups(Size(grid, 1, 1), Size(1, 1, 1));
      kernels += grid;
    }
    const bool fails = random.Below(8) == 0;
    if (fails) {
      encoder->setComputePipelineState(
          device.newComputePipelineState(Failing()));
      encoder->dispatchThreadgroups(Size(1 + random.Below(30), 1, 1),
                                    Size(1, 1, 1));
    }
    encoder->endEncoding();
    const size_t handlers = random.Below(3);
    for (size_t i = 0; i < handlers; ++i) {
      buffer->addCompletedHandler(Handler(queue.number, random, depth, fails));
    }
    if (random.Below(8) == 0) return buffer;  // this buffer is never committed
    expected_kernels_ += kernels;
    expected_handlers_ += handlers;
    buffer->commit();
    return buffer;
  }

  CommandBuffer::CompletedHandler Handler(uint64_t number, Random& random,
                                          int depth, bool fails) {
    Numbered other = AnyQueue(random);
    return [this, number, depth, fails, other = std::move(other),
            seed = random.Next()](CommandBuffer* completed) mutable {
      Random own(seed);
      ++handlers_;
      EXPECT_EQ(completed->status(), fails ? CommandBufferStatusError
                                           : CommandBufferStatusCompleted);
      // After the end of the test, the slots are empty and `other.queue` is
      // null.
      if (other.queue != nullptr && depth < kMaxDepth && own.Below(2) == 0) {
        const BufferOf work = Work(other, own, depth + 1);
        if (other.number >= number && own.Below(2) == 0) {
          WaitIfCommitted(*work);
        }
      }
      // In the other half of the cases, the queue is dropped together with
      // the handler.
      if (own.Below(2) == 0) other.queue.reset();
    };
  }
  // A wait before commit() would be an error and return at once.
  static void WaitIfCommitted(CommandBuffer& buffer) {
    if (buffer.status() >= CommandBufferStatusCommitted) {
      buffer.waitUntilCompleted();
      EXPECT_GE(buffer.status(), CommandBufferStatusCompleted);
    }
  }

  void Thread(uint64_t seed) {
    using Clock = std::chrono::steady_clock;
    Random random(seed);
    std::vector<BufferOf> own;
    const auto end = Clock::now() + std::chrono::seconds(2);
    while (Clock::now() < end) {
      switch (random.Below(8)) {
        case 0:
          ReplaceQueue(random);
          break;
        case 1:
          if (!own.empty()) WaitIfCommitted(*own[random.Below(own.size())]);
          break;
        case 2:
          own.erase(own.begin(),
                    own.begin() + static_cast<ptrdiff_t>(own.size() / 2));
          break;
        default:
          own.push_back(Work(AnyQueue(random), random, 0));
          // Buffers that hold a place in a queue are dropped, because other
          // threads may wait for them.
          if (own.back()->status() < CommandBufferStatusCommitted) {
            own.pop_back();
          }
      }
      if (own.size() > 20) own.erase(own.begin(), own.begin() + 10);
    }
  }

  std::atomic<int> live_executors_{0};
  std::atomic<uint64_t> last_number_{0};
  std::atomic<uint64_t> kernels_{0}, expected_kernels_{0};
  std::atomic<uint64_t> handlers_{0}, expected_handlers_{0};
  std::atomic<int> buffers_{0};
  Slot slots_[kSlots];
};

TEST_F(DeviceSequences, EverythingRunsOnceAndGoes) {
  const Watchdog watchdog;
  const uint64_t seed = Seed();
  std::printf("SWITCHYARD_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);  // prints the text even if the test hangs
  Random random(seed);
  for (Slot& slot : slots_) slot.queue = NewQueue(random);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kActors; ++i) {
    threads.emplace_back([this, own = random.Next()] { Thread(own); });
  }
  for (std::thread& thread : threads) thread.join();
  for (Slot& slot : slots_) Swap(slot, Numbered());
  // Dropped work for which no thread waits ends by itself.
  while (live_executors_ != 0) std::this_thread::yield();
  EXPECT_EQ(kernels_, expected_kernels_);
  EXPECT_EQ(handlers_, expected_handlers_);
  EXPECT_EQ(buffers_, 0);
  EXPECT_GT(handlers_, 0u);
}

// The grids of the first test are too large to finish, so only the first
// failure ends them. The grid of the second test finishes, but has more
// threadgroups than checked mode shuffles at a time.

class DeviceHugeGrid : public testing::TestWithParam<Setup> {};
INSTANTIATE_TEST_SUITE_P(Setups, DeviceHugeGrid,
                         testing::ValuesIn(EverySetup()),
                         testing::PrintToStringParamName());

TEST_P(DeviceHugeGrid, EndsWithTheFirstFailure) {
  const Watchdog watchdog;
  const Mode& mode = GetParam().mode;
  const auto device = NewDevice(GetParam());
  const auto queue = device->newCommandQueue();
  const auto fails = [](auto& tg) {
    const Size& at = tg.threadgroup_position_in_grid;
    if (at.width == 0 && at.height == 0 && at.depth == 0) {
      throw std::runtime_error("the first");
    }
  };
  const std::string seed =
      mode.schedule_seed == 0
          ? std::string()
          : " (schedule_seed " + std::to_string(mode.schedule_seed) + ")";
  constexpr size_t kOne = 1;
  for (const Size& grid :
       {Size(kOne << 62, 1, 1), Size(kOne << 20, kOne << 21, kOne << 21)}) {
    // A grain takes 30 us: one threadgroup of 30000 ns, or 30 million
    // threadgroups of 0.001 ns.
    for (const double ns : {30000.0, 0.001}) {
      SCOPED_TRACE(ns);
      const auto buffer = Encoded(*queue, [&](Encoder& e) {
        e.setComputePipelineState(
            device->newComputePipelineState(MakeKernel("huge", fails, ns)));
        e.dispatchThreadgroups(grid, Size(1, 1, 1));
      });
      buffer->commit();
      buffer->waitUntilCompleted();
      EXPECT_EQ(buffer->status(), CommandBufferStatusError);
      EXPECT_EQ(buffer->error(), "huge: the first" + seed);
    }
  }
}

TEST_P(DeviceHugeGrid, EachThreadgroupOnce) {
  const auto device = NewDevice(GetParam());
  const auto queue = device->newCommandQueue();
  constexpr size_t kCount = 2 * 65536 + 5;
  for (const double ns : {30000.0, 7.0, 0.001}) {
    SCOPED_TRACE(ns);
    std::vector<std::atomic<int>> runs(kCount);
    KernelFunction kernel;
    kernel.name = "count";
    kernel.threadgroup = [&runs](const ThreadgroupContext& tg) {
      ++runs[tg.threadgroup_position_in_grid.width];
    };
    kernel.threadgroup_ns = ns;
    const auto buffer = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(device->newComputePipelineState(kernel));
      e.dispatchThreadgroups(Size(kCount, 1, 1), Size(1, 1, 1));
    });
    buffer->commit();
    buffer->waitUntilCompleted();
    EXPECT_EQ(buffer->error(), "");
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(runs[i], 1) << i;
  }
}

// An executor that records the number of workers of a dispatch.
class PricedExecutor final : public Executor {
 public:
  explicit PricedExecutor(size_t fork_ns) : fork_ns_(fork_ns) {}
  size_t Concurrency() const noexcept override { return 16; }
  size_t ForkNs() const noexcept override { return fork_ns_; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    EXPECT_EQ(grain, 1u);
    workers = count;
    body(context, 0, 0, count);
    return Status();
  }
  size_t workers = 0;

 private:
  const size_t fork_ns_;
};

TEST(DeviceGrid, HasTheWorkersThatPayForTheFork) {
  for (const auto& [fork_ns, workers] :
       {std::pair<size_t, size_t>{3000, 16}, {30000, 6}, {60000, 0}}) {
    const auto executor = std::make_shared<PricedExecutor>(fork_ns);
    DeviceOptions options;
    options.executor = executor;
    const auto device = CreateDevice(options);
    const auto queue = device->newCommandQueue();
    const auto buffer = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(device->newComputePipelineState(MakeKernel(
          "microsecond", [](auto&) {}, 1000.0)));
      e.dispatchThreadgroups(Size(100, 1, 1), Size(1, 1, 1));
    });
    buffer->commit();
    buffer->waitUntilCompleted();
    EXPECT_EQ(buffer->error(), "");
    EXPECT_EQ(executor->workers, workers) << fork_ns;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
