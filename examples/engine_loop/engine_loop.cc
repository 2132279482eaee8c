// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An engine that has its own threads can run Switchyard on them in two ways:
//   1. call the kernels from its own thread loop, each thread on its own rows;
//   2. lend its threads: derive from switchyard::Executor, once, and call each
//      kernel once for all rows.
// Both give the bits of a single thread. Usage: engine_loop [threads]

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "programs/program.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/route.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace {

using switchyard::AnyMatrix;
using switchyard::Executor;
using switchyard::Status;

// Stands for what an engine has: work(i) on each of its threads i, the caller
// being one of them. (Yours keeps the threads between calls.)
void RunOnAll(size_t num_threads, const std::function<void(size_t)>& work) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

// Way 2 needs this class; way 1 needs nothing.
class EngineExecutor final : public Executor {
 public:
  explicit EngineExecutor(size_t num_threads) : num_threads_(num_threads) {}

  size_t Concurrency() const noexcept override { return num_threads_; }

  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    if (count == 0) return Status();
    const size_t ranges = (count - 1) / grain + 1;
    if (ranges == 1) {  // not worth waking anybody
      body(context, 0, 0, count);
      return Status();
    }
    // Ranges are claimed: a thread that comes late takes fewer.
    std::atomic<size_t> next{0};
    RunOnAll(std::min(num_threads_, ranges), [&](size_t thread) {
      for (size_t i; (i = next.fetch_add(1)) < ranges;) {
        body(context, thread, i * grain, std::min(count, (i + 1) * grain));
      }
    });
    return Status();  // kInternal from a pool that can fail: nothing may throw
  }

 private:
  const size_t num_threads_;
};

// What is computed between the GEMMs of one MoE layer of Qwen3-30B-A3B's size.
struct Layer {
  static constexpr size_t kTokens = 250, kExperts = 128, kTopK = 8;
  static constexpr size_t kHidden = 2048, kIntermediate = 768;
  static constexpr size_t kRows = kTokens * kTopK;  // one per (token, expert)

  // What the GEMMs would have written: random numbers.
  std::vector<float> logits = Random(kTokens * kExperts);
  std::vector<float> gate_up = Random(kRows * 2 * kIntermediate);
  std::vector<float> down = Random(kRows * kHidden);
  // What the kernels write.
  std::vector<int32_t> ids = std::vector<int32_t>(kTokens * kTopK);
  std::vector<float> weights = std::vector<float>(kTokens * kTopK);
  std::vector<float> activated = std::vector<float>(kRows * kIntermediate);
  std::vector<float> out = std::vector<float>(kTokens * kHidden);

  static std::vector<float> Random(size_t n) {
    std::mt19937 rng(static_cast<uint32_t>(n));
    std::uniform_real_distribution<float> uniform(-4.0f, 4.0f);
    std::vector<float> values(n);
    for (float& x : values) x = uniform(rng);
    return values;
  }

  // Tokens [begin, end), by slices of rows: a token has one row, or kTopK.
  Status Run(size_t begin, size_t end, Executor& executor) {
    const auto slice = [&](auto& values, size_t rows, size_t cols) {
      return AnyMatrix(values.data(), rows, cols)
          .RowRange(begin * rows / kTokens, end * rows / kTokens);
    };
    const AnyMatrix my_ids = slice(ids, kTokens, kTopK);
    const AnyMatrix my_weights = slice(weights, kTokens, kTopK);
    Status status = switchyard::RouteTopK({slice(logits, kTokens, kExperts)},
                                          {my_ids, my_weights}, {}, executor);
    if (!status.ok()) return status;

    // ... the experts' gate and up GEMMs, fused: [rows, gate | up] ...
    status = switchyard::Activate({slice(gate_up, kRows, 2 * kIntermediate)},
                                  {slice(activated, kRows, kIntermediate)},
                                  {switchyard::Activation::kSilu,
                                   switchyard::GateUpLayout::kConcatenated},
                                  executor);
    if (!status.ok()) return status;

    // ... their down GEMMs ...
    return switchyard::Combine({slice(down, kRows, kHidden), my_weights},
                               {slice(out, kTokens, kHidden)}, {}, executor);
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
                    SameBits(layer.activated, expected.activated) &&
                    SameBits(layer.out, expected.out);
  std::printf("%-18s %s\n", way,
              !status.ok() ? status.message()
              : same       ? "same bits as one thread"
                           : "OTHER BITS than one thread");
  return status.ok() && same;
}

// The program's one argument. Throws InputError.
size_t ThreadsOf(int argc, char** argv) {
  if (argc < 2) return 4;
  if (argc > 2) {
    throw program::InputError(std::string("unexpected argument: ") + argv[2]);
  }
  char* end = nullptr;
  const long threads = std::strtol(argv[1], &end, 10);
  if (end == argv[1] || *end != '\0' || threads < 1 || threads > 1024) {
    throw program::InputError(
        "threads: expected a number from 1 to 1024, not '" +
        std::string(argv[1]) + "'");
  }
  return static_cast<size_t>(threads);
}

int Run(int argc, char** argv) {
  const size_t num_threads = ThreadsOf(argc, argv);
  program::RequireEnvironmentIsa();

  Layer expected;
  const Status serial =
      expected.Run(0, Layer::kTokens, switchyard::SerialExecutor());
  std::printf("%-18s %s\n", "one thread",
              serial.ok() ? switchyard::ActiveIsa().name : serial.message());
  bool good = serial.ok();

  Layer sliced;  // way 1: a thread takes its share of the tokens
  std::vector<Status> statuses(num_threads);
  RunOnAll(num_threads, [&](size_t i) {
    statuses[i] = sliced.Run(Layer::kTokens * i / num_threads,
                             Layer::kTokens * (i + 1) / num_threads,
                             switchyard::SerialExecutor());
  });
  Status first_error;
  for (const Status& status : statuses) {
    if (first_error.ok()) first_error = status;
  }
  good = Report("own thread loop", first_error, sliced, expected) && good;

  Layer lent;  // way 2: one call for all tokens
  EngineExecutor executor(num_threads);
  const Status status = lent.Run(0, Layer::kTokens, executor);
  good = Report("lent threads", status, lent, expected) && good;
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return program::RunMain("engine_loop", 1, [=] { return Run(argc, argv); });
}
