// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A command buffer of built-in kernels and one of the user's, and whether what
// came out is right. No GoogleTest, as in layer.h.

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
  // The same arguments as Layer's.
  DevicePass(const Shape& shape, uint64_t seed);

  enum class Outcome {
    kRight,
    kRefused,  // a null pointer or a command buffer with an error
    kWrong,    // it claims to have completed, and the results are others
  };
  // Copies a threadgroup's words last first, through threadgroup memory.
  static device::KernelFunction Reverse();

  // Routes, sorts to experts and reverses the counts of tokens. Allocates
  // nothing itself.
  Outcome Run(device::Device& device, device::CommandQueue& queue,
              device::KernelFunction reverse) const noexcept;
  // The same on a device and a queue of its own.
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
