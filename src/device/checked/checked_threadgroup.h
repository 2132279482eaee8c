// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A threadgroup in checked mode: its views, its memory, and where it is.

#ifndef SWITCHYARD_SRC_DEVICE_CHECKED_CHECKED_THREADGROUP_H_
#define SWITCHYARD_SRC_DEVICE_CHECKED_CHECKED_THREADGROUP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/device/checked/checker.h"
#include "src/device/checked/fiber.h"
#include "src/device/checked/races.h"
#include "src/device/grid_runner.h"
#include "src/device/running_dispatch.h"
#include "switchyard/device/kernel.h"

namespace switchyard::device::kernel_internal {

// View::kind.
enum ViewKind : uint8_t { kBufferView, kMemoryView, kArrayView };

class CheckedThreadgroup : public RunningThread {
 public:
  explicit CheckedThreadgroup(Checker& checker);

  // Threadgroups that Begin() from here on belong to this dispatch.
  void BeginDispatch(const RunningDispatch& running);
  void Begin(const Size& position, size_t index);
  // Starts `function` on a stack of its own, or goes on with it, up to the next
  // barrier. Returns whether it has returned.
  bool Resume(const std::function<void()>& function);
  // Ends a function that waits at a barrier: the barrier throws.
  void Cancel();
  void* local_memory() { return local_; }

  static CheckedThreadgroup& Of(RunningThread& thread) {
    return static_cast<CheckedThreadgroup&>(thread);
  }
  static CheckedThreadgroup& Of(const ThreadgroupContext& context) {
    return Of(*context.thread_);
  }
  // What the functions of kernel.h do.
  const View& Buffer(const ThreadgroupContext& context, size_t index,
                     size_t alignment, bool only_reads);
  const View& Memory(const ThreadgroupContext& context, size_t index);
  const View& Array(const ThreadgroupContext& context, size_t length,
                    DeclaredArrays* arrays);
  void Params(const ThreadgroupContext& context, size_t index, size_t length,
              void* to);
  void NoteBinding(size_t index, bool only_reads, size_t length);
  void Check(const View& view, ptrdiff_t offset, size_t size, uint32_t kind);
  void Barrier(const Threads& threads, bool simdgroup, uint32_t flags);
  void SimdFunction();
  const uint16_t* OrderOfThreads(size_t count);
  // Throws "threadgroup (..), thread ..: what".
  [[noreturn]] void Fail(const std::string& what);
  [[noreturn]] void FailThread(const std::string& what);
  // The first text thrown since Begin(); the kernel may have caught it.
  const std::string& failure() const { return failure_; }
  static std::string NameOf(const View& view);
  static std::string ElementOf(const View& view, ptrdiff_t offset, size_t size);

 private:
  struct Element {
    ptrdiff_t offset;
    size_t size;
    uint32_t kind;  // AccessKind
  };
  [[noreturn]] void Throw(const std::string& text);
  bool IsFresh(const View& view, size_t at) const;
  void CheckWord(const View& view, size_t at, const Element& element,
                 uint64_t bytes, bool must_be_written);
  [[noreturn]] void FailConflict(const View& view, const Element& element,
                                 uint64_t last, bool last_was_read);
  void NewPhase(uint32_t flags);
  const View& LocalView(View& view, ViewKind kind, size_t index, void* data,
                        size_t length);
  uint32_t BarrierEpoch(const Space& space) const {
    return &space == &device ? device_barrier_epoch_ : local_barrier_epoch_;
  }

  Checker& checker_;
  std::string failure_;
  const RunningDispatch* running_ = nullptr;
  Size position_;
  size_t index_ = 0;
  uint32_t first_phase_ = 0;  // of this threadgroup
  uint32_t device_barrier_epoch_ = 0;
  uint32_t local_barrier_epoch_ = 0;
  View buffers_[kMaxBufferBindings];
  View memory_[kMaxThreadgroupMemoryBindings];
  View arrays_[kMaxThreadgroupArrays];
  std::vector<Cell> local_cells_;
  std::vector<uint16_t> order_;
  // A kernel of which only the bindings are known, and those it has asked for
  // in this dispatch: to read [0] and to write [1].
  bool opaque_ = false;
  bool noted_[kMaxBufferBindings][2] = {};
  std::unique_ptr<Fiber> fiber_;  // only with a schedule_seed
  bool cancelled_ = false;
  alignas(kLocalAlignment) unsigned char local_[kLocalBytes];
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_SRC_DEVICE_CHECKED_CHECKED_THREADGROUP_H_
