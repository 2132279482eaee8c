// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface by which a runner with one fiber per thread talks to checked
// mode, besides the views and CheckAccess() that kernel.h uses. It is defined
// in device/src/checked.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_CHECKED_FIBERS_H_
#define SWITCHYARD_DEVICE_SRC_CORE_CHECKED_FIBERS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "switchyard/device/findings.h"
#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

// Knows where in the source the code at an address is.
class Places {
 public:
  virtual ~Places() = default;
  // Called for findings only. A Place without a file where it is not known.
  virtual Place PlaceOf(const void* where) const = 0;
  // Whether the source itself says that such a finding there is none.
  virtual bool Allows(FindingKind, const Place&) const { return false; }
  // Whether it says so of races of the same value alone.
  virtual bool AllowSameValue() const { return false; }
};

// A threadgroup in checked mode, run by fibers: get it with Of(), call Begin(),
// then SwitchTo() whenever another thread goes on, Access() before each access,
// and the rest when threads have met.
//
// Functions that throw end the threadgroup: catch it on the fiber, leave the
// fiber for good, and rethrow it on the stack that KernelFunction::checked was
// called on, which passes it on. Access() and Report() return where the thread
// is to go on in spite of what was found.
class CheckedFibers {
 public:
  // Only in KernelFunction::checked.
  static CheckedFibers& Of(const ThreadgroupContext& context);

  // `threads` are about to start. `places` may be null, and has to stay until
  // the command buffer has completed: a later dispatch may race with this one.
  virtual void Begin(size_t threads, const Places* places) = 0;
  // The order in which to let threads run between two barriers; null: as they
  // are numbered. Another one with each call.
  virtual const uint16_t* Order() = 0;

  // Thread `thread` goes on: accesses are its.
  virtual void SwitchTo(size_t thread) = 0;
  // The view's bytes from `offset` on; kind is of AccessKind. `where` is the
  // address of the code, null where it is not known.
  virtual void Access(const kernel_internal::View& view, ptrdiff_t offset,
                      size_t size, uint32_t kind, const void* where) = 0;
  // A fence of device memory for all threadgroups: kAcquires, kReleases.
  virtual void Fence(uint32_t kind) = 0;
  // An access there is of a type that has to be at a multiple of `alignment`.
  virtual void ReportMisaligned(const kernel_internal::View& view,
                                ptrdiff_t offset, size_t alignment,
                                const void* where) = 0;
  // Whether the bytes lie in memory that the dispatch may reach without having
  // it bound: useResource(). Nothing else is known of it.
  virtual bool IsResident(const void* address, size_t size) const = 0;
  // How texts call a view, in the place of "threadgroup array 0", and the bytes
  // of its elements (0: as many as are touched at once). The name has to stay
  // until the threadgroup has ended.
  virtual void Describe(const kernel_internal::View& view, const char* name,
                        size_t element_bytes) = 0;

  // All threads that have not returned wait at a threadgroup_barrier with these
  // mem_flags. To be called on the stack that KernelFunction::checked was
  // called on: with a schedule_seed, other threadgroups run on this OS thread
  // before it returns. Follow it with SwitchTo().
  virtual void ThreadgroupBarrier(uint32_t flags) = 0;
  // Threads go round in loops until others write something, with so many
  // accesses since the last call, and all others of the threadgroup have come
  // as far as they can: other threadgroups may run, as at a barrier. Returns
  // false if none has come any further for long.
  virtual bool GiveWay(size_t accesses) = 0;
  // Lanes of a simdgroup have met at a simdgroup_barrier or in a simd function.
  // `lanes` has a bit for each that did, or has returned, or does not exist. If
  // some bits are missing, the others alone are ordered.
  virtual void SimdgroupBarrier(size_t simdgroup, uint32_t lanes,
                                uint32_t flags) = 0;
  virtual void SimdFunction(size_t simdgroup, uint32_t lanes) = 0;

  // Something that the runner itself has found. thread may be
  // Finding::kNoThread. Returns where the kernel goes on; EndThreadgroup() if
  // it cannot.
  virtual void Report(FindingKind kind, size_t thread, const void* where,
                      const void* other, const std::string& text,
                      const std::string& help) = 0;
  // The same, and throws.
  [[noreturn]] virtual void EndThreadgroup(FindingKind kind, size_t thread,
                                           const void* where, const void* other,
                                           const std::string& text,
                                           const std::string& help) = 0;

 protected:
  ~CheckedFibers() = default;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_CHECKED_FIBERS_H_
