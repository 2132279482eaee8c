// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Two seconds of whatever comes: several threads encode, dispatch, commit, wait
// for and drop work of queues that come and go, and whose kernels, handlers and
// deallocators hold other queues.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "testing/inputs.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kThreads = 4;
constexpr size_t kSlots = 3;
// How deep handlers commit work whose handlers commit work.
constexpr int kMaxDepth = 2;

// The last thing that a queue's thread lets go of: when none is left, all has
// been done.
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

// From the environment, to draw a sequence again (threads still race).
uint64_t Seed() {
  const char* const given = std::getenv("SWITCHYARD_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0)
                          : std::random_device()();
}

class DeviceSequences : public testing::Test {
 protected:
  // A queue, and when it was made: handlers wait for their own queue and for
  // younger ones, so that they never wait for each other.
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
  // The old one is dropped behind the lock, perhaps as the last reference.
  void ReplaceQueue(Random& random) {
    Swap(slots_[random.Below(kSlots)], NewQueue(random));
  }
  static void Swap(Slot& slot, Numbered queue) {
    {
      const std::lock_guard<std::mutex> lock(slot.mutex);
      std::swap(slot.queue, queue);
    }
  }

  // Counts; the first threadgroup, on whatever thread, drops what is held.
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
  // Memory whose deallocator holds another queue.
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

  // Encodes some dispatches and handlers, and commits them, mostly. `held` is
  // what kernels, handlers and deallocators hold. Returns the buffer.
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
    if (random.Below(8) == 0) return buffer;  // never committed
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
      // At the end the slots are empty.
      if (other.queue != nullptr && depth < kMaxDepth && own.Below(2) == 0) {
        const BufferOf work = Work(other, own, depth + 1);
        if (other.number >= number && own.Below(2) == 0) {
          WaitIfCommitted(*work);
        }
      }
      if (own.Below(2) == 0) other.queue.reset();  // else with the handler
    };
  }
  // Before commit() it is an error, and returns.
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
          // A buffer that holds a place in a queue is not kept: others may wait
          // for it.
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
  std::fflush(stdout);  // also where the test does not end
  Random random(seed);
  for (Slot& slot : slots_) slot.queue = NewQueue(random);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, own = random.Next()] { Thread(own); });
  }
  for (std::thread& thread : threads) thread.join();
  for (Slot& slot : slots_) Swap(slot, Numbered());
  // Work that was dropped while nobody waits ends by itself.
  while (live_executors_ != 0) std::this_thread::yield();
  EXPECT_EQ(kernels_, expected_kernels_);
  EXPECT_EQ(handlers_, expected_handlers_);
  EXPECT_EQ(buffers_, 0);
  EXPECT_GT(handlers_, 0u);
}

}  // namespace
}  // namespace switchyard::testing_support
