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

// Where each piece of threadgroup memory starts.
constexpr size_t kLocalAlignment = 64;
// Those that kernels declare.
constexpr size_t kMaxThreadgroupArrays = 32;
// All pieces may have to be padded.
constexpr size_t kLocalBytes =
    kMaxThreadgroupMemoryLength +
    (kMaxThreadgroupMemoryBindings + kMaxThreadgroupArrays) * kLocalAlignment;

// While one exists, the thread is in a kernel of the user's, where it must not
// wait for command buffers: its own would never end, and another's would call
// the executor inside one of its bodies.
class InKernel {
 public:
  InKernel() : outer_(Here()) { Here() = true; }
  ~InKernel() { Here() = outer_; }
  static bool& Here();

 private:
  const bool outer_;
};

// Runs a kernel of the user's, threadgroup by threadgroup.
struct Threadgroups {
  static void Run(Call& call);

 private:
  explicit Threadgroups(const Call& c) : call(c) {}
  static void RunRange(const Threadgroups& threadgroups, size_t begin,
                       size_t end);
  // `state` is null where nothing is checked.
  void RunOne(const Size& position, void* local,
              kernel_internal::ThreadgroupState* state) const;
  // One after the other on this thread, or taking turns.
  void RunChecked(size_t count) const;
  void RunInOrder(size_t count) const;
  void RunShuffled(size_t count) const;
  Size PositionOf(size_t index) const;
  void Fail(const char* what) const;

  const Call& call;
  mutable std::atomic<bool> failed{false};
  mutable std::mutex mutex;
  mutable std::string error;  // the first; guarded by mutex
};

}  // namespace device
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_DEVICE_THREADGROUPS_H_
