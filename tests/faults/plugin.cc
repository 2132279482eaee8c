// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What plugin_test.cc loads: a shared object with the library in it.

#include "tests/faults/device_pass.h"
#include "tests/faults/layer.h"

namespace switchyard::testing_support {

// What is wrong, or null.
extern "C" const char* UseSwitchyard() {
  constexpr Shape kShape = {512, 64, 4, 96};
  Layer layer(kShape, 1);
  const uint64_t expected = layer.Expected();
  const auto executor = MakeTbbExecutor();
  if (executor != nullptr && !layer.IsRight(*executor, expected)) {
    return "kernels on TBB give other bits";
  }
  const DevicePass pass(kShape, 2);
  device::DeviceOptions options;
  if (pass.Run(options) != DevicePass::Outcome::kRight) {
    return "a device gives other results";
  }
  options.check_kernels = true;
  return DevicePass({32, 32, 2, 8}, 3).Run(options) ==
                 DevicePass::Outcome::kRight
             ? nullptr
             : "a checked device gives other results";
}

}  // namespace switchyard::testing_support
