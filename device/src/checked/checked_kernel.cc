// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The functions that kernels call in checked mode. kernel.h and the headers
// that it includes declare them.

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/src/checked/checked_threadgroup.h"
#include "switchyard/device/kernel.h"

namespace switchyard::device::kernel_internal {

void CalledInside(RunningThread& thread, const char* what) {
  CheckedThreadgroup::From(thread).FailThread(
      FindingKind::kMisuse,
      std::string(what) +
          " is called inside for_each_thread: all threads meet there, so the "
          "stretch has to end before it");
}
void NoteSimdFunction(RunningThread& thread) {
  if (thread.inside) CalledInside(thread, "a simd function");
  CheckedThreadgroup::From(thread).SimdFunction();
}
void LaneIsNotThere(RunningThread& thread, const char* function,
                    size_t simdgroup, size_t lane) {
  CheckedThreadgroup::From(thread).Fail(
      FindingKind::kDivergentSimd,
      std::string(function) + ": lane " + std::to_string(lane) +
          " of simdgroup " + std::to_string(simdgroup) + " does not exist");
}
void CheckAccess(const View& view, ptrdiff_t offset, size_t size,
                 uint32_t kind) {
  CheckedThreadgroup::From(*view.thread).Check(view, offset, size, kind);
}
void IndexOverflows(const View& view, size_t size) {
  CheckedThreadgroup::From(*view.thread)
      .FailThread(FindingKind::kBounds,
                  "an index overflows: " + CheckedThreadgroup::NameOf(view) +
                      " has " + std::to_string(view.length / size) +
                      " elements");
}
void NotAligned(const View& view, ptrdiff_t offset, size_t alignment) {
  CheckedThreadgroup::From(*view.thread)
      .FailThread(FindingKind::kMisuse,
                  "pointer_cast: " + CheckedThreadgroup::NameOf(view) +
                      ", byte " + std::to_string(offset) +
                      ", is not a multiple of " + std::to_string(alignment));
}
const View& BufferView(const ThreadgroupContext& context, size_t index,
                       size_t alignment, bool only_reads) {
  return CheckedThreadgroup::From(context).Buffer(context, index, alignment,
                                                  only_reads);
}
const View& MemoryView(const ThreadgroupContext& context, size_t index) {
  return CheckedThreadgroup::From(context).Memory(context, index);
}
const View& ArrayView(const ThreadgroupContext& context, size_t length,
                      DeclaredArrays* arrays) {
  CheckedThreadgroup& checker = CheckedThreadgroup::From(context);
  if (checker.inside) CalledInside(checker, "threadgroup_array");
  return checker.Array(context, length, arrays);
}
void CheckedParams(const ThreadgroupContext& context, size_t index,
                   size_t length, void* to) {
  CheckedThreadgroup::From(context).Params(context, index, length, to);
}
void CheckedBarrier(RunningThread& thread, Threads& threads, bool simdgroup,
                    uint32_t flags) {
  if (thread.inside) {
    CalledInside(thread,
                 simdgroup ? "simdgroup_barrier" : "threadgroup_barrier");
  }
  CheckedThreadgroup::From(thread).Barrier(threads, simdgroup, flags);
}
const uint16_t* OrderOfThreads(RunningThread& thread, size_t count) {
  if (thread.inside) CalledInside(thread, "for_each_thread");
  thread.inside = true;
  return CheckedThreadgroup::From(thread).OrderOfThreads(count);
}
void ThreadsDisagree(RunningThread& thread, size_t first, size_t second,
                     const std::string& values) {
  CheckedThreadgroup::From(thread).Fail(
      FindingKind::kDivergentBarrier,
      "threads disagree on a uniform() value: threads " +
          std::to_string(first) + " and " + std::to_string(second) +
          (values.empty() ? "" : " have " + values));
}

}  // namespace switchyard::device::kernel_internal
