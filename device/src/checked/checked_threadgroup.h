// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A threadgroup in checked mode: its views, its memory, and its position.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_CHECKED_THREADGROUP_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_CHECKED_THREADGROUP_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/src/checked/checker.h"
#include "device/src/checked/races.h"
#include "device/src/core/checked_fibers.h"
#include "device/src/core/fiber.h"
#include "device/src/core/grid_runner.h"
#include "device/src/core/running_dispatch.h"
#include "switchyard/device/kernel.h"

namespace switchyard::device::kernel_internal {

// The number of accesses that waiting loops may make while no threadgroup
// makes progress. A loop with a limit of its own reaches its limit long before
// this one.
constexpr size_t kMostWaits = size_t{1} << 22;

// The values of View::kind.
enum ViewKind : uint8_t { kBufferView, kMemoryView, kArrayView };

class CheckedThreadgroup final : public RunningThread, public CheckedFibers {
 public:
  explicit CheckedThreadgroup(Checker& checker);
  ~CheckedThreadgroup() = default;

  // Sets the dispatch of the threadgroups that Begin() starts from now on.
  void BeginDispatch(const RunningDispatch& running);
  void Begin(const Size& position, size_t index);
  // Call this when the threadgroup's kernel has returned.
  void End() { Settle(); }
  // Starts `function` on a fiber, or continues it, until the next barrier or
  // GiveWay(). Returns true if the function has returned.
  bool Resume(const std::function<void()>& function);
  // If the threadgroup has stopped at GiveWay(), returns the number of
  // accesses that its waiting loops have made since the last GiveWay();
  // otherwise 0.
  size_t waits() const { return waits_; }
  // Makes GiveWay() return false from now on.
  void EndWaits() { waits_ended_ = true; }
  // Ends a function that waits at a barrier: the barrier throws an exception.
  void Cancel();
  void* local_memory() { return local_; }
  bool list_is_full() const { return checker_.list_is_full(); }

  static CheckedThreadgroup& From(RunningThread& thread) {
    return static_cast<CheckedThreadgroup&>(thread);
  }
  static CheckedThreadgroup& From(const ThreadgroupContext& context) {
    return From(*context.thread_);
  }
  // The functions of kernel.h. views.cc defines the functions that return
  // memory, and meetings.cc defines the functions in which threads meet.
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
  // Fail() and FailThread() add a finding with the text "threadgroup (..): " +
  // what, and throw an exception that ends the threadgroup. FailThread() is
  // for findings about the current thread, Fail() for findings about several
  // threads.
  [[noreturn]] void Fail(FindingKind kind, const std::string& what,
                         const std::string& help = std::string());
  [[noreturn]] void FailThread(FindingKind kind, const std::string& what,
                               const std::string& help = std::string(),
                               uint64_t piece = 0);
  static std::string NameOf(const View& view);
  static std::string ElementOf(const View& view, ptrdiff_t offset, size_t size);
  static std::string LengthOf(const View& view, size_t size);

  // The functions of CheckedFibers, which documents them; fibers.cc defines
  // them.
  void Begin(size_t threads, const Places* places) override;
  const uint16_t* Order() override;
  void SwitchTo(size_t thread) override;
  void Access(const View& view, ptrdiff_t offset, size_t size, uint32_t kind,
              const void* where) override;
  void Fence(uint32_t kind) override;
  void ReportMisaligned(const View& view, ptrdiff_t offset, size_t alignment,
                        const void* where) override;
  bool IsResident(const void* address, size_t size) const override {
    return checker_.IsResident(address, size);
  }
  void Describe(const View& view, const char* name,
                size_t element_bytes) override;
  void ThreadgroupBarrier(uint32_t flags) override;
  bool GiveWay(size_t accesses) override;
  void SimdgroupBarrier(size_t simdgroup, uint32_t lanes,
                        uint32_t flags) override;
  void SimdFunction(size_t simdgroup, uint32_t lanes) override;
  void Report(FindingKind kind, size_t thread, const void* where,
              const void* other, const std::string& text,
              const std::string& help) override;
  [[noreturn]] void EndThreadgroup(FindingKind kind, size_t thread,
                                   const void* where, const void* other,
                                   const std::string& text,
                                   const std::string& help) override;

 private:
  struct Element {
    ptrdiff_t offset;
    size_t size;
    uint32_t kind;  // a value of AccessKind
  };
  // A write that is part of a race. The new value is not known until the
  // write has happened, so it is read when the checker is called next.
  struct Pending {
    const View* view = nullptr;  // null if no write is pending
    Element element = {};
    Conflict conflict;
    uint64_t stamp = 0;
    const void* where = nullptr;
    unsigned char before[64];
  };
  // An access and the earlier access that it conflicts with.
  struct Clash {
    const View& view;
    Element element;
    const Conflict& conflict;
    uint64_t stamp;
    const void* where;
  };

  void CheckWord(const View& view, size_t at, const Element& element,
                 uint32_t bytes, bool must_be_written);
  void CheckWords(const View& view, const Element& element);
  bool IsFresh(const View& view, size_t at, size_t size, uint32_t bytes) const;
  uint32_t WrittenBytes(const View& view, uintptr_t address) const;
  void NotePartWritten(const View& view, uintptr_t address, uint32_t bytes);
  bool TryFastAccess(const View& view, ptrdiff_t offset, size_t size,
                     uint32_t kind, const void* code);
  bool TryFastAccessOfHalf(const View& view, uintptr_t address, uint32_t kind,
                           const void* code);
  bool TryFastNote(const View& view, Cell* cell, uint64_t bytes, uint32_t kind,
                   const void* code);

  // report.cc defines the functions of this group. Note() adds each finding
  // only once, and throws if the list is full.
  void Note(const FindingList::Key& key, const Checker::Other& other,
            Finding finding, bool may_throw, bool weak = false);
  [[noreturn]] void ThrowEnd();
  std::string Who(size_t thread) const;
  static const char* Verb(uint32_t kind);
  static std::string Access(const View& view, const Element& element,
                            const Place& place);
  static uint64_t PieceOf(const View& view) {
    return uint64_t{view.kind} << 32 | view.index;
  }
  // If this is a read of an element that lies in a bound buffer, but before
  // the bound offset, reports the read and returns true. The caller then does
  // not check the element's bytes.
  bool IsBeforeOffset(const View& view, const Element& element);
  [[noreturn]] void FailBounds(const View& view, const Element& element);
  void NoteNeverWritten(const View& view, const Element& element);
  void NoteConflict(const View& view, const Element& element,
                    const Conflict& conflict);
  FindingKind KindOf(const Clash& clash, const Meetings::Skipped** skipped,
                     bool* simdgroups) const;
  void NoteClash(const Clash& clash, bool same_value, bool may_throw);
  void Settle();
  void SettleOrEnd();

  void NewPhase(uint32_t flags);
  size_t Simdgroups() const { return (fibers_ + kSimdWidth - 1) / kSimdWidth; }
  static void SetEpoch(Space& space, const Meetings& meetings) {
    space.stamp = (space.stamp & ~kEpoch) | uint64_t{meetings.now}
                                                << kEpochShift;
  }
  // Notes that `lanes` of the simdgroup have met; UINT32_MAX stands for all
  // its lanes.
  void Meet(size_t simdgroup, uint32_t lanes, bool barrier, uint32_t flags);
  // Lets other threadgroups run.
  void TakeTurns();
  const View& LocalView(View& view, ViewKind kind, size_t index, void* data,
                        size_t length);
  const Meetings& MeetingsOf(const Space& space, size_t thread) const {
    const Meetings* const meetings =
        &space == &device ? device_meetings_ : local_meetings_;
    return meetings[fibers_ == 0 ? 0 : thread / kSimdWidth];
  }

  Checker& checker_;
  const RunningDispatch* running_ = nullptr;
  Size position_;
  size_t index_ = 0;
  uint32_t first_phase_ = 0;  // the first phase of this threadgroup
  size_t fibers_ = 0;  // the number of threads; 0 for kernels of kernel.h
  // One element for each simdgroup; kernels of kernel.h use only the first.
  Meetings device_meetings_[kMaxSimdgroups];
  Meetings local_meetings_[kMaxSimdgroups];
  Pending pending_;
  ThreadgroupFences fences_;
  View buffers_[kMaxBufferBindings];
  View memory_[kMaxThreadgroupMemoryBindings];
  View arrays_[kMaxThreadgroupArrays];
  // The cells of threadgroup memory, which work like Shadow's cells for
  // device memory.
  struct Free {
    void operator()(Cell* cells) const { std::free(cells); }
  };
  static constexpr size_t kLocalCells = kLocalBytes / 4 + kLocalBytes / 2;
  std::unique_ptr<Cell[], Free> local_cells_;
  // For each word of local_, written_ has a bit mask. It says which bytes were
  // written by accesses to a part of the word. written_ is used only if
  // parts_written_ is set.
  bool parts_written_ = false;
  uint8_t written_[kLocalBytes / 4] = {};
  std::vector<uint16_t> order_;
  // True for a kernel without checked code: then only its bindings are
  // checked. noted_ says which bindings the kernel has used in this dispatch:
  // noted_[i][0] for reads, noted_[i][1] for writes.
  bool opaque_ = false;
  bool noted_[kMaxBufferBindings][2] = {};
  std::unique_ptr<Fiber> fiber_;  // null without a schedule_seed
  bool cancelled_ = false;
  size_t waits_ = 0;
  size_t all_waits_ = 0;  // accesses of waiting loops since the last barrier
  bool waits_ended_ = false;
  alignas(kLocalAlignment) unsigned char local_[kLocalBytes];
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_CHECKED_THREADGROUP_H_
