// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/checked/checker.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "device/src/checked/checked_threadgroup.h"
#include "device/src/core/pipeline.h"

namespace switchyard::device {
namespace kernel_internal {
namespace {

// Up to this many bytes of cells are kept for the next command buffer,
// because mapping and touching new cells takes as long as using them.
constexpr size_t kMaxKeptBytes = size_t{256} << 20;
// When phase numbers reach this value, the next command buffer starts at 1
// again.
constexpr uint32_t kManyPhases = uint32_t{1} << 30;

// Calls function(address of a row, its offset in bytes) for each row until the
// function returns false.
template <class Function>
void ForEachRow(const Rows& rows, const Function& function) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(rows.data);
  for (size_t r = 0; r < rows.rows; ++r) {
    const size_t at = r * rows.stride_bytes;
    if (!function(begin + at, at)) return;
  }
}

}  // namespace

Checker::Checker(const DeviceOptions& options)
    : seed_(options.schedule_seed),
      random_(options.schedule_seed),
      list_(options.max_findings, options.suppressions),
      track_never_written_(options.track_never_written) {}
Checker::~Checker() = default;

void Checker::Begin(const Commands& commands) {
  commands_ = &commands;
  list_.Clear();
  list_is_full_ = false;
  ended_ = false;
  places_.clear();
  allows_same_value_ = false;
  outputs_.clear();
  never_written_.clear();
  next_barrier_ = 0;
  random_ = Random(seed_);
  phases_.NewScope();
  // This phase belongs to no threadgroup. memoryBarrier(resources) stores this
  // phase as the last write of each written word. The word then counts as
  // written, but no later access conflicts with that write.
  first_phase_ = phases_.New(0, SIZE_MAX);
  phases_.NewScope();
}

bool Checker::IsResident(const void* address, size_t size) const {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  for (const Resident& resident : commands_->residents) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(resident.data);
    if (resident.first_dispatch <= dispatch_ && at >= begin &&
        size <= resident.length && at - begin <= resident.length - size) {
      return true;
    }
  }
  return false;
}

void Checker::NoteOutput(size_t index, const Binding& binding) {
  if (!track_never_written_) return;
  for (const NeverWritten& output : outputs_) {
    if (output.data == binding.data && output.length == binding.length) return;
  }
  NeverWritten output;
  output.kernel = commands_->dispatches[dispatch_].pipeline->name;
  output.dispatch = dispatch_;
  output.index = index;
  output.data = binding.data;
  output.length = binding.length;
  outputs_.push_back(std::move(output));
}

void Checker::Finish() {
  for (NeverWritten& output : outputs_) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(output.data);
    const uintptr_t end = begin + output.length;
    // Adds the half word at `address` to the ranges. A byte outside of the
    // binding is not added.
    const auto add = [&](uintptr_t address) {
      const uintptr_t first = std::max(begin, address);
      const uintptr_t last = std::min(end, address + 2);
      if (first >= last) return;
      if (!output.ranges.empty() &&
          output.ranges.back().offset + output.ranges.back().length ==
              first - begin) {
        output.ranges.back().length += last - first;
      } else {
        output.ranges.push_back({first - begin, last - first});
      }
    };
    shadow_.ForEachWord(output.data, output.length,
                        [&](const WordCells& cells, uintptr_t word) {
                          for (size_t half = 0; half < 2; ++half) {
                            const uint64_t write =
                                cells.split() ? cells.halves[half].write
                                              : cells.word->write;
                            if (PhaseOf(write) < first_phase_)
                              add(word + 2 * half);
                          }
                        });
    if (!output.ranges.empty()) never_written_.push_back(std::move(output));
  }
  outputs_.clear();
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
  fences_.Clear();
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
    shadow_.ForEachWord(
        barrier.data, barrier.length, [&](const WordCells& cells, uintptr_t) {
          const uint64_t last = cells.LastWrite();
          *cells.word = {PhaseOf(last) < first_phase_ ? 0 : written, 0};
        });
  }
}

std::string Checker::NameOf(uint32_t dispatch) const {
  return "dispatch " + std::to_string(dispatch) + " (" +
         commands_->dispatches[dispatch].pipeline->name + ")";
}

bool Checker::FindFresh(const Rows& rows, bool all, size_t* offset) const {
  bool found = false;
  ForEachRow(rows, [&](uintptr_t row, size_t at) {
    // Visits all words that contain a byte of the row.
    const uintptr_t end = row + rows.row_bytes;
    for (uintptr_t a = row - row % 4; a < end; a += 4) {
      uint32_t word;
      std::memcpy(&word, reinterpret_cast<const void*>(a), sizeof(word));
      if ((word == kNeverWritten) != all) {
        found = !all;
        *offset = at + (std::max(a, row) - row);
        return false;
      }
      found = found || all;
    }
    return true;
  });
  return found;
}

std::string Checker::Element(const char* what, const Rows& rows,
                             size_t offset) {
  return what + ("[" + std::to_string(offset / rows.element) + "]");
}

bool Checker::AddConflict(const char* what, const Rows& rows, size_t offset,
                          bool write, const Conflict& conflict) {
  const FindingKind kind = FindingKind::kMissingMemoryBarrier;
  const FindingList::Key key =
      KeyOf(kind, nullptr, std::hash<std::string>()(what));
  const Other other = {phases_[PhaseOf(conflict.named)].dispatch,
                       conflict.where};
  if (list_.Seen(key, other.where)) return list_is_full_;
  const std::string between =
      " between it and dispatch " + std::to_string(dispatch_);
  Finding finding;
  finding.kind = kind;
  finding.other = PlaceOf(other);
  finding.text = (write ? "writes " : "reads ") + Element(what, rows, offset) +
                 ", which " + NameOf(other.dispatch) +
                 (conflict.was_read ? " read" : " wrote") +
                 (finding.other.known() ? " at " + finding.other.text() : "") +
                 ": memoryBarrier is missing" + between;
  finding.help = "memoryBarrier(BarrierScopeBuffers)" + between;
  Add(key, other, std::move(finding));
  return list_is_full_;
}

std::string Checker::Touch(const char* what, const Rows& rows, bool write,
                           Fresh fresh) {
  if (rows.rows == 0 || rows.row_bytes == 0) return std::string();
  size_t offset = 0;
  if (fresh != Fresh::kIgnore &&
      FindFresh(rows, fresh == Fresh::kAllWords, &offset)) {
    Finding finding;
    finding.kind = FindingKind::kNeverWritten;
    finding.text = "reads " + Element(what, rows, offset) +
                   ", which nothing has written since newBuffer()";
    finding.help = "write it before this dispatch";
    const std::string text = finding.text;
    const FindingList::Key key =
        KeyOf(finding.kind, nullptr, std::hash<std::string>()(what));
    // Returns the error unless an option suppressed the finding. The error
    // ends the dispatch, because the memory holds no useful value to continue
    // with.
    if (!list_.Seen(key, nullptr) && Add(key, Other(), std::move(finding))) {
      return text;
    }
  }
  if (!dispatches_overlap_ && !(track_never_written_ && write)) {
    return std::string();
  }
  if (touch_phase_ == 0) touch_phase_ = phases_.New(dispatch(), SIZE_MAX);
  const Meetings meetings;
  WordAccess access = {0,           phases_.first,          &meetings,
                       phases_,     {dispatch(), SIZE_MAX}, nullptr,
                       has_places()};
  shadow_.Cover(rows.data,
                (rows.rows - 1) * rows.stride_bytes + rows.row_bytes);
  std::string error;
  Conflict conflict;
  ForEachRow(rows, [&](uintptr_t row, size_t at) {
    const uintptr_t end = row + rows.row_bytes;
    shadow_.ForEachWord(
        reinterpret_cast<const void*>(row), rows.row_bytes,
        [&](const WordCells& cells, uintptr_t word) {
          if (!error.empty()) return;
          // In the first and last word, check only the row's bytes.
          const uintptr_t first = std::max(word, row);
          uint64_t bytes = kAllBytes << (first - word);
          if (end - word < 4) bytes &= kAllBytes >> (4 - (end - word));
          access.stamp =
              uint64_t{touch_phase_} << kPhaseShift | (bytes & kAllBytes);
          if (!access.Check(cells, write, &conflict)) return;
          const uintptr_t byte = std::max(first, word + conflict.at);
          if (AddConflict(what, rows, at + (byte - row), write, conflict)) {
            error = list_.findings().back().text;
          }
        });
    return error.empty();
  });
  return error;
}

FindingList::Key Checker::KeyOf(FindingKind kind, const void* where,
                                uint64_t piece) const {
  return {commands_->dispatches[dispatch_].pipeline, kind, where, piece};
}

bool Checker::IsAllowed(const Finding& finding, uint32_t other_dispatch) const {
  const auto allows = [&](uint32_t dispatch, const Place& place) {
    const Places* const places = PlacesOf(dispatch);
    return places != nullptr && place.known() &&
           places->Allows(finding.kind, place);
  };
  return allows(dispatch(), finding.where) ||
         allows(other_dispatch, finding.other);
}

bool Checker::Add(const FindingList::Key& key, const Other& other,
                  Finding finding, bool weak) {
  const Dispatch& dispatch = commands_->dispatches[dispatch_];
  finding.kernel = dispatch.pipeline->name;
  finding.dispatch = dispatch_;
  finding.text = finding.kernel + ": " + finding.text;
  if (in_grid_ && seed_ != 0) {
    finding.text += " (schedule_seed " + std::to_string(seed_) + ")";
  }
  if (dispatch.place != 0) {
    finding.text += commands_->places[dispatch.place].Text();
  }
  const bool allowed = IsAllowed(finding, other.dispatch);
  const bool added =
      list_.Add(key, other.where, allowed, weak, std::move(finding));
  list_is_full_ = list_.full();
  return added;
}

void Checker::SetPlaces(const Places* places) {
  if (places == nullptr) return;
  places_.resize(commands_->dispatches.size());
  places_[dispatch_] = places;
  allows_same_value_ = allows_same_value_ || places->AllowSameValue();
}

Place Checker::PlaceOf(uint32_t dispatch, const void* where) const {
  const Places* const places = PlacesOf(dispatch);
  return places == nullptr || where == nullptr ? Place()
                                               : places->PlaceOf(where);
}

}  // namespace kernel_internal

std::unique_ptr<CheckedMode> MakeCheckedMode(const DeviceOptions& options) {
  return std::make_unique<kernel_internal::Checker>(options);
}

}  // namespace switchyard::device
