// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/checked/checker.h"

#include <cstring>

#include "src/device/checked/checked_threadgroup.h"
#include "src/device/pipeline.h"

namespace switchyard::device {
namespace kernel_internal {
namespace {

// So many bytes of cells are kept for the next command buffer: mapping and
// touching new ones takes as long as using them.
constexpr size_t kMaxKeptBytes = size_t{256} << 20;
// When numbers get this far, the next command buffer counts from 1 again.
constexpr uint32_t kManyPhases = uint32_t{1} << 30;

}  // namespace

Checker::Checker(uint64_t schedule_seed)
    : seed_(schedule_seed), random_(schedule_seed) {}
Checker::~Checker() = default;

void Checker::Begin(const Commands& commands) {
  commands_ = &commands;
  next_barrier_ = 0;
  random_ = Random(seed_);
  phases_.NewScope();
  // A phase of nobody's. memoryBarrier(resources) puts it in the place of the
  // one that wrote a word, so that the word is known to be written and no
  // access conflicts with it.
  first_phase_ = phases_.New(0, SIZE_MAX);
  phases_.NewScope();
}

void Checker::End() {
  commands_ = nullptr;
  if (shadow_.bytes() <= kMaxKeptBytes && phases_.next < kManyPhases) return;
  shadow_.Clear();
  if (phases_.next >= kManyPhases) {
    threadgroups_.clear();
    phases_ = Phases();
  }
}

void Checker::BeginDispatch(size_t index) {
  const std::vector<Dispatch>& dispatches = commands_->dispatches;
  dispatch_ = index;
  touch_phase_ = 0;
  if (dispatches[index].new_scope) phases_.NewScope();
  dispatches_overlap_ =
      !dispatches[index].new_scope ||
      (index + 1 < dispatches.size() && !dispatches[index + 1].new_scope);
  const std::vector<MemoryBarrier>& barriers = commands_->barriers;
  for (; next_barrier_ < barriers.size() &&
         barriers[next_barrier_].before_dispatch <= index;
       ++next_barrier_) {
    const MemoryBarrier& barrier = barriers[next_barrier_];
    const uint64_t written = uint64_t{first_phase_} << kPhaseShift;
    shadow_.ForEachCell(barrier.data, barrier.length, [&](Cell& cell) {
      cell.write = cell.write >> kPhaseShift < first_phase_ ? 0 : written;
      cell.read = 0;
    });
  }
}

std::string Checker::NameOf(uint32_t dispatch) const {
  return "dispatch " + std::to_string(dispatch) + " (" +
         commands_->dispatches[dispatch].pipeline->name + ")";
}

bool Checker::FindFresh(const Rows& rows, bool all, size_t* offset) const {
  bool found = false;
  for (size_t r = 0; r < rows.rows; ++r) {
    const unsigned char* const row =
        static_cast<const unsigned char*>(rows.data) + r * rows.stride_bytes;
    for (size_t i = 0; i + sizeof(uint32_t) <= rows.row_bytes;
         i += sizeof(uint32_t)) {
      uint32_t word;
      std::memcpy(&word, row + i, sizeof(word));
      if ((word == kNeverWritten) != all) {
        *offset = r * rows.stride_bytes + i;
        return !all;
      }
      found = found || all;
    }
  }
  *offset = 0;
  return found;
}

std::string Checker::Conflict(const char* what, size_t offset, bool write,
                              uint64_t last, bool last_was_read) const {
  const uint32_t other = phases_[PhaseOf(last)].dispatch;
  return std::string(write ? "writes " : "reads ") + what + "[" +
         std::to_string(offset / 4) + "], which " + NameOf(other) +
         (last_was_read ? " read" : " wrote") +
         ": memoryBarrier is missing between it and dispatch " +
         std::to_string(dispatch_);
}

std::string Checker::Touch(const char* what, const Rows& rows, bool write,
                           Fresh fresh) {
  if (rows.rows == 0 || rows.row_bytes == 0) return std::string();
  size_t offset = 0;
  if (fresh != Fresh::kIgnore &&
      FindFresh(rows, fresh == Fresh::kAllWords, &offset)) {
    return std::string("reads ") + what + "[" + std::to_string(offset / 4) +
           "], which nothing has written since newBuffer()";
  }
  if (!dispatches_overlap_) return std::string();
  if (touch_phase_ == 0) touch_phase_ = phases_.New(dispatch(), SIZE_MAX);
  const WordAccess access = {uint64_t{touch_phase_} << kPhaseShift | kAllBytes,
                             phases_.first,
                             0,
                             phases_,
                             {dispatch(), SIZE_MAX}};
  shadow_.Cover(rows.data,
                (rows.rows - 1) * rows.stride_bytes + rows.row_bytes);
  for (size_t r = 0; r < rows.rows; ++r) {
    const unsigned char* const row =
        static_cast<const unsigned char*>(rows.data) + r * rows.stride_bytes;
    std::string error;
    size_t word = 0;
    shadow_.ForEachCell(row, rows.row_bytes, [&](Cell& cell) {
      const size_t at = r * rows.stride_bytes + 4 * word++;
      if (!error.empty()) return;
      if (access.ConflictsWith(cell.write, false)) {
        error = Conflict(what, at, write, cell.write, false);
      } else if (write && access.ConflictsWith(cell.read, true)) {
        error = Conflict(what, at, write, cell.read, true);
      } else {
        access.Note(write ? cell.write : cell.read, !write);
      }
    });
    if (!error.empty()) return error;
  }
  return std::string();
}

}  // namespace kernel_internal

std::unique_ptr<CheckedMode> MakeCheckedMode(uint64_t schedule_seed) {
  return std::make_unique<kernel_internal::Checker>(schedule_seed);
}

}  // namespace switchyard::device
