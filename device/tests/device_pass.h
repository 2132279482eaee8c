// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs a command buffer of built-in kernels and one user kernel, and checks
// the results. This file does not use GoogleTest, because some programs that
// include it are not tests.

#ifndef SWITCHYARD_DEVICE_TESTS_DEVICE_PASS_H_
#define SWITCHYARD_DEVICE_TESTS_DEVICE_PASS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "tests/faults/layer.h"

namespace switchyard::testing_support {

class DevicePass {
 public:
  // Draws the values of a Layer (tests/faults/layer.h) from the seed.
  DevicePass(const Shape& shape, uint64_t seed);

  enum class Outcome {
    kRight,
    kRefused,  // a pointer was null, or a command buffer had an error
    kWrong,    // the buffers completed, but with wrong results
  };
  // Returns a kernel that reverses the words of a threadgroup, through
  // threadgroup memory.
  static device::KernelFunction Reverse();

  // Routes tokens, sorts the pairs of token and expert by expert, and
  // reverses the experts' counts within each threadgroup. Run() itself
  // allocates no memory.
  Outcome Run(device::Device& device, device::CommandQueue& queue,
              device::KernelFunction reverse) const noexcept;
  // Calls Run() with a new device and a new queue.
  Outcome Run(const device::DeviceOptions& options,
              device::KernelFunction reverse) const noexcept;
  Outcome Run(const device::DeviceOptions& options) const {
    return Run(options, Reverse());
  }

 private:
  const Shape shape_;
  const size_t pairs_;
  Layer layer_;
  std::vector<uint32_t> reversed_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_DEVICE_PASS_H_
