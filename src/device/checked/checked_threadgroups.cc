// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Threadgroups of a dispatch in checked mode: on the thread that runs the
// queue, so that a run finds the same first mistake each time.

#include <algorithm>
#include <exception>
#include <vector>

#include "src/device/checked/checker.h"
#include "src/device/checked/threadgroup_checker.h"
#include "src/device/threadgroups.h"
#include "src/simd/fp_env.h"

namespace switchyard {
namespace device {

using kernel_internal::Checker;
using kernel_internal::ThreadgroupChecker;

Size Threadgroups::PositionOf(size_t index) const {
  const Size& grid = call.threadgroups;
  return Size(index % grid.width, index / grid.width % grid.height,
              index / grid.width / grid.height);
}

void Threadgroups::RunChecked(size_t count) const {
  const InKernel in_kernel;
  const simd::DefaultFpEnv fp_env;
  Checker& checker = *call.checker;
  checker.NewDispatch(call.bindings, call.dispatch.num_bindings);
  if (checker.seed() == 0) {
    RunInOrder(count);
    return;
  }
  RunShuffled(count);
  if (failed)
    error += " (schedule_seed " + std::to_string(checker.seed()) + ")";
}

void Threadgroups::RunInOrder(size_t count) const {
  ThreadgroupChecker& threadgroup = call.checker->threadgroup(0);
  threadgroup.BeginDispatch(call);
  for (size_t i = 0; i < count && !failed; ++i) {
    const Size position = PositionOf(i);
    threadgroup.Begin(position, i);
    RunOne(position, threadgroup.local_memory(), &threadgroup);
  }
}

// Up to 8 threadgroups, drawn at random, take turns at random: one goes on to
// its next barrier.
void Threadgroups::RunShuffled(size_t count) const {
  constexpr size_t kInFlight = 8;
  Checker& checker = *call.checker;
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  checker.random().Shuffle(order.data(), count);

  struct Running {
    ThreadgroupChecker* threadgroup;
    Size position;
  };
  // Those that are left unwind when one has failed, or memory is out.
  struct Flight {
    Running running[kInFlight];
    size_t left = 0;
    ~Flight() {
      for (size_t i = 0; i < left; ++i) running[i].threadgroup->Cancel();
    }
  } flight;
  size_t started = 0;
  const auto start = [&](Running& slot) {
    slot.position = PositionOf(order[started]);
    slot.threadgroup->Begin(slot.position, order[started++]);
  };
  const size_t slots = std::min(count, kInFlight);
  for (size_t i = 0; i < slots; ++i) {
    flight.running[i].threadgroup = &checker.threadgroup(i);
    flight.running[i].threadgroup->BeginDispatch(call);
    start(flight.running[i]);
    ++flight.left;
  }
  while (flight.left != 0 && !failed) {
    Running& next = flight.running[checker.random().Below(flight.left)];
    const bool returned = next.threadgroup->Resume([this, &next] {
      ThreadgroupChecker* const threadgroup = next.threadgroup;
      const Size position = next.position;
      RunOne(position, threadgroup->local_memory(), threadgroup);
    });
    if (!returned) continue;
    if (started < count) {
      start(next);
    } else {
      std::swap(next, flight.running[--flight.left]);
    }
  }
}

}  // namespace device
}  // namespace switchyard
