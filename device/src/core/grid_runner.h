// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_DEVICE_SRC_CORE_GRID_RUNNER_H_
#define SWITCHYARD_DEVICE_SRC_CORE_GRID_RUNNER_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "device/src/core/queue_thread.h"
#include "device/src/core/running_dispatch.h"
#include "switchyard/device/device.h"
#include "switchyard/status.h"

namespace switchyard::device {

// The alignment of each piece of threadgroup memory.
constexpr size_t kLocalAlignment = 64;
// The number of arrays in threadgroup memory that a kernel may declare.
constexpr size_t kMaxThreadgroupArrays = 32;
// The size of a threadgroup's memory: it has room for all pieces at their
// largest sizes, each of them padded.
constexpr size_t kLocalBytes =
    kMaxThreadgroupMemoryLength +
    (kMaxThreadgroupMemoryBindings + kMaxThreadgroupArrays) * kLocalAlignment;

// While an InKernel exists, the thread runs a user's kernel and must not wait
// for command buffers. A wait for the kernel's own command buffer would never
// end. To run another command buffer, the thread would have to call the
// executor from inside one of the executor's tasks.
class InKernel {
 public:
  InKernel() : outer_(Here()) { Here() = true; }
  ~InKernel() { Here() = outer_; }
  static bool& Here();

 private:
  const AtWork at_work_;
  const bool outer_;
};

// Runs a user's kernel over its grid, one threadgroup at a time.
class GridRunner {
 public:
  // Runs the whole grid; a failure becomes the dispatch's error.
  static void Run(RunningDispatch& running);

  // Runs one threadgroup with kLocalBytes of `local` memory. `thread` is null
  // outside of checked mode.
  void RunOne(const Size& position, void* local,
              kernel_internal::RunningThread* thread);
  Size PositionOf(size_t index) const;
  // Records an error; only the first message is kept.
  void Fail(const char* what);
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // Appends to the error. Call this only after all threadgroups have ended.
  void AddToError(const std::string& text) { error_ += text; }

  const RunningDispatch& running() const { return running_; }

 private:
  explicit GridRunner(const RunningDispatch& running) : running_(running) {}
  Status RunAll(size_t count);
  // Takes threadgroups and runs them until the grid is finished.
  void RunWorker();
  void RunRange(size_t begin, size_t end, void* local);

  const RunningDispatch& running_;
  size_t count_ = 0;  // the number of threadgroups in the grid
  size_t taken_at_once_ = 0;
  // The first threadgroup that no worker has taken.
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::string error_;  // the first error; guarded by mutex_
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_GRID_RUNNER_H_
