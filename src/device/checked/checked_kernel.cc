// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What kernels in checked mode call: the functions that kernel.h and the
// headers under it declare.

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/device/checked/threadgroup_checker.h"
#include "switchyard/device/kernel.h"

namespace switchyard {
namespace device {
namespace kernel_internal {

void CalledInside(ThreadgroupState& state, const char* what) {
  ThreadgroupChecker::Of(state).FailThread(
      std::string(what) +
      " is called inside for_each_thread: all threads meet there, so the "
      "stretch has to end before it");
}
void NoteSimdFunction(ThreadgroupState& state) {
  if (state.inside) CalledInside(state, "a simd function");
  ThreadgroupChecker::Of(state).SimdFunction();
}
void LaneIsNotThere(ThreadgroupState& state, const char* function,
                    size_t simdgroup, size_t lane) {
  ThreadgroupChecker::Of(state).Fail(
      std::string(function) + ": lane " + std::to_string(lane) +
      " of simdgroup " + std::to_string(simdgroup) + " is not there");
}
void CheckAccess(const View& view, ptrdiff_t offset, size_t size,
                 uint32_t kind) {
  ThreadgroupChecker::Of(*view.state).Check(view, offset, size, kind);
}
void IndexOverflows(const View& view, size_t size) {
  ThreadgroupChecker::Of(*view.state)
      .FailThread("an index overflows: " + ThreadgroupChecker::NameOf(view) +
                  " has " + std::to_string(view.length / size) + " elements");
}
void NotAligned(const View& view, ptrdiff_t offset, size_t alignment) {
  ThreadgroupChecker::Of(*view.state)
      .FailThread("pointer_cast: " + ThreadgroupChecker::NameOf(view) +
                  ", byte " + std::to_string(offset) +
                  ", is not a multiple of " + std::to_string(alignment));
}
const View& BufferView(const ThreadgroupContext& context, size_t index,
                       size_t alignment, bool only_reads) {
  return ThreadgroupChecker::Of(context).Buffer(context, index, alignment,
                                                only_reads);
}
const View& MemoryView(const ThreadgroupContext& context, size_t index) {
  return ThreadgroupChecker::Of(context).Memory(context, index);
}
const View& ArrayView(const ThreadgroupContext& context, size_t length,
                      ThreadgroupArrays* arrays) {
  ThreadgroupChecker& checker = ThreadgroupChecker::Of(context);
  if (checker.inside) CalledInside(checker, "threadgroup_array");
  return checker.Array(context, length, arrays);
}
void CheckedParams(const ThreadgroupContext& context, size_t index,
                   size_t length, void* to) {
  ThreadgroupChecker::Of(context).Params(context, index, length, to);
}
void CheckedBarrier(ThreadgroupState& state, Threads& threads, bool simdgroup,
                    uint32_t flags) {
  if (state.inside) {
    CalledInside(state,
                 simdgroup ? "simdgroup_barrier" : "threadgroup_barrier");
  }
  ThreadgroupChecker::Of(state).Barrier(threads, simdgroup, flags);
}
const uint16_t* OrderOfThreads(ThreadgroupState& state, size_t count) {
  if (state.inside) CalledInside(state, "for_each_thread");
  state.inside = true;
  return ThreadgroupChecker::Of(state).OrderOfThreads(count);
}
void ThreadsDisagree(ThreadgroupState& state, size_t first, size_t second,
                     const std::string& values) {
  ThreadgroupChecker::Of(state).Fail(
      "threads disagree on a uniform() value: threads " +
      std::to_string(first) + " and " + std::to_string(second) +
      (values.empty() ? "" : " have " + values));
}

}  // namespace kernel_internal
}  // namespace device
}  // namespace switchyard
