// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The order in which checked mode runs a dispatch's threadgroups: on one
// thread, so that each run finds the same first mistake.

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include "src/device/checked/checked_threadgroup.h"
#include "src/device/checked/checker.h"
#include "src/device/grid_runner.h"
#include "src/fp_env.h"

namespace switchyard::device::kernel_internal {
namespace {

void RunOne(GridRunner& runner, CheckedThreadgroup& threadgroup,
            const Size& position) {
  runner.RunOne(position, threadgroup.local_memory(), &threadgroup);
  try {
    threadgroup.End();
  } catch (const std::exception& e) {  // no memory: this may be a fiber
    runner.Fail(e.what());
  }
  // Nothing more is wanted: the text is that of the first finding.
  if (threadgroup.list_is_full()) runner.Fail("");
}

}  // namespace

void Checker::RunThreadgroups(GridRunner& runner, size_t count) {
  const InKernel in_kernel;
  const internal::DefaultFpEnv fp_env;
  // Also when memory is out.
  struct InGrid {
    bool& in_grid;
    explicit InGrid(bool& b) : in_grid(b) { in_grid = true; }
    ~InGrid() { in_grid = false; }
  } in_grid(in_grid_);
  const RunningDispatch& running = runner.running();
  for (size_t i = 0; i < running.dispatch.num_bindings; ++i) {
    const Binding& binding = running.bindings[i];
    if (binding.data != nullptr) shadow_.Cover(binding.data, binding.length);
  }
  if (seed_ == 0) {
    RunInOrder(runner, count);
    return;
  }
  RunShuffled(runner, count);
  if (runner.failed()) {
    runner.AddToError(" (schedule_seed " + std::to_string(seed_) + ")");
  }
}

void Checker::NoteBinding(RunningThread& thread, size_t index, bool only_reads,
                          size_t length) {
  CheckedThreadgroup::Of(thread).NoteBinding(index, only_reads, length);
}

CheckedThreadgroup& Checker::Threadgroup(size_t i) {
  while (threadgroups_.size() <= i) {
    threadgroups_.push_back(std::make_unique<CheckedThreadgroup>(*this));
  }
  return *threadgroups_[i];
}

void Checker::RunInOrder(GridRunner& runner, size_t count) {
  CheckedThreadgroup& threadgroup = Threadgroup(0);
  threadgroup.BeginDispatch(runner.running());
  for (size_t i = 0; i < count && !runner.failed(); ++i) {
    const Size position = runner.PositionOf(i);
    threadgroup.Begin(position, i);
    RunOne(runner, threadgroup, position);
  }
}

// Up to 8 threadgroups, drawn at random, are under way at a time. A turn, drawn
// at random too, goes to the next barrier.
void Checker::RunShuffled(GridRunner& runner, size_t count) {
  constexpr size_t kInFlight = 8;
  // So many are shuffled among themselves: a grid may have more threadgroups
  // than memory has room for.
  constexpr size_t kShuffled = size_t{1} << 16;
  std::vector<size_t> order;

  struct Running {
    CheckedThreadgroup* threadgroup;
    Size position;
  };
  // Ends those that are left when one has failed, or memory is out.
  struct Flight {
    Running running[kInFlight];
    size_t left = 0;
    ~Flight() {
      for (size_t i = 0; i < left; ++i) running[i].threadgroup->Cancel();
    }
  } flight;
  size_t started = 0;
  const auto start = [&](Running& slot) {
    if (started % kShuffled == 0) {
      order.resize(std::min(count - started, kShuffled));
      std::iota(order.begin(), order.end(), started);
      random_.Shuffle(order.data(), order.size());
    }
    const size_t index = order[started++ % kShuffled];
    slot.position = runner.PositionOf(index);
    slot.threadgroup->Begin(slot.position, index);
  };
  const size_t slots = std::min(count, kInFlight);
  for (size_t i = 0; i < slots; ++i) {
    flight.running[i].threadgroup = &Threadgroup(i);
    flight.running[i].threadgroup->BeginDispatch(runner.running());
    start(flight.running[i]);
    ++flight.left;
  }
  while (flight.left != 0 && !runner.failed()) {
    Running& next = flight.running[random_.Below(flight.left)];
    const bool returned = next.threadgroup->Resume([&runner, &next] {
      // Copies: what is in the slot moves when another threadgroup returns.
      CheckedThreadgroup& threadgroup = *next.threadgroup;
      const Size position = next.position;
      RunOne(runner, threadgroup, position);
    });
    if (!returned) continue;
    if (started < count) {
      start(next);
    } else {
      std::swap(next, flight.running[--flight.left]);
    }
  }
}

}  // namespace switchyard::device::kernel_internal
