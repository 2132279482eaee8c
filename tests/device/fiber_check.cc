// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Fibers that suspend, hand over to each other, keep numbers in registers
// across that, throw, and run again. A program of its own, which
// `setup.sh aarch64` runs as well: a switch is written for each architecture.

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "src/device/fiber.h"

using switchyard::device::Fiber;

int main() {
  constexpr size_t kFibers = 64, kSteps = 300;
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (size_t i = 0; i < kFibers; ++i) {
    fibers.push_back(std::make_unique<Fiber>(size_t{128} << 10));
  }
  std::vector<double> results(kFibers);
  size_t running = 0;
  const std::function<void()> work = [&] {
    const size_t self = running;
    double sum = static_cast<double>(self);
    size_t steps = 0;
    while (steps < kSteps) {
      ++steps;
      sum += 0.25;
      const size_t next = self + 1;
      if (steps % 3 == 0 && next < kFibers && fibers[next]->running()) {
        running = next;
        fibers[self]->HandOver(*fibers[next]);
      } else {
        fibers[self]->Suspend();
      }
    }
    try {
      throw std::runtime_error("caught on the same stack");
    } catch (const std::exception&) {
      sum += 1;
    }
    results[self] = sum + static_cast<double>(steps);
  };
  for (int round = 0; round < 2; ++round) {
    results.assign(kFibers, 0);
    for (size_t resumed = kFibers; resumed != 0;) {
      resumed = 0;
      for (size_t i = 0; i < kFibers; ++i) {
        if (results[i] != 0) continue;
        running = i;
        fibers[i]->Resume(work);
        ++resumed;
      }
    }
    for (size_t i = 0; i < kFibers; ++i) {
      const double expected = static_cast<double>(i + kSteps) + kSteps / 4 + 1;
      if (fibers[i]->running() || results[i] != expected) {
        std::printf("fiber %zu: %g instead of %g\n", i, results[i], expected);
        return 1;
      }
    }
  }
  return 0;
}
