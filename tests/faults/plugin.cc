// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The plug-in that plugin_test.cc loads: a shared object that contains the
// library.

#include "tests/faults/layer.h"

#ifdef SWITCHYARD_WITH_DEVICE
#include "device/tests/device_pass.h"
#endif

namespace switchyard::testing_support {

// Returns an error text, or null.
extern "C" const char* UseSwitchyard() {
  constexpr Shape kShape = {512, 64, 4, 96};
  Layer layer(kShape, 1);
  const uint64_t expected = layer.Expected();
  const auto executor = MakeTbbExecutor();
  if (executor != nullptr && !layer.IsRight(*executor, expected)) {
    return "kernels on TBB give other bits";
  }
#ifdef SWITCHYARD_WITH_DEVICE
  const DevicePass pass(kShape, 2);
  device::DeviceOptions options;
  if (pass.Run(options) != DevicePass::Outcome::kRight) {
    return "a device gives other results";
  }
  options.check_kernels = true;
  if (DevicePass({32, 32, 2, 8}, 3).Run(options) !=
      DevicePass::Outcome::kRight) {
    return "a checked device gives other results";
  }
#endif  // SWITCHYARD_WITH_DEVICE
  return nullptr;
}

}  // namespace switchyard::testing_support
