// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <stdexcept>

#include "switchyard/kernel.h"

namespace switchyard {
namespace device {
namespace kernel_internal {
namespace {

// No device asks for checked kernels yet: nothing calls these.
[[noreturn]] void NotChecked() {
  throw std::logic_error("kernels are not checked");
}

}  // namespace

void NoteSimdFunction(ThreadgroupState&) { NotChecked(); }
void LaneIsNotThere(ThreadgroupState&, const char*, size_t, size_t) {
  NotChecked();
}
void CheckAccess(const View&, ptrdiff_t, size_t, uint32_t) { NotChecked(); }
void IndexOverflows(const View&, size_t) { NotChecked(); }
void NotAligned(const View&, ptrdiff_t, size_t) { NotChecked(); }
const View& BufferView(const ThreadgroupContext&, size_t, size_t, bool) {
  NotChecked();
}
const View& MemoryView(const ThreadgroupContext&, size_t) { NotChecked(); }
const View& ArrayView(const ThreadgroupContext&, size_t, ThreadgroupArrays*) {
  NotChecked();
}
void CheckedParams(const ThreadgroupContext&, size_t, size_t, void*) {
  NotChecked();
}
void CheckedBarrier(ThreadgroupState&, Threads&, bool, uint32_t) {
  NotChecked();
}
const uint16_t* OrderOfThreads(ThreadgroupState&, size_t) { NotChecked(); }
void ThreadsDisagree(ThreadgroupState&, size_t, size_t, const std::string&) {
  NotChecked();
}

}  // namespace kernel_internal
}  // namespace device
}  // namespace switchyard
