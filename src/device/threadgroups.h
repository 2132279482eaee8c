// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_DEVICE_THREADGROUPS_H_
#define SWITCHYARD_SRC_DEVICE_THREADGROUPS_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "src/device/call.h"

namespace switchyard {
namespace device {

// Runs a kernel of the user's, threadgroup by threadgroup.
struct Threadgroups {
  static void Run(Call& call);

 private:
  explicit Threadgroups(const Call& c) : call(c) {}
  static void RunRange(const Threadgroups& threadgroups, size_t begin,
                       size_t end);
  void RunOne(const Size& position, void* local) const;
  void Fail(const char* what) const;

  const Call& call;
  mutable std::atomic<bool> failed{false};
  mutable std::mutex mutex;
  mutable std::string error;  // the first; guarded by mutex
};

}  // namespace device
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_DEVICE_THREADGROUPS_H_
