// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface to checked mode for code that runs each thread of a
// threadgroup on its own fiber. It extends the views and CheckAccess() of
// kernel.h. device/src/checked implements it.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_CHECKED_FIBERS_H_
#define SWITCHYARD_DEVICE_SRC_CORE_CHECKED_FIBERS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "switchyard/device/findings.h"
#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

// Maps an address of code to its place in the source.
class Places {
 public:
  virtual ~Places() = default;
  // Returns the place of the code at `where`, or a Place without a file if
  // the address is not known. Only the code that reports a finding calls
  // this, so it may be slow.
  virtual Place PlaceOf(const void* where) const = 0;
  // True if an allow() comment in the source suppresses this finding.
  virtual bool Allows(FindingKind, const Place&) const { return false; }
  // True if the source has an allow() comment for races that write the same
  // value.
  virtual bool AllowSameValue() const { return false; }
};

// A threadgroup in checked mode whose threads run on fibers. Get it with
// From() and call Begin(). Then call SwitchTo() before another thread
// continues, Access() before each access, and a barrier function when threads
// have met.
//
// An exception from one of these functions ends the threadgroup. Catch it on
// the fiber, leave the fiber for good, and rethrow it on the stack that
// called KernelFunction::checked. Access() and Report() return if the thread
// can continue in spite of the finding.
class CheckedFibers {
 public:
  // Call this only in KernelFunction::checked.
  static CheckedFibers& From(const ThreadgroupContext& context);

  // Call this before the threadgroup's `threads` threads start. `places` may
  // be null. It must live until the command buffer has completed, because a
  // later dispatch may race with this one.
  virtual void Begin(size_t threads, const Places* places) = 0;
  // Returns the order in which threads run until the next barrier, or null if
  // they run in the order of their indices. Each call returns a new order.
  virtual const uint16_t* Order() = 0;

  // Call this when thread `thread` continues: checked mode attributes all
  // accesses to this thread until the next call.
  virtual void SwitchTo(size_t thread) = 0;
  // Call this before the thread accesses the `size` bytes at `offset` in the
  // view. `kind` is an AccessKind. `where` is the address of the code, or null
  // if it is not known.
  virtual void Access(const kernel_internal::View& view, ptrdiff_t offset,
                      size_t size, uint32_t kind, const void* where) = 0;
  // Call this when the current thread executes a fence of device memory that
  // orders its accesses for all threadgroups. `kind` is kAcquires, kReleases
  // or both.
  virtual void Fence(uint32_t kind) = 0;
  // Reports an access at `offset` that is not aligned: its type needs an
  // address that is divisible by `alignment`.
  virtual void ReportMisaligned(const kernel_internal::View& view,
                                ptrdiff_t offset, size_t alignment,
                                const void* where) = 0;
  // True if the bytes lie in memory that useResource() or useHeap() made
  // reachable without a binding. Checked mode knows nothing else about that
  // memory.
  virtual bool IsResident(const void* address, size_t size) const = 0;
  // Sets the name and the element size of a view for messages. Without a name,
  // messages say "threadgroup array 0". If `element_bytes` is 0, the size of
  // the reported access is the element size. The name must live until the
  // threadgroup has ended.
  virtual void Describe(const kernel_internal::View& view, const char* name,
                        size_t element_bytes) = 0;

  // Call this when all threads that have not returned wait at a
  // threadgroup_barrier with the mem_flags `flags`. Call it on the stack that
  // called KernelFunction::checked, because with a schedule_seed other
  // threadgroups run on this OS thread during the call. Call SwitchTo()
  // afterwards.
  virtual void ThreadgroupBarrier(uint32_t flags) = 0;
  // Lets other threadgroups run, as at a barrier. Call this when some threads
  // loop until another thread writes a value, and all other threads of the
  // threadgroup have come as far as they can. `accesses` counts the loops'
  // accesses since the last call. Returns false if no threadgroup has made
  // progress for long.
  virtual bool GiveWay(size_t accesses) = 0;
  // Call these when lanes of a simdgroup have met at a simdgroup_barrier or
  // in a simd function. `lanes` has a bit for each lane that has arrived, has
  // returned or does not exist. If bits are missing, the meeting orders only
  // the accesses of lanes with a bit.
  virtual void SimdgroupBarrier(size_t simdgroup, uint32_t lanes,
                                uint32_t flags) = 0;
  virtual void SimdFunction(size_t simdgroup, uint32_t lanes) = 0;

  // Adds a finding that the caller has detected. `thread` may be
  // Finding::kNoThread. Call Report() if the kernel can continue,
  // EndThreadgroup() if it cannot.
  virtual void Report(FindingKind kind, size_t thread, const void* where,
                      const void* other, const std::string& text,
                      const std::string& help) = 0;
  // Adds the finding and throws an exception that ends the threadgroup.
  [[noreturn]] virtual void EndThreadgroup(FindingKind kind, size_t thread,
                                           const void* where, const void* other,
                                           const std::string& text,
                                           const std::string& help) = 0;

 protected:
  ~CheckedFibers() = default;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_CHECKED_FIBERS_H_
