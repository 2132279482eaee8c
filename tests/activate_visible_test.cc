// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Activate's results are visible to its caller when it returns, however little
// the executor does at its end: stores past the caches, which x86 does not
// order with others, are fenced on the thread that made them.

#include <atomic>
#include <cstring>
#include <sstream>
#include <thread>

#include "tests/activate_case.h"
#include "tests/row_types.h"

namespace switchyard::testing_support {
namespace {

// Hands every call to one thread and takes it back by a release store: the
// least that a pool may do. (A lock or a system call would fence by chance.)
class RelayExecutor final : public Executor {
 public:
  RelayExecutor() : thread_([this] { Work(); }) {}
  ~RelayExecutor() override {
    turn_.store(kEnd, std::memory_order_release);
    thread_.join();
  }
  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    count_ = count;
    body_ = body;
    context_ = context;
    turn_.store(kThread, std::memory_order_release);
    while (Await(kThread) != kCaller) {
    }
    return Status();
  }

 private:
  enum Turn { kCaller, kThread, kEnd };

  // The turn when it is another's, or the same one after a while.
  Turn Await(Turn turn) const {
    for (int i = 0; i < 20000; ++i) {
      const Turn now = turn_.load(std::memory_order_acquire);
      if (now != turn) return now;
    }
    std::this_thread::yield();  // the other may want this core
    return turn;
  }
  void Work() {
    for (Turn turn = kCaller; turn != kEnd; turn = Await(kCaller)) {
      if (turn != kThread) continue;
      body_(context_, 1, 0, count_);
      turn_.store(kCaller, std::memory_order_release);
    }
  }

  std::atomic<Turn> turn_{kCaller};
  size_t count_ = 0;
  Body body_ = nullptr;
  void* context_ = nullptr;
  std::thread thread_;  // last: it uses the others
};

class ActivateVisibleTest : public IsaTest {
 protected:
  // Counts the calls of one form that return before what they wrote in the last
  // rows of `out` is visible, and remembers the first form that has any.
  void CountEarlyReturns(const std::string& name, const ActivateInputs& in,
                         const AnyMatrix& out, ActivateOptions options,
                         size_t calls) {
    const size_t rows = std::min<size_t>(out.rows, 16);
    const AnyMatrix last = out.RowRange(out.rows - rows, out.rows);
    const size_t bytes =
        ((rows - 1) * out.stride + out.cols) * SizeOf(out.type);
    const ActivateStores stores = options.stores;
    options.stores = ActivateStores::kCached;
    std::memset(last.data, 0xA5, bytes);
    EXPECT_OK(Activate(in, {out}, options));
    std::vector<uint8_t> wanted(bytes), seen(bytes);
    std::memcpy(wanted.data(), last.data, bytes);
    options.stores = stores;
    for (size_t i = 0; i < calls; ++i) {
      std::memset(last.data, 0xA5, bytes);
      EXPECT_OK(Activate(in, {out}, options, executor_));
      std::memcpy(seen.data(), last.data, bytes);
      ++calls_;
      if (seen == wanted) continue;
      if (early_++ == 0) first_ = name;
    }
  }
  void ExpectNoneWasEarly() const {
    EXPECT_EQ(early_, 0u) << "of " << calls_
                          << " calls, the first one: " << first_;
  }

  RelayExecutor executor_;
  size_t calls_ = 0, early_ = 0;
  std::string first_;
};
SWITCHYARD_FOR_EVERY_ISA(ActivateVisibleTest);

struct Form {
  const char* name;
  ActivateOptions options;
  bool scaled = false, biased = false;
};
// Every way through the kernels: each activation in each layout that it has,
// and SiLU with whatever else there is.
std::vector<Form> Forms() {
  std::vector<Form> forms;
  for (const Activation activation : kActivations) {
    ActivateOptions options = Plain(activation);
    forms.push_back({"split", options});
    options.layout = GateUpLayout::kConcatenated;
    forms.push_back({"concatenated", options});
    options.layout = GateUpLayout::kInterleaved;
    forms.push_back({"interleaved", options});
    options.layout = GateUpLayout::kUngated;
    if (IsOfGate(activation)) forms.push_back({"ungated", options});
  }
  ActivateOptions options;
  forms.push_back({"scaled", options, true});
  forms.push_back({"biased", options, false, true});
  options.limit = 3.0f;
  forms.push_back({"limit before", options});
  options.limit_place = ActivatePlace::kAfter;
  forms.push_back({"limit after", options});
  options = {};
  options.round_like_unfused = true;
  forms.push_back({"unfused", options});
  return forms;
}

TEST_P(ActivateVisibleTest, AfterEveryForm) {
  constexpr size_t kRows = 2, kMost = 56;
  const std::vector<float> gate =
      Random(1).Uniforms(kRows * 2 * kMost, -9.0f, 9.0f);
  const std::vector<float> scale = {0.5f, 2.0f};
  // All forms write here: a late store into freed memory would be another's.
  std::vector<float> memory(kRows * kMost);
  size_t form_number = 0;
  for (Form form : Forms()) {
    ++form_number;
    for (const InOut& types : EveryInOut()) {
      Stored gates(types.in, gate), ups(types.in, gate);
      for (size_t cols = 8; cols <= kMost; ++cols) {
        if (cols % 4 != form_number % 4) continue;
        const GateUpLayout layout = form.options.layout;
        const bool both = layout == GateUpLayout::kConcatenated ||
                          layout == GateUpLayout::kInterleaved;
        const size_t gate_cols = both ? 2 * cols : cols;
        ActivateInputs in = {gates.View(kRows, gate_cols)};
        if (layout == GateUpLayout::kSplit) in.up = ups.View(kRows, cols);
        if (form.scaled) in.row_scale = {scale.data(), kRows, 1};
        if (form.biased) in.gate_bias = {gate.data(), 1, gate_cols};
        const AnyMatrix out = {static_cast<void*>(memory.data()), types.out,
                               kRows, cols, cols};
        form.options.stores = ActivateStores::kStreaming;
        std::ostringstream name;
        name << form.name << ", activation "
             << static_cast<int>(form.options.activation) << ", " << types
             << ", " << cols << " cols";
        CountEarlyReturns(name.str(), in, out, form.options, 8);
      }
    }
  }
  ExpectNoneWasEarly();
}

// Outputs that are so large that Activate streams of its own accord, of which
// only the last rows are an expert's: all of them would take 10 ms, by when a
// caller that shares its core is elsewhere. A row ends with half a cache line,
// and nothing is stored to the other half, which would write it to memory.
TEST_P(ActivateVisibleTest, AfterLargeOutputs) {
  constexpr size_t kCols = 280, kStride = 288, kComputed = 2;
  constexpr size_t kRows = kActivateStreamingBytes / (3 * 4 * kCols) + 1;
  const std::vector<float> gate(kRows * kCols, 1.5f);
  std::vector<float> memory((kRows + 1) * kStride);
  const size_t past = reinterpret_cast<uintptr_t>(memory.data()) / 4 % 16;
  const AnyMatrix out = {memory.data() + (16 - past), kRows, kCols, kStride};
  const int32_t offsets[] = {static_cast<int32_t>(kRows - kComputed),
                             static_cast<int32_t>(kRows)};
  for (const Activation activation : kActivations) {
    const ConstAnyMatrix view = {gate.data(), kRows, kCols};
    ActivateInputs in = {view, view};
    in.offsets = {offsets, 2};
    CountEarlyReturns(
        "activation " + std::to_string(static_cast<int>(activation)), in, out,
        Plain(activation), 300);
  }
  ExpectNoneWasEarly();
}

}  // namespace
}  // namespace switchyard::testing_support
