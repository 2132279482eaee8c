// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An engine that has its own threads can run Switchyard on them in three ways:
//   1. call the kernels from its own thread loop, each thread on its own rows,
//      and sort pairs to experts as a team;
//   2. lend its threads: derive from switchyard::Executor, once, and call each
//      kernel once for all rows;
//   3. in a region that all its threads run, with their numbers and a barrier:
//      share a TeamExecutor, and thread 0 makes the calls of way 2.
// All give the bits of a single thread.

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "programs/arguments.h"
#include "programs/program.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/executor.h"
#include "switchyard/gather.h"
#include "switchyard/isa.h"
#include "switchyard/pieces.h"
#include "switchyard/route.h"
#include "switchyard/status.h"
#include "switchyard/team_executor.h"
#include "switchyard/views.h"

namespace {

using switchyard::AnyMatrix;
using switchyard::Executor;
using switchyard::Status;
using switchyard::Team;

// Stands for what an engine has: work(i) on each of its threads i, the caller
// being one of them. (Yours keeps the threads between calls.)
void RunOnAll(size_t num_threads, const std::function<void(size_t)>& work) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

// A barrier for those threads.
class Barrier {
 public:
  explicit Barrier(size_t num_threads) : num_threads_(num_threads) {}

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const size_t round = round_;
    if (++waiting_ == num_threads_) {
      waiting_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return round_ != round; });
    }
  }

 private:
  const size_t num_threads_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  size_t waiting_ = 0, round_ = 0;
};

// Ways 1 and 3 need the barrier only; way 2 needs this class.
class EngineExecutor final : public Executor {
 public:
  explicit EngineExecutor(size_t num_threads) : num_threads_(num_threads) {}

  size_t Concurrency() const noexcept override { return num_threads_; }

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    switchyard::SharedLoop loop(count, grain, num_threads_, body, context);
    const size_t workers = loop.pieces().workers();
    if (workers <= 1) {  // not worth waking anybody
      loop.Run(0, 1, 0);
    } else {
      RunOnAll(workers,
               [&](size_t thread) { loop.Run(thread, workers, thread); });
    }
    return Status();  // kInternal from a pool that can fail: nothing may throw
  }
  // Threads that spin between calls fork for less than the default of 30 us:
  //   size_t ForkNs() const noexcept override { return 3000; }

 private:
  const size_t num_threads_;
};

// The work between the GEMMs of one MoE layer: the router of
// Qwen3-30B-A3B, an eighth of its width, and tokens enough to share a sort.
struct Layer {
  static constexpr size_t kTokens = 2100, kExperts = 128, kTopK = 8;
  static constexpr size_t kHidden = 256, kIntermediate = 96;
  static constexpr size_t kRows = kTokens * kTopK;  // one per (token, expert)

  // The results of other kernels and the GEMMs: random numbers.
  std::vector<float> hidden = Random(kTokens * kHidden);
  std::vector<float> logits = Random(kTokens * kExperts);
  std::vector<float> gate_up = Random(kRows * 2 * kIntermediate);
  std::vector<float> down = Random(kRows * kHidden);
  // The outputs of Switchyard.
  std::vector<int32_t> ids = Ints(kRows);
  std::vector<float> weights = std::vector<float>(kRows);
  std::vector<int32_t> tokens_per_expert = Ints(kExperts);
  std::vector<int32_t> offsets = Ints(kExperts + 1);
  std::vector<int32_t> pairs = Ints(kRows), row_index = Ints(kRows), scratch;
  std::vector<float> gathered = std::vector<float>(kRows * kHidden);
  std::vector<float> activated = std::vector<float>(kRows * kIntermediate);
  std::vector<float> out = std::vector<float>(kTokens * kHidden);

  static std::vector<int32_t> Ints(size_t n) { return std::vector<int32_t>(n); }
  static std::vector<float> Random(size_t n) {
    std::mt19937 rng(static_cast<uint32_t>(n));
    std::uniform_real_distribution<float> uniform(-4.0f, 4.0f);
    std::vector<float> values(n);
    for (float& x : values) x = uniform(rng);
    return values;
  }

  // Called by each thread of `team`. On `executor` runs what a thread calls.
  Status Run(const Team& team, Executor& executor) {
    // This thread's part of `n` rows.
    const auto begin = [&](size_t n) {
      return n * team.thread / team.num_threads;
    };
    const auto end = [&](size_t n) {
      return n * (team.thread + 1) / team.num_threads;
    };
    const auto part = [&](auto& values, size_t rows, size_t cols) {
      return AnyMatrix(values.data(), rows, cols)
          .RowRange(begin(rows), end(rows));
    };
    // The first error, kept: a thread that left would not come to a barrier.
    Status status;
    const auto keep = [&status](const Status& s) {
      if (status.ok()) status = s;
    };
    const auto wait = [&team] {
      if (team.num_threads > 1) team.barrier(team.context);
    };

    keep(switchyard::RouteTopK(
        {part(logits, kTokens, kExperts)},
        {part(ids, kTokens, kTopK), part(weights, kTokens, kTopK)}, {},
        executor));
    wait();

    // A sort needs all ids: the whole team makes one call.
    const AnyMatrix all_ids(ids.data(), kTokens, kTopK);
    const switchyard::PackedBuckets buckets = {
        tokens_per_expert, offsets, pairs, {row_index.data(), kTokens, kTopK}};
    keep(team.num_threads > 1
             ? BucketPacked({all_ids, scratch}, buckets, {}, team)
             : BucketPacked({all_ids, scratch}, buckets, {}, executor));

    // Rows of tokens in the order of experts, for dense GEMMs.
    const size_t first = begin(kRows), last = end(kRows);
    keep(switchyard::GatherRows({{hidden.data(), kTokens, kHidden},
                                 {pairs.data() + first, last - first},
                                 all_ids},
                                {part(gathered, kRows, kHidden)}, {},
                                executor));
    // ... the experts' gate and up GEMMs, fused: [rows, gate | up] ...
    keep(switchyard::Activate({part(gate_up, kRows, 2 * kIntermediate)},
                              {part(activated, kRows, kIntermediate)},
                              {switchyard::Activation::kSilu,
                               switchyard::GateUpLayout::kConcatenated},
                              executor));
    // ... their down GEMMs, after which a token's rows come from all threads.
    wait();
    keep(switchyard::Combine({{down.data(), kRows, kHidden},
                              part(weights, kTokens, kTopK),
                              part(row_index, kTokens, kTopK)},
                             {part(out, kTokens, kHidden)}, {}, executor));
    return status;
  }
};

template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

bool Report(const char* way, const Status& status, const Layer& layer,
            const Layer& expected) {
  const bool same = SameBits(layer.ids, expected.ids) &&
                    SameBits(layer.weights, expected.weights) &&
                    SameBits(layer.row_index, expected.row_index) &&
                    SameBits(layer.gathered, expected.gathered) &&
                    SameBits(layer.activated, expected.activated) &&
                    SameBits(layer.out, expected.out);
  std::printf("%-20s %s\n", way,
              !status.ok() ? status.message()
              : same       ? "same bits as one thread"
                           : "OTHER BITS than one thread");
  return status.ok() && same;
}

int Run(int argc, char** argv) {
  size_t num_threads = 4;
  CLI::App app(
      "Runs what surrounds the GEMMs of one MoE layer on an engine's own "
      "threads, in\nthree ways, and compares each with one thread, bit by bit.",
      "engine_loop");
  app.add_option("threads", num_threads, "The engine's threads")
      ->capture_default_str()
      ->check(program::Within(1, 1024))
      ->type_name("N");
  if (!program::Parse(app, argc, argv)) return 0;

  Layer expected;
  const Status serial = expected.Run({}, switchyard::SerialExecutor());
  std::printf("%-20s %s\n", "one thread",
              serial.ok() ? switchyard::ActiveIsa().name : serial.message());
  bool good = serial.ok();

  Layer shared;  // way 1: a thread takes its share of the rows
  Barrier barrier(num_threads);
  const auto member = [&](size_t i) {
    const auto wait = [](void* b) { static_cast<Barrier*>(b)->Wait(); };
    return Team{i, num_threads, wait, &barrier};
  };
  shared.scratch.resize(
      switchyard::BucketScratchSize(Layer::kRows, Layer::kExperts, member(0)));
  std::vector<Status> statuses(num_threads);
  RunOnAll(num_threads, [&](size_t i) {
    statuses[i] = shared.Run(member(i), switchyard::SerialExecutor());
  });
  Status first_error;
  for (const Status& status : statuses) {
    if (first_error.ok()) first_error = status;
  }
  good = Report("own thread loop", first_error, shared, expected) && good;

  Layer lent;  // way 2: one call for all rows
  EngineExecutor executor(num_threads);
  lent.scratch.resize(
      switchyard::BucketScratchSize(Layer::kRows, Layer::kExperts, executor));
  const Status status = lent.Run({}, executor);
  good = Report("lent threads", status, lent, expected) && good;

  Layer region;  // way 3: the same calls, within a region
  switchyard::TeamExecutor team(num_threads, member(0).barrier, &barrier);
  region.scratch.resize(
      switchyard::BucketScratchSize(Layer::kRows, Layer::kExperts, team));
  Status region_status;
  RunOnAll(num_threads, [&](size_t i) {
    team.Run(i, [&] { region_status = region.Run({}, team); });
  });
  good = Report("threads of a region", region_status, region, expected) && good;
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return program::RunMain("engine_loop", 1, [=] { return Run(argc, argv); });
}
