// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/checked/checked_threadgroup.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "device/src/core/pipeline.h"

namespace switchyard::device::kernel_internal {
namespace {

// The size of a fiber's stack in bytes, which is also the usual size of an OS
// thread's stack. A kernel of kernel.h may need a large stack, because a
// variable with one copy per thread of the threadgroup takes 4 KB or more.
constexpr size_t kStackSize = size_t{8} << 20;

WordCells CellsOf(const View& view, uintptr_t address) {
  return {&view.CellAt(address),
          reinterpret_cast<Cell*>(view.halves + address / 4 * 2 * sizeof(Cell)),
          view.trails};
}

}  // namespace

CheckedThreadgroup::CheckedThreadgroup(Checker& checker)
    : checker_(checker),
      // calloc() does not touch the pages, so the system allocates each page
      // at its first access.
      local_cells_(
          static_cast<Cell*>(std::calloc(4 * kLocalCells, sizeof(Cell)))) {
  if (local_cells_ == nullptr) throw std::bad_alloc();
  device = local = Space();
}

void CheckedThreadgroup::BeginDispatch(const RunningDispatch& running) {
  running_ = &running;
  cancelled_ = false;
  opaque_ = running.dispatch.pipeline->kernel.checked == nullptr;
  for (View& view : buffers_) view = View();
  std::memset(noted_, 0, sizeof(noted_));
  if (fiber_ == nullptr && checker_.seed() != 0) {
    fiber_ = std::make_unique<Fiber>(kStackSize);
  }
}

void CheckedThreadgroup::Begin(const Size& position, size_t index) {
  position_ = position;
  index_ = index;
  inside = false;
  where = nullptr;
  fibers_ = 0;
  waits_ = all_waits_ = 0;
  waits_ended_ = false;
  fences_.Begin(index);
  pending_.view = nullptr;
  device.stamp = local.stamp = 0;
  NewPhase(static_cast<uint32_t>(mem_flags::mem_device_and_threadgroup));
  first_phase_ = PhaseOf(device.stamp);
  device.first = uint64_t{checker_.phases().first} << kPhaseShift;
  // A phase (see Phases) below device.others may belong to another
  // threadgroup. If threadgroups run one after the other, these are the phases
  // before this threadgroup's first phase. If threadgroups take turns, these
  // are all phases.
  device.others =
      checker_.seed() == 0 ? uint64_t{first_phase_} << kPhaseShift : UINT64_MAX;
  if (parts_written_) std::memset(written_, 0, sizeof(written_));
  parts_written_ = false;
  for (View& view : memory_) view = View();
  for (View& view : arrays_) view = View();
}

bool CheckedThreadgroup::Resume(const std::function<void()>& function) {
  waits_ = 0;
  fiber_->Resume(function);
  return !fiber_->running();
}

void CheckedThreadgroup::Cancel() {
  cancelled_ = true;
  while (fiber_ != nullptr && fiber_->running()) fiber_->Resume(nullptr);
}

// Checks the part of an access to `element` that falls into one word, at byte
// `at`. `bytes` has a bit for each byte of the word that the access touches.
inline void CheckedThreadgroup::CheckWord(const View& view, size_t at,
                                          const Element& element,
                                          uint32_t bytes,
                                          bool must_be_written) {
  const uint32_t kind = element.kind;
  const uintptr_t address = reinterpret_cast<uintptr_t>(view.data + at);
  const Space& space = *view.space;
  if (must_be_written && IsFresh(view, at, element.size, bytes)) {
    NoteNeverWritten(view, element);
  }
  const bool write = (kind & kWrites) != 0;
  if (write && bytes != 15 && view.kind != kBufferView) {
    NotePartWritten(view, address, bytes);
  }
  const uint64_t atomic = (kind & kAtomically) != 0 ? kAtomic : 0;
  const WordAccess access = {(space.stamp & ~(kAllBytes | kAtomic)) |
                                 uint64_t{bytes} << kBytesShift | atomic,
                             PhaseOf(space.first),
                             &MeetingsOf(space, ThreadOf(space.stamp)),
                             checker_.phases(),
                             {checker_.dispatch(), index_},
                             where,
                             checker_.has_places(),
                             &fences_};
  Conflict conflict;
  if (access.Check(CellsOf(view, address), write, &conflict)) {
    NoteConflict(view, element, conflict);
  }
}

void CheckedThreadgroup::Check(const View& view, ptrdiff_t offset, size_t size,
                               uint32_t kind) {
  if (pending_.view != nullptr || checker_.list_is_full()) SettleOrEnd();
  const Element element = {offset, size, kind};
  if (size > view.length || offset < 0 ||
      static_cast<size_t>(offset) > view.length - size) {
    if (IsBeforeOffset(view, element)) return;
    FailBounds(view, element);
  }
  const size_t begin = static_cast<size_t>(offset);
  const size_t low = reinterpret_cast<uintptr_t>(view.data + begin) % 4;
  if (low + size > 4) {
    CheckWords(view, element);
    return;
  }
  const uint32_t bytes = ((uint32_t{1} << size) - 1) << low;
  CheckWord(view, begin, element, bytes, view.fresh && (kind & kReads) != 0);
}

// Checks an access word by word. An element of several words counts as never
// written only if none of its words was written, because some of its words
// may be padding, which no code writes.
void CheckedThreadgroup::CheckWords(const View& view, const Element& element) {
  const size_t begin = static_cast<size_t>(element.offset);
  const size_t end = begin + element.size;
  bool fresh = view.fresh && (element.kind & kReads) != 0;
  if (element.size > 4) {
    for (size_t at = begin; at < end && fresh; at += 4) {
      fresh = IsFresh(view, at, element.size, 15);
    }
  }
  for (size_t at = begin; at < end;) {
    const size_t low = reinterpret_cast<uintptr_t>(view.data + at) % 4;
    const size_t count = std::min(4 - low, end - at);
    CheckWord(view, at, element, ((uint32_t{1} << count) - 1) << low, fresh);
    at += count;
  }
}

// True if bytes of the word at byte `at` were never written. `bytes` has a
// bit for each byte to look at. In threadgroup memory the rule depends on the
// size of the element, because larger elements may contain padding, which no
// code writes:
// * 1 or 2 bytes: true if any byte was never written.
// * 3 or 4 bytes: true if both bytes of a half word were never written.
// * more than 4 bytes: true if all bytes of the word were never written.
// In a buffer, a word counts as never written if the command buffer has not
// written it and it holds the pattern of never written memory. A word with
// another value was written by the host, whose writes the checker cannot see.
bool CheckedThreadgroup::IsFresh(const View& view, size_t at, size_t size,
                                 uint32_t bytes) const {
  const unsigned char* const data = view.data + at;
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  if (view.kind == kBufferView) {
    uint32_t word;
    std::memcpy(&word, data - address % 4, sizeof(word));
    return word == kNeverWritten &&
           PhaseOf(CellsOf(view, address).LastWrite()) < checker_.first_phase();
  }
  const uint32_t written = WrittenBytes(view, address);
  if (size > 4) return written == 0;
  if (size > 2) {
    return ((bytes & 3) != 0 && (written & 3) == 0) ||
           ((bytes & 12) != 0 && (written & 12) == 0);
  }
  return (bytes & ~written) != 0;
}

// Returns the bytes of a word of threadgroup memory that this threadgroup has
// written. The word's cell knows only the last write, so written_ keeps the
// bytes of earlier writes to parts of the word.
uint32_t CheckedThreadgroup::WrittenBytes(const View& view,
                                          uintptr_t address) const {
  const WordCells cells = CellsOf(view, address);
  const auto of = [this](uint64_t write) {
    return PhaseOf(write) < first_phase_
               ? 0
               : static_cast<uint32_t>((write & kAllBytes) >> kBytesShift);
  };
  const uint32_t last = cells.split() ? (of(cells.halves[0].write) & 3) |
                                            (of(cells.halves[1].write) & 12)
                                      : of(cells.word->write);
  return last | written_[(address - reinterpret_cast<uintptr_t>(local_)) / 4];
}

void CheckedThreadgroup::NotePartWritten(const View& view, uintptr_t address,
                                         uint32_t bytes) {
  const uint32_t written = bytes | WrittenBytes(view, address);
  written_[(address - reinterpret_cast<uintptr_t>(local_)) / 4] =
      static_cast<uint8_t>(written);
  parts_written_ = true;
}

}  // namespace switchyard::device::kernel_internal
