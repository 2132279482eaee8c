// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs random operations from several threads at once for a given time:
//
//   switchyard_soak SECONDS [SEED]
//
// Layers of random shapes and options run on random executors and ISAs. Their
// results have to have the bits that one thread gives. The threads make and
// destroy executors, devices, queues and buffers. They also run checked mode
// and invalid calls.
//
// The time is cut into rounds. After each round all threads have ended, and
// the program prints a line with the resources of the process. The run fails
// if a result is wrong, or if the resources grow after the first third of the
// rounds.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/tests/device_pass.h"
#include "switchyard/isa.h"
#include "tests/faults/layer.h"
#include "tests/faults/process.h"

namespace switchyard::testing_support {
namespace {

using namespace device;
using Clock = std::chrono::steady_clock;

constexpr size_t kThreads = 6;
// After the warm-up, the heap and RSS may exceed the warm-up's maximum by these
// numbers of KiB. malloc's count is exact except for memory that TBB and the C
// library keep, so a leak of 10 bytes per operation shows after 3 minutes. RSS
// is less exact, because it includes TBB's own allocator and fragments of free
// memory that malloc keeps.
[[maybe_unused]] constexpr size_t kHeapNoiseKib = 1024;
[[maybe_unused]] constexpr size_t kRssNoiseKib = 8192;

// Starts new threads for each call.
class ThreadsExecutor final : public Executor {
 public:
  explicit ThreadsExecutor(size_t threads) : threads_(threads) {}
  size_t Concurrency() const noexcept override { return threads_; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    std::vector<std::thread> threads;
    for (size_t w = 0; w < threads_; ++w) {
      threads.emplace_back([=] {
        const size_t begin = count * w / threads_;
        const size_t end = count * (w + 1) / threads_;
        if (begin != end) body(context, w, begin, end);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return Status();
  }

 private:
  const size_t threads_;
};

// Objects that the threads of a round share.
struct Shared {
  std::shared_ptr<Executor> executor;
  std::shared_ptr<Device> device;
  std::shared_ptr<CommandQueue> queue;
};
std::shared_ptr<Executor> Serial() {
  return std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
}

Shape RandomShape(Random& random) {
  Shape shape;
  shape.tokens = 1 + random.Below(random.Below(4) == 0 ? 400 : 40);
  shape.experts = 1 + random.Below(130);
  shape.top_k = 1 + random.Below(std::min<size_t>(shape.experts, 9));
  shape.hidden = 2 + random.Below(200);
  return shape;
}

std::shared_ptr<Executor> RandomExecutor(Random& random, const Shared& shared) {
  std::shared_ptr<Executor> executor;
  switch (random.Below(4)) {
    case 0:
      executor = shared.executor;
      break;
    case 1:
      executor = MakeTbbExecutor(1 + static_cast<int>(random.Below(4)));
      break;
    case 2:
      executor = std::make_shared<ThreadsExecutor>(1 + random.Below(4));
      break;
  }
  return executor != nullptr ? executor : Serial();
}

// Draws one of the ISAs with FMA, which all give the same bits. Other threads
// may run kernels at the same time.
void RandomIsa(Random& random) {
  std::vector<const char*> names = {nullptr};
  for (const Isa& isa : RunnableIsas()) {
    if (isa.fma) names.push_back(isa.name);
  }
  if (!CapIsa(names[random.Below(names.size())]).ok()) std::abort();
}

// The operations of the threads. Each returns an error text, or null.

const char* Kernels(Random& random, const Shared& shared) {
  Layer layer(RandomShape(random), random.Next());
  const uint64_t expected = layer.Expected();
  RandomIsa(random);
  const auto executor = RandomExecutor(random, shared);
  return expected != 0 && layer.IsRight(*executor, expected)
             ? nullptr
             : "a layer gives other bits than on one thread";
}

const char* OnSharedQueue(Random& random, const Shared& shared) {
  const DevicePass pass(RandomShape(random), random.Next());
  return pass.Run(*shared.device, *shared.queue, DevicePass::Reverse()) ==
                 DevicePass::Outcome::kRight
             ? nullptr
             : "the shared queue gives other results";
}

const char* OnNewDevice(Random& random, const Shared& shared) {
  Shape shape = RandomShape(random);
  DeviceOptions options;
  options.executor = RandomExecutor(random, shared);
  options.time_dispatches = random.Below(2) == 0;
  options.check_kernels = random.Below(2) == 0;
  options.schedule_seed = random.Below(3);
  return DevicePass(shape, random.Next()).Run(options) ==
                 DevicePass::Outcome::kRight
             ? nullptr
             : "a new device gives other results";
}

// Destroys command buffers. Some were committed and may still run, and some
// were never committed.
const char* Dropped(Random& random, const Shared& shared) {
  const auto device =
      random.Below(2) == 0 ? shared.device : CreateDevice({Serial()});
  const auto queue = random.Below(2) == 0 ? device->newCommandQueue() : nullptr;
  const auto runs = std::make_shared<std::atomic<size_t>>(0);
  size_t committed = 0;
  KernelFunction count;
  count.name = "count";
  count.threadgroup = [runs](const ThreadgroupContext&) { ++*runs; };
  const auto pipeline = device->newComputePipelineState(count);
  std::shared_ptr<CommandBuffer> last;
  for (size_t i = random.Below(6); i != 0; --i) {
    last = (queue != nullptr ? queue : shared.queue)->commandBuffer();
    const auto encoder = last->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(device->newBuffer(1 + random.Below(100000)), 0, 0);
    encoder->dispatchThreadgroups(Size(1, 1, 1), Size(1, 1, 1));
    encoder->endEncoding();
    if (random.Below(4) == 0) continue;
    last->commit();
    ++committed;
  }
  // The queue runs command buffers in order. So when `end` completes, all
  // earlier command buffers are complete.
  const auto end = (queue != nullptr ? queue : shared.queue)->commandBuffer();
  end->commit();
  end->waitUntilCompleted();
  return *runs == committed ? nullptr : "work was lost, or run twice";
}

// Checked mode has to find the defect, and the program has to continue.
const char* PlantedDefect(Random& random, const Shared&) {
  DeviceOptions options{Serial()};
  options.check_kernels = true;
  options.schedule_seed = random.Below(4);
  const auto device = CreateDevice(options);
  const auto queue = device->newCommandQueue();
  const auto outside = MakeKernel("outside", [](auto& tg) {
    const auto out = buffer<uint32_t>(tg, 0);
    tg.for_each_thread(
        [&](auto t) { out[t.thread_position_in_grid().width] = 1; });
  });
  const size_t words = 1 + random.Below(63);
  const auto commands = queue->commandBuffer();
  const auto encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(device->newComputePipelineState(outside));
  encoder->setBuffer(device->newBuffer(words * 4), 0, 0);
  encoder->dispatchThreadgroups(Size(2, 1, 1), Size(32, 1, 1));
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  return commands->status() == CommandBufferStatusError &&
                 commands->error().rfind("outside: threadgroup (", 0) == 0
             ? nullptr
             : "a write out of bounds was not found";
}

const char* Errors(Random& random, const Shared& shared) {
  Layer layer(RandomShape(random), random.Next());
  const auto executor = RandomExecutor(random, shared);
  std::vector<float> values(16, 3.0f);
  std::vector<int32_t> ids(16, 5);
  const Status too_many =
      RouteTopK({{values.data(), 1, 4}},
                {{ids.data(), 1, 5}, {values.data() + 8, 1, 5}}, {}, *executor);
  const Status null = Activate({}, {{values.data(), 4, 4}}, {}, *executor);
  std::string error;
  const auto unknown =
      shared.device->newComputePipelineState("no such kernel", &error);
  const auto commands = shared.queue->commandBuffer();
  {
    const auto encoder = commands->computeCommandEncoder();
    encoder->setBuffer(nullptr, 4, kMaxBufferBindings + random.Below(9));
    encoder->dispatchThreadgroups(Size(1, 1, 1), Size(1, 1, 1));
    encoder->endEncoding();
  }
  commands->commit();
  commands->waitUntilCompleted();
  const bool right = too_many.code() == StatusCode::kInvalidArgument &&
                     null.code() == StatusCode::kInvalidArgument &&
                     unknown == nullptr && !error.empty() &&
                     commands->status() == CommandBufferStatusError &&
                     values == std::vector<float>(16, 3.0f) &&
                     ids == std::vector<int32_t>(16, 5);
  return right ? nullptr : "a mistake is not an error";
}

class Soak {
 public:
  Soak(double seconds, uint64_t seed)
      : rounds_(std::max<size_t>(9, static_cast<size_t>(seconds / 5.0))),
        round_seconds_(seconds / static_cast<double>(rounds_)),
        seed_(seed) {}

  bool Run() {
    std::printf("seed %llu, %zu rounds of %.1f s, %zu threads\n",
                static_cast<unsigned long long>(seed_), rounds_, round_seconds_,
                kThreads);
    const size_t warm_up = rounds_ / 3;
    ProcessState most = {}, state = {};
    for (size_t round = 1; round <= rounds_; ++round) {
      Round(round);
      state = ReadProcessState();
      std::printf(
          "%zu: %zu operations, heap %zu KiB, RSS %zu KiB, %zu fds, %zu "
          "threads%s\n",
          round, operations_.load(), state.heap_kib, state.rss_kib, state.fds,
          state.threads, round <= warm_up ? ", warming up" : "");
      std::fflush(stdout);
      if (wrong_ != nullptr) {
        std::printf("FAILED: %s\n", wrong_.load());
        return false;
      }
      if (round > warm_up) continue;
      most.heap_kib = std::max(most.heap_kib, state.heap_kib);
      most.rss_kib = std::max(most.rss_kib, state.rss_kib);
      most.fds = std::max(most.fds, state.fds);
      most.threads = std::max(most.threads, state.threads);
    }
    // TBB keeps its workers, and starts them only when it needs them. So the
    // warm-up may not have counted all of them.
    most.threads =
        std::max<size_t>(most.threads, 1 + std::thread::hardware_concurrency());
    bool grew = state.fds > most.fds || state.threads > most.threads;
#ifndef SWITCHYARD_SANITIZED
    grew = grew || state.heap_kib > most.heap_kib + kHeapNoiseKib ||
           state.rss_kib > most.rss_kib + kRssNoiseKib;
#endif
    std::printf(
        "%s: %zu operations; while warming up at most heap %zu KiB, RSS %zu "
        "KiB, %zu fds, %zu threads\n",
        grew ? "FAILED, it grew" : "ok", operations_.load(), most.heap_kib,
        most.rss_kib, most.fds, most.threads);
    return !grew;
  }

 private:
  void Round(size_t round) {
    Shared shared;
    shared.executor = MakeTbbExecutor();
    if (shared.executor == nullptr) shared.executor = Serial();
    shared.device = CreateDevice({shared.executor});
    shared.queue = shared.device->newCommandQueue();
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(round_seconds_));
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Random random(seed_ + (round << 32) + (t << 16));
        do {
          Operation(random, shared);
        } while (Clock::now() < end && wrong_ == nullptr);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  void Operation(Random& random, const Shared& shared) {
    constexpr const char* (*kAll[])(Random&, const Shared&) = {
        Kernels,     Kernels, Kernels,       OnSharedQueue,
        OnNewDevice, Dropped, PlantedDefect, Errors};
    const char* const wrong =
        kAll[random.Below(std::size(kAll))](random, shared);
    if (wrong != nullptr) wrong_ = wrong;
    ++operations_;
  }

  const size_t rounds_;
  const double round_seconds_;
  const uint64_t seed_;
  std::atomic<size_t> operations_{0};
  std::atomic<const char*> wrong_{nullptr};
};

}  // namespace
}  // namespace switchyard::testing_support

int main(int argc, char** argv) {
  // Makes free() return large blocks at once. Limits malloc to two arenas,
  // because threads would leave arenas behind when they end. Without these
  // settings, RSS would hide leaks.
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_ARENA_MAX, 2);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.0;
  if (seconds <= 0.0) {
    std::fprintf(stderr, "usage: switchyard_soak SECONDS [SEED]\n");
    return 2;
  }
  const uint64_t seed =
      argc > 2
          ? std::strtoull(argv[2], nullptr, 10)
          : static_cast<uint64_t>(
                std::chrono::system_clock::now().time_since_epoch().count());
  return switchyard::testing_support::Soak(seconds, seed).Run() ? 0 : 1;
}
