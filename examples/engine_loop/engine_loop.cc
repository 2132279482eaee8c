// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An engine with its own threads can run Switchyard on them in three ways:
//   1. Call kernels in the engine's thread loop. Each thread passes its rows.
//   2. Lend the threads: derive a class from switchyard::Executor. Call each
//      kernel once for all rows.
//   3. If all threads run one region (as with OpenMP) and have a barrier: share
//      a TeamExecutor. Thread 0 then calls each kernel once, as in way 2.
// All three ways give the same bits as a single thread.

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "programs/arguments.h"
#include "programs/program.h"
#include "switchyard/isa.h"
#include "switchyard/layer.h"
#include "switchyard/pieces.h"
#include "switchyard/route.h"
#include "switchyard/team_executor.h"

namespace {

using namespace switchyard;  // NOLINT(build/namespaces)

// Stands in for the engine's thread pool. Runs work(i) on each thread i,
// including the calling thread. (A real pool keeps its threads between calls.)
void RunOnAll(size_t num_threads, const std::function<void(size_t)>& work) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

// Way 2: lends the engine's threads to the library.
class EngineExecutor final : public Executor {
 public:
  explicit EngineExecutor(size_t num_threads) : num_threads_(num_threads) {}

  size_t Concurrency() const noexcept override { return num_threads_; }

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    SharedLoop loop(count, grain, num_threads_, body, context);
    const size_t workers = loop.pieces().workers();
    if (workers <= 1) {  // too little work to wake other threads
      loop.Run(0, 1, 0);
    } else {
      RunOnAll(workers,
               [&](size_t thread) { loop.Run(thread, workers, thread); });
    }
    // ParallelFor() must not throw. If the engine's pool fails, return
    // kInternal.
    return Status();
  }
  // By default, the library assumes that sharing work among threads costs 30
  // us. An engine with threads that spin between calls states a lower cost:
  //   size_t ForkNs() const noexcept override { return 3000; }

 private:
  const size_t num_threads_;
};

struct Layer {
  static constexpr size_t kTokens = 300, kExperts = 32, kTopK = 4;
  static constexpr size_t kHidden = 128, kInner = 48;

  std::vector<float> hidden = Random(kTokens * kHidden);
  std::vector<float> logits = Random(kTokens * kExperts);  // [tokens, experts]
  std::vector<float> gate_up = Random(kExperts * 2 * kInner * kHidden);
  std::vector<float> down = Random(kExperts * kHidden * kInner);
  std::vector<int32_t> ids = std::vector<int32_t>(kTokens * kTopK);
  std::vector<float> weights = std::vector<float>(kTokens * kTopK);
  std::vector<float> out = std::vector<float>(kTokens * kHidden);
  std::vector<int32_t> plan_memory, scratch;  // kept from call to call

  static std::vector<float> Random(size_t size) {
    std::mt19937 rng(static_cast<uint32_t>(size));
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    std::vector<float> values(size);
    for (float& x : values) x = uniform(rng);
    return values;
  }
  AnyMatrix Ids() { return {ids.data(), kTokens, kTopK}; }
  AnyMatrix Weights() { return {weights.data(), kTokens, kTopK}; }

  // Selects the experts of tokens [begin, end) and computes their weights.
  Status Route(size_t begin, size_t end, Executor& executor) {
    const AnyMatrix all(logits.data(), kTokens, kExperts);
    return RouteTopK(
        {all.RowRange(begin, end)},
        {Ids().RowRange(begin, end), Weights().RowRange(begin, end)}, {},
        executor);
  }

  // Computes a tile of one expert's product, on one thread. Put your GEMM here.
  Status Multiply(const ExpertTile& tile) const {
    const bool is_down = tile.product == ExpertProduct::kDown;
    const size_t in = tile.rows.cols, columns = is_down ? kHidden : 2 * kInner;
    const auto expert = static_cast<size_t>(tile.expert);
    const float* const matrix =
        &(is_down ? down : gate_up)[expert * columns * in];
    for (size_t r = 0; r < tile.rows.rows; ++r) {
      for (size_t c = 0; c < tile.out.cols; ++c) {
        const float* const w = matrix + (tile.first_column + c) * in;
        float sum = 0;
        for (size_t i = 0; i < in; ++i)
          sum += tile.rows.Row<float>(r)[i] * w[i];
        tile.out.Row<float>(r)[c] = sum;
      }
    }
    return Status();
  }

  // Computes out = hidden + the weighted sum of each token's experts.
  Status Experts(Executor& executor) {
    ExpertsPlanOptions shape;
    shape.num_experts = kExperts;
    shape.hidden = kHidden;
    shape.intermediate = kInner;
    shape.workers = executor.Concurrency();
    plan_memory.resize(ExpertsPlanSize(kTokens, kTopK, shape));
    ExpertsPlan plan;
    Status status = PlanExperts({Ids()}, {plan_memory, &plan}, shape, executor);
    if (!status.ok()) return status;

    ExpertsOptions options;
    options.activate = {Activation::kSilu, GateUpLayout::kConcatenated};
    scratch.resize(ExpertsScratchSize(plan, options, executor.Concurrency()));
    ExpertsInputs inputs;
    inputs.plan = &plan;
    inputs.hidden = AnyMatrix(hidden.data(), kTokens, kHidden);
    inputs.combine.topk_weights = Weights();
    inputs.combine.residual = {hidden.data(), kTokens, kHidden};
    inputs.scratch = scratch;
    return RunExperts(
        inputs, {{out.data(), kTokens, kHidden}}, options,
        [this](const ExpertTile& tile) { return Multiply(tile); }, executor);
  }

  Status Run(Executor& executor) {
    const Status status = Route(0, kTokens, executor);
    return status.ok() ? Experts(executor) : status;
  }
};

int Run(int argc, char** argv) {
  size_t num_threads = 4;
  CLI::App app(
      "Runs one MoE layer on an engine's own threads, in three ways, and "
      "compares\neach with one thread, bit by bit.",
      "engine_loop");
  app.add_option("threads", num_threads, "The engine's threads")
      ->capture_default_str()
      ->check(program::Within(1, 1024))
      ->type_name("N");
  if (!program::Parse(app, argc, argv)) return 0;

  Layer expected;
  Status status = expected.Run(SerialExecutor());
  std::printf("%-20s %s\n", "one thread",
              status.ok() ? ActiveIsa().name : status.message());
  bool good = status.ok();
  const auto report = [&](const char* way, const Layer& layer) {
    const bool same = layer.ids == expected.ids &&
                      layer.weights == expected.weights &&
                      layer.out == expected.out;
    std::printf("%-20s %s\n", way,
                !status.ok() ? status.message()
                : same       ? "same bits as one thread"
                             : "OTHER BITS than one thread");
    good = good && status.ok() && same;
  };

  Layer own;  // way 1
  std::vector<Status> statuses(num_threads);
  RunOnAll(num_threads, [&](size_t i) {
    const auto first = [&](size_t t) {
      return Layer::kTokens * t / num_threads;
    };
    statuses[i] = own.Route(first(i), first(i + 1), SerialExecutor());
  });
  for (const Status& s : statuses) good = good && s.ok();
  status = own.Experts(SerialExecutor());
  report("own thread loop", own);

  Layer lent;  // way 2
  EngineExecutor executor(num_threads);
  status = lent.Run(executor);
  report("lent threads", lent);

  Layer region;  // way 3
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, static_cast<unsigned>(num_threads));
  const auto wait = [](void* b) {
    pthread_barrier_wait(static_cast<pthread_barrier_t*>(b));
  };
  TeamExecutor team(num_threads, wait, &barrier);
  RunOnAll(num_threads,
           [&](size_t i) { team.Run(i, [&] { status = region.Run(team); }); });
  pthread_barrier_destroy(&barrier);
  report("threads of a region", region);
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return program::RunMain("engine_loop", 1, [=] { return Run(argc, argv); });
}
