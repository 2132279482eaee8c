// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Chooses the order in which checked mode runs a dispatch's threadgroups. All
// of them run on one OS thread, so that each run finds the same first
// mistake.

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include "device/src/checked/checked_threadgroup.h"
#include "device/src/checked/checker.h"
#include "device/src/core/grid_runner.h"
#include "src/base/fp_env.h"

namespace switchyard::device::kernel_internal {
namespace {

void RunOne(GridRunner& runner, CheckedThreadgroup& threadgroup,
            const Size& position) {
  runner.RunOne(position, threadgroup.local_memory(), &threadgroup);
  try {
    threadgroup.End();
  } catch (const std::exception& e) {
    // The exception says that memory ran out. It is not rethrown, because
    // this function may run on a fiber.
    runner.Fail(e.what());
  }
  // If the list of findings is full, the dispatch's error is the text of the
  // first finding.
  if (threadgroup.list_is_full()) runner.Fail("");
}

}  // namespace

void Checker::RunThreadgroups(GridRunner& runner, size_t count) {
  const InKernel in_kernel;
  const internal::DefaultFpEnv fp_env;
  // The destructor resets in_grid_ even if an exception leaves this function.
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
  CheckedThreadgroup::From(thread).NoteBinding(index, only_reads, length);
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

// Keeps up to 8 randomly drawn threadgroups in flight. In each turn one of
// them, drawn at random, runs until its next barrier. If all threadgroups in
// flight wait in loops, this also starts the first threadgroup of the grid
// that has not started, because in a scan each threadgroup waits for the
// earlier ones.
void Checker::RunShuffled(GridRunner& runner, size_t count) {
  constexpr size_t kInFlight = 8;
  constexpr size_t kMostInFlight = 64;
  // The grid is shuffled in blocks of this size, because the order of all its
  // threadgroups might not fit in memory.
  constexpr size_t kShuffled = size_t{1} << 16;
  std::vector<size_t> order;

  struct Running {
    CheckedThreadgroup* threadgroup = nullptr;
    Size position;
  };
  // The destructor cancels the remaining threadgroups after a failure or an
  // exception.
  struct Flight {
    Running running[kMostInFlight];
    size_t left = 0;
    size_t awake = 0;  // running[0] to running[awake - 1] wait in no loop
    ~Flight() {
      for (size_t i = 0; i < left; ++i) running[i].threadgroup->Cancel();
    }
  } flight;
  size_t started = 0;
  const auto start = [&](Running& slot, bool the_first) {
    if (started % kShuffled == 0) {
      order.resize(std::min(count - started, kShuffled));
      std::iota(order.begin(), order.end(), started);
      random_.Shuffle(order.data(), order.size());
    }
    size_t& drawn = order[started++ % kShuffled];
    if (the_first) {
      std::swap(drawn, *std::min_element(&drawn, order.data() + order.size()));
    }
    slot.position = runner.PositionOf(drawn);
    slot.threadgroup->Begin(slot.position, drawn);
  };
  const auto add = [&](bool the_first) {
    Running& slot = flight.running[flight.left];
    if (slot.threadgroup == nullptr) {
      slot.threadgroup = &Threadgroup(flight.left);
      slot.threadgroup->BeginDispatch(runner.running());
    }
    start(slot, the_first);
    std::swap(slot, flight.running[flight.awake++]);
    ++flight.left;
  };
  const size_t slots = std::min(count, kInFlight);
  while (flight.left != slots) add(false);
  // The number of accesses by waiting loops, and the number of turns, since a
  // threadgroup last made progress.
  size_t waits = 0, turns = 0;
  while (flight.left != 0 && !runner.failed()) {
    if (flight.awake == 0) {
      if (started < count && flight.left < kMostInFlight) {
        add(true);
      } else {
        flight.awake = flight.left;
        // One turn may run many waiting threads, so a few turns can make more
        // than kMostWaits accesses.
        constexpr size_t kMostTurns = 256;
        if (++turns > kMostTurns && waits > kMostWaits) {
          flight.running[0].threadgroup->EndWaits();
        }
      }
    }
    Running& next = flight.running[random_.Below(flight.awake)];
    const bool returned = next.threadgroup->Resume([&runner, &next] {
      // Reads the slot `next` before the threadgroup runs, because the slot's
      // contents move when another threadgroup returns.
      CheckedThreadgroup& threadgroup = *next.threadgroup;
      const Size position = next.position;
      RunOne(runner, threadgroup, position);
    });
    if (next.threadgroup->waits() != 0) {
      waits += next.threadgroup->waits();
      std::swap(next, flight.running[--flight.awake]);
      continue;
    }
    waits = turns = 0;
    if (returned && started < count && flight.left <= slots) {
      start(next, false);
    } else if (returned) {
      std::swap(next, flight.running[--flight.left]);
    }
    flight.awake = flight.left;
  }
}

}  // namespace switchyard::device::kernel_internal
