// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Writes the messages for a threadgroup's findings.

#include <cstring>

#include "device/src/checked/checked_threadgroup.h"
#include "switchyard/device/buffer.h"

namespace switchyard::device::kernel_internal {
namespace {

std::string Position(const Size& p) {
  return "threadgroup (" + std::to_string(p.width) + ", " +
         std::to_string(p.height) + ", " + std::to_string(p.depth) + ")";
}

std::string Flags(uint32_t flags) {
  static const char* const kNames[] = {"mem_device", "mem_threadgroup",
                                       "mem_texture"};
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    if ((flags >> i & 1) == 0) continue;
    text += (text.empty() ? "" : " | ") + std::string(kNames[i]);
  }
  return text.empty() ? "mem_none" : text;
}

const char* FlagOf(const View& view) {
  return view.kind == kBufferView ? "mem_device" : "mem_threadgroup";
}

std::string At(const Place& place) {
  return place.known() ? " at " + place.text() : std::string();
}

}  // namespace

const char* CheckedThreadgroup::Verb(uint32_t kind) {
  if ((kind & kAtomically) == 0) {
    return (kind & kWrites) != 0 ? "writes " : "reads ";
  }
  return (kind & kWrites) == 0  ? "atomically reads "
         : (kind & kReads) == 0 ? "atomically writes "
                                : "atomically updates ";
}

std::string CheckedThreadgroup::NameOf(const View& view) {
  static const char* const kNames[] = {"buffer ", "threadgroup memory ",
                                       "threadgroup array "};
  std::string name = view.name != nullptr
                         ? view.name
                         : kNames[view.kind] + std::to_string(view.index);
  if (view.kind == kBufferView) {
    const std::string label = From(*view.thread).running_->LabelOf(view.index);
    if (!label.empty()) name += " \"" + label + "\"";
  }
  return name;
}

std::string CheckedThreadgroup::ElementOf(const View& view, ptrdiff_t offset,
                                          size_t size) {
  const ptrdiff_t bytes =
      static_cast<ptrdiff_t>(view.element != 0 ? view.element : size);
  const bool is_wider = view.element != 0 && size > view.element;
  const std::string width =
      is_wider ? " (" + std::to_string(size) + " bytes)" : std::string();
  return offset % bytes == 0
             ? NameOf(view) + "[" + std::to_string(offset / bytes) + "]" + width
             : NameOf(view) + ", byte " + std::to_string(offset) + ",";
}

std::string CheckedThreadgroup::LengthOf(const View& view, size_t size) {
  return std::to_string(view.length /
                        (view.element != 0 ? view.element : size)) +
         " elements";
}

std::string CheckedThreadgroup::Who(size_t thread) const {
  return Position(position_) + (thread == Finding::kNoThread
                                    ? std::string()
                                    : ", thread " + std::to_string(thread));
}

std::string CheckedThreadgroup::Access(const View& view, const Element& element,
                                       const Place& place) {
  return Verb(element.kind) + ElementOf(view, element.offset, element.size) +
         At(place);
}

void CheckedThreadgroup::Note(const FindingList::Key& key,
                              const Checker::Other& other, Finding finding,
                              bool may_throw, bool weak) {
  finding.threadgroup = position_;
  checker_.Add(key, other, std::move(finding), weak);
  if (may_throw && checker_.list_is_full()) ThrowEnd();
}

void CheckedThreadgroup::ThrowEnd() {
  const std::vector<Finding>& findings = checker_.findings();
  throw EndsThreadgroup(findings.empty() ? std::string()
                                         : findings.back().text);
}

void CheckedThreadgroup::Fail(FindingKind kind, const std::string& what,
                              const std::string& help) {
  CheckedThreadgroup::EndThreadgroup(kind, Finding::kNoThread, nullptr, nullptr,
                                     what, help);
}

void CheckedThreadgroup::FailThread(FindingKind kind, const std::string& what,
                                    const std::string& help, uint64_t piece) {
  if (pending_.view != nullptr) Settle();
  checker_.NoteEnd();
  const FindingList::Key key = checker_.KeyOf(kind, where, piece);
  if (!checker_.list().Seen(key, nullptr)) {
    Finding finding;
    finding.kind = kind;
    finding.thread = ThreadOf(device.stamp);
    finding.where = checker_.PlaceOf(checker_.dispatch(), where);
    finding.text = Who(finding.thread) + ": " + what;
    finding.help = help;
    Note(key, Checker::Other(), std::move(finding), true);
  }
  ThrowEnd();
}

bool CheckedThreadgroup::IsBeforeOffset(const View& view,
                                        const Element& element) {
  if (element.kind != kReads || view.kind != kBufferView) return false;
  const uintptr_t address = reinterpret_cast<uintptr_t>(view.data) +
                            static_cast<uintptr_t>(element.offset);
  // `view` is the view nearest to the address. But the address may belong to
  // another buffer, and lie before that buffer's bound offset.
  for (const View& own : buffers_) {
    if (own.data == nullptr) continue;
    const auto* const buffer = running_->bindings[own.index].buffer;
    const uintptr_t data = reinterpret_cast<uintptr_t>(own.data);
    if (buffer == nullptr || address >= data || data - address < element.size ||
        address < reinterpret_cast<uintptr_t>(buffer->contents())) {
      continue;
    }
    const Element there = {-static_cast<ptrdiff_t>(data - address),
                           element.size, element.kind};
    Report(FindingKind::kBeforeOffset, ThreadOf(device.stamp), where, nullptr,
           Access(own, there, checker_.PlaceOf(checker_.dispatch(), where)) +
               ", which is in the buffer, but before the bound offset",
           "if the read is intended, bind a smaller offset, or allow it");
    return true;
  }
  return false;
}

void CheckedThreadgroup::FailBounds(const View& view, const Element& element) {
  const Place place = checker_.PlaceOf(checker_.dispatch(), where);
  FailThread(FindingKind::kBounds,
             Access(view, element, place) + ", which has " +
                 LengthOf(view, element.size),
             "compare the index with the number of elements, or bind more",
             PieceOf(view));
}

void CheckedThreadgroup::NoteNeverWritten(const View& view,
                                          const Element& element) {
  const FindingList::Key key =
      checker_.KeyOf(FindingKind::kNeverWritten, where, PieceOf(view));
  if (checker_.list().Seen(key, nullptr)) return;
  const bool buffer = view.kind == kBufferView;
  Finding finding;
  finding.kind = FindingKind::kNeverWritten;
  finding.thread = ThreadOf(view.space->stamp);
  finding.where = checker_.PlaceOf(checker_.dispatch(), where);
  finding.text = Who(finding.thread) + ": " +
                 Access(view, element, finding.where) +
                 (buffer ? ", which nothing has written since newBuffer()"
                         : ", which no thread has written");
  finding.help = buffer ? "write it before this dispatch"
                        : "write it, and have a threadgroup_barrier(mem_flags::"
                          "mem_threadgroup) before this read";
  Note(key, Checker::Other(), std::move(finding), true);
}

void CheckedThreadgroup::ReportMisaligned(const View& view, ptrdiff_t offset,
                                          size_t alignment, const void* code) {
  const Place place = checker_.PlaceOf(checker_.dispatch(), code);
  Report(FindingKind::kMisaligned, ThreadOf(device.stamp), code, nullptr,
         "accesses " + ElementOf(view, offset, 1) + At(place) +
             ", whose address is not a multiple of " +
             std::to_string(alignment) + " bytes, the alignment of its type",
         "align it, or use a packed_ type");
}

FindingKind CheckedThreadgroup::KindOf(const Clash& clash,
                                       const Meetings::Skipped** skipped,
                                       bool* simdgroups) const {
  const uint64_t named = clash.conflict.named;
  if (PhaseOf(named) != PhaseOf(clash.stamp)) {
    return checker_.phases()[PhaseOf(named)].dispatch != checker_.dispatch()
               ? FindingKind::kMissingMemoryBarrier
               : FindingKind::kRace;
  }
  if ((clash.conflict.last & kOtherGroups) != 0) return FindingKind::kRace;
  const size_t thread = ThreadOf(named);
  const Meetings& meetings = MeetingsOf(*clash.view.space, thread);
  const bool same_simdgroup =
      thread / kSimdWidth == ThreadOf(clash.stamp) / kSimdWidth;
  for (size_t i = 0; i < (same_simdgroup ? 2u : 1u); ++i) {
    if (EpochOf(named) >= meetings.skipped[i].epoch) continue;
    *skipped = &meetings.skipped[i];
    *simdgroups = i == 1;
    return FindingKind::kBarrierFlags;
  }
  return FindingKind::kMissingBarrier;
}

void CheckedThreadgroup::NoteConflict(const View& view, const Element& element,
                                      const Conflict& conflict) {
  const bool both_write = !conflict.was_read && element.kind == kWrites &&
                          (conflict.named & kAtomic) == 0 &&
                          element.size <= sizeof(Pending::before);
  const uint64_t stamp = view.space->stamp;
  if (!both_write || !checker_.WantsValues()) {
    NoteClash({view, element, conflict, stamp, where}, false, true);
    return;
  }
  // Another word of the same element already has a pending write.
  if (pending_.view != nullptr) return;
  pending_.view = &view;
  pending_.element = element;
  pending_.conflict = conflict;
  pending_.stamp = stamp;
  pending_.where = where;
  std::memcpy(pending_.before, view.data + element.offset, element.size);
}

void CheckedThreadgroup::Settle() {
  if (pending_.view == nullptr) return;
  const View& view = *std::exchange(pending_.view, nullptr);
  const Element& element = pending_.element;
  const bool same_value = std::memcmp(view.data + element.offset,
                                      pending_.before, element.size) == 0;
  NoteClash({view, element, pending_.conflict, pending_.stamp, pending_.where},
            same_value, false);
}

void CheckedThreadgroup::SettleOrEnd() {
  Settle();
  if (checker_.list_is_full()) ThrowEnd();
}

void CheckedThreadgroup::NoteClash(const Clash& clash, bool same_value,
                                   bool may_throw) {
  const Meetings::Skipped* skipped = nullptr;
  bool simdgroups = false;
  FindingKind kind = KindOf(clash, &skipped, &simdgroups);
  const View& view = clash.view;
  const Conflict& conflict = clash.conflict;
  const uint64_t named = conflict.named;
  const size_t other_thread = ThreadOf(named);
  Finding finding;
  finding.thread = ThreadOf(clash.stamp);
  // If the cell names this thread, the other thread is unknown: the cell only
  // records that another thread made an access.
  const bool known = other_thread != finding.thread;
  const bool same_simdgroup =
      known && (conflict.last & kOtherSimdgroups) == 0 &&
      other_thread / kSimdWidth == finding.thread / kSimdWidth;
  if (simdgroups && !same_simdgroup) {
    // Passing other flags to the simdgroup_barrier would not be enough.
    kind = FindingKind::kMissingBarrier;
    skipped = nullptr;
  }
  // The finding is weak if a simdgroup_barrier between the two threads is
  // enough.
  const bool weak = skipped == nullptr
                        ? kind == FindingKind::kMissingBarrier && same_simdgroup
                        : simdgroups;
  finding.kind = same_value ? FindingKind::kSameValue : kind;
  const FindingList::Key key =
      checker_.KeyOf(finding.kind, clash.where, PieceOf(view));
  const Phases::Phase& phase = checker_.phases()[PhaseOf(named)];
  const Checker::Other other = {phase.dispatch, conflict.where};
  if (checker_.list().Seen(key, other.where, weak)) return;
  finding.where = checker_.PlaceOf(checker_.dispatch(), clash.where);
  finding.other = checker_.PlaceOf(other);
  const std::string at = At(finding.other);
  const std::string atomically = (named & kAtomic) != 0 ? " atomically" : "";
  const std::string did = atomically + (conflict.was_read ? " read" : " wrote");
  const std::string thread = "thread " + std::to_string(other_thread);
  std::string text = Who(finding.thread) + ": " +
                     Access(view, clash.element, finding.where) + ", which ";
  if (kind == FindingKind::kMissingBarrier ||
      kind == FindingKind::kBarrierFlags) {
    const std::string barrier =
        std::string(weak ? "simdgroup" : "threadgroup") + "_barrier";
    const bool several = known && (conflict.last & kMarks) != 0;
    text += (known ? thread : "other threads") + did + at +
            (several ? ", and others," : "") + " in the same phase: ";
    const std::string flag = FlagOf(view);
    if (skipped == nullptr) {
      text += "a " + barrier +
              std::string(view.kind == kBufferView ? " with mem_device" : "") +
              " is missing";
    } else {
      text += "the " + barrier + " between them has " + Flags(skipped->flags) +
              ", this is " +
              (view.kind == kBufferView ? "device" : "threadgroup") +
              " memory: it needs " + flag;
    }
    const uint32_t flags = skipped == nullptr ? 0 : skipped->flags;
    finding.help = barrier + "(mem_flags::" + flag +
                   (flags == 0 ? "" : " | mem_flags::" + Flags(flags)) +
                   ") between the two accesses";
  } else if (kind == FindingKind::kMissingMemoryBarrier) {
    const std::string between =
        " between it and dispatch " + std::to_string(checker_.dispatch());
    text += checker_.NameOf(other.dispatch) + did + at +
            ": memoryBarrier is missing" + between;
    finding.help = "memoryBarrier(BarrierScopeBuffers)" + between;
  } else {
    const size_t i = phase.threadgroup;
    if (i == index_) {
      // The cell names this threadgroup, and only records that another
      // threadgroup made an access.
      text +=
          "another threadgroup or dispatch" + did + at + " at the same time";
    } else {
      const Size& grid = running_->threadgroups;
      const Size position(i % grid.width, i / grid.width % grid.height,
                          i / grid.width / grid.height);
      text += Position(position) + ", " + thread + "," + did + at +
              " in the same dispatch" +
              (atomically.empty() ? ", without atomics" : "");
    }
    finding.help =
        "atomics, or a dispatch for each of the two; or an "
        "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
        "thread_scope_device) before a flag is set, and one behind its read";
  }
  finding.text = text;
  Note(key, other, std::move(finding), may_throw, weak);
}

}  // namespace switchyard::device::kernel_internal
