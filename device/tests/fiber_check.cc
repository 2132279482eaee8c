// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests fibers that suspend themselves, continue each other, keep numbers in
// registers across switches, throw, and run again. This is a separate
// program, because `setup.sh aarch64` runs it, too: each architecture has its
// own code for the switch.

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "device/src/core/fiber.h"

using switchyard::device::Fiber;
using switchyard::device::switchyard_fiber_switch;

namespace {

constexpr size_t kFibers = 64, kSteps = 300;
using Fibers = std::vector<std::unique_ptr<Fiber>>;

// Takes 300 steps and calls `stop(steps)` after each.
template <class Stop>
double Walk(size_t self, const Stop& stop) {
  double sum = static_cast<double>(self);
  size_t steps = 0;
  while (steps < kSteps) {
    sum += 0.25;
    stop(++steps);
  }
  try {
    throw std::runtime_error("caught on the same stack");
  } catch (const std::exception&) {
    sum += 1;
  }
  return sum + static_cast<double>(steps);
}

bool Walked(const char* by, const std::vector<double>& results) {
  for (size_t i = 0; i < kFibers; ++i) {
    const double expected = static_cast<double>(i + kSteps) + kSteps / 4 + 1;
    if (results[i] == expected) continue;
    std::printf("%s: fiber %zu: %g instead of %g\n", by, i, results[i],
                expected);
    return false;
  }
  return true;
}

bool Resumes(const Fibers& fibers) {
  std::vector<double> results(kFibers);
  size_t running = 0;
  const std::function<void()> work = [&] {
    const size_t self = running;
    results[self] = Walk(self, [&](size_t) { fibers[self]->Suspend(); });
  };
  for (size_t resumed = kFibers; resumed != 0;) {
    resumed = 0;
    for (size_t i = 0; i < kFibers; ++i) {
      if (results[i] != 0) continue;
      running = i;
      fibers[i]->Resume(work);
      ++resumed;
      if (fibers[i]->running() == (results[i] != 0)) return false;
    }
  }
  return Walked("Resume", results);
}

// A ring of fibers. After every third step, a fiber continues the host. After
// the other steps, it continues the next fiber.
struct Ring {
  std::vector<double> results = std::vector<double>(kFibers);
  std::vector<void*> tops = std::vector<void*>(kFibers);
  void* host = nullptr;
  size_t running = 0;

  static void Run(void* ring) { static_cast<Ring*>(ring)->RunHere(); }
  void RunHere() {
    const size_t self = running;
    results[self] = Walk(self, [&](size_t steps) {
      const size_t next = self + 1;
      if (steps % 3 == 0 || next == kFibers || results[next] != 0) {
        switchyard_fiber_switch(&tops[self], host);
      } else {
        running = next;
        switchyard_fiber_switch(&tops[self], tops[next]);
      }
    });
    switchyard_fiber_switch(&tops[self], host);
  }
};

bool Switches(const Fibers& fibers) {
  Ring ring;
  for (size_t i = 0; i < kFibers; ++i) {
    ring.tops[i] = fibers[i]->Start(&Ring::Run, &ring);
  }
  for (size_t i = 0; i < kFibers; ++i) {
    while (ring.results[i] == 0) {
      ring.running = i;
      switchyard_fiber_switch(&ring.host, ring.tops[i]);
    }
  }
  return Walked("switch", ring.results);
}

}  // namespace

int main() {
  Fibers fibers;
  for (size_t i = 0; i < kFibers; ++i) {
    fibers.push_back(std::make_unique<Fiber>(size_t{128} << 10));
  }
  for (int round = 0; round < 2; ++round) {
    if (!Resumes(fibers)) return 1;
  }
  for (auto& fiber : fibers) fiber = std::make_unique<Fiber>(size_t{128} << 10);
  for (int round = 0; round < 2; ++round) {
    if (!Switches(fibers)) return 1;
  }
  return 0;
}
