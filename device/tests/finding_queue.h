// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs kernels in checked mode and returns the findings.

#ifndef SWITCHYARD_DEVICE_TESTS_FINDING_QUEUE_H_
#define SWITCHYARD_DEVICE_TESTS_FINDING_QUEUE_H_

#include <memory>
#include <string>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "gtest/gtest.h"
#include "switchyard/device/findings.h"

namespace switchyard::testing_support {

struct CheckedOptions : DeviceOptions {
  CheckedOptions() { check_kernels = true; }
};

struct FindingQueue : CheckedQueue {
  std::shared_ptr<CommandBuffer> last;

  explicit FindingQueue(const DeviceOptions& options = CheckedOptions())
      : CheckedQueue(CreateDevice(options)) {}
  std::vector<Finding> Find(const Encode& encode,
                            DispatchType type = DispatchTypeSerial) {
    last = Encoded(*queue, encode, type);
    EXPECT_TRUE(last->findings().empty());
    last->commit();
    last->waitUntilCompleted();
    const std::vector<Finding> findings = last->findings();
    EXPECT_EQ(last->error(), findings.empty() ? "" : findings[0].text);
    return findings;
  }
  template <class Kernel>
  std::vector<Finding> Find(const char* name, const Kernel& kernel,
                            const std::vector<BufferPtr>& buffers,
                            size_t threadgroups, size_t threads) {
    return Find([&](Encoder& e) {
      Dispatch(e, name, kernel, buffers, threadgroups, threads);
    });
  }
};

inline std::vector<std::string> Kinds(const std::vector<Finding>& findings) {
  std::vector<std::string> kinds;
  for (const Finding& finding : findings) {
    kinds.push_back(NameOf(finding.kind));
  }
  return kinds;
}
using Strings = std::vector<std::string>;

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_FINDING_QUEUE_H_
