// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/checked/checked_threadgroup.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "src/device/pipeline.h"

namespace switchyard::device::kernel_internal {
namespace {

// Unwinds a threadgroup that is not to go on.
struct Cancelled {};

std::string Position(const Size& p) {
  return "threadgroup (" + std::to_string(p.width) + ", " +
         std::to_string(p.height) + ", " + std::to_string(p.depth) + ")";
}

const char* Verb(uint32_t kind) {
  if ((kind & kAtomically) == 0) {
    return (kind & kWrites) != 0 ? "writes " : "reads ";
  }
  return (kind & kWrites) == 0  ? "atomically reads "
         : (kind & kReads) == 0 ? "atomically writes "
                                : "atomically updates ";
}

}  // namespace

CheckedThreadgroup::CheckedThreadgroup(Checker& checker)
    : checker_(checker), local_cells_(kLocalBytes / 4) {
  device = local = Space();
}

void CheckedThreadgroup::BeginDispatch(const RunningDispatch& running) {
  running_ = &running;
  cancelled_ = false;
  opaque_ = running.dispatch.pipeline->kernel.checked == nullptr;
  for (View& view : buffers_) view = View();
  std::memset(noted_, 0, sizeof(noted_));
  if (fiber_ == nullptr && checker_.seed() != 0) {
    fiber_ = std::make_unique<Fiber>();
  }
}

void CheckedThreadgroup::Begin(const Size& position, size_t index) {
  position_ = position;
  index_ = index;
  inside = false;
  failure_.clear();
  device.stamp = local.stamp = 0;
  NewPhase(static_cast<uint32_t>(mem_flags::mem_device_and_threadgroup));
  first_phase_ = PhaseOf(device.stamp);
  device.first = uint64_t{checker_.phases().first} << kPhaseShift;
  // One after the other, all phases before this threadgroup's first belong to
  // others. Where threadgroups take turns, any phase may.
  device.others =
      checker_.seed() == 0 ? uint64_t{first_phase_} << kPhaseShift : UINT64_MAX;
  for (View& view : memory_) view = View();
  for (View& view : arrays_) view = View();
}

bool CheckedThreadgroup::Resume(const std::function<void()>& function) {
  fiber_->Resume(function);
  return !fiber_->running();
}

void CheckedThreadgroup::Cancel() {
  cancelled_ = true;
  while (fiber_ != nullptr && fiber_->running()) fiber_->Resume(nullptr);
}

void CheckedThreadgroup::Throw(const std::string& text) {
  if (failure_.empty()) failure_ = text;
  throw std::runtime_error(text);
}
void CheckedThreadgroup::Fail(const std::string& what) {
  Throw(Position(position_) + ": " + what);
}
void CheckedThreadgroup::FailThread(const std::string& what) {
  Throw(Position(position_) + ", thread " +
        std::to_string(ThreadOf(device.stamp)) + ": " + what);
}

std::string CheckedThreadgroup::NameOf(const View& view) {
  static const char* const kNames[] = {"buffer ", "threadgroup memory ",
                                       "threadgroup array "};
  return kNames[view.kind] + std::to_string(view.index);
}

std::string CheckedThreadgroup::ElementOf(const View& view, ptrdiff_t offset,
                                          size_t size) {
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(size);
  return offset % bytes == 0
             ? NameOf(view) + "[" + std::to_string(offset / bytes) + "]"
             : NameOf(view) + ", byte " + std::to_string(offset) + ",";
}

void CheckedThreadgroup::Check(const View& view, ptrdiff_t offset, size_t size,
                               uint32_t kind) {
  if (size > view.length || offset < 0 ||
      static_cast<size_t>(offset) > view.length - size) {
    FailThread(Verb(kind) + ElementOf(view, offset, size) + ", which has " +
               std::to_string(view.length / size) + " elements");
  }
  // Word by word, each with those of its bytes that are touched. An element of
  // several words is only fresh if all of them are: one may be padding, which
  // nobody writes.
  const size_t begin = static_cast<size_t>(offset);
  bool fresh = view.fresh && (kind & kReads) != 0;
  if (size > 4 && fresh) {
    for (size_t at = begin; at < begin + size && fresh; at += 4) {
      fresh = IsFresh(view, at);
    }
  }
  for (size_t at = begin; at < begin + size;) {
    const size_t low = reinterpret_cast<uintptr_t>(view.data + at) % 4;
    const size_t count = std::min(4 - low, begin + size - at);
    const uint64_t bytes = ((uint64_t{1} << count) - 1) << low;
    CheckWord(view, at, {offset, size, kind}, bytes << kBytesShift, fresh);
    at += count;
  }
}

// Whether nothing has written the word that holds byte `at` of the view.
bool CheckedThreadgroup::IsFresh(const View& view, size_t at) const {
  const unsigned char* const data = view.data + at;
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  uint32_t word;
  std::memcpy(&word, data - address % 4, sizeof(word));
  const uint32_t since =
      view.kind == kBufferView ? checker_.first_phase() : first_phase_;
  return word == kNeverWritten && PhaseOf(view.CellAt(address).write) < since;
}

// Checks the part of an access to `element` that falls into the word of byte
// `at`, where it touches `bytes`.
void CheckedThreadgroup::CheckWord(const View& view, size_t at,
                                   const Element& element, uint64_t bytes,
                                   bool must_be_written) {
  const uint32_t kind = element.kind;
  const unsigned char* const data = view.data + at;
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  const Space& space = *view.space;
  Cell& cell = view.CellAt(address);
  if (must_be_written && IsFresh(view, at)) {
    FailThread(Verb(kind) + ElementOf(view, element.offset, element.size) +
               (view.kind == kBufferView
                    ? ", which nothing has written since newBuffer()"
                    : ", which no thread has written"));
  }
  const bool write = (kind & kWrites) != 0;
  const bool atomic = (kind & kAtomically) != 0;
  const WordAccess access = {
      (space.stamp & ~(kAllBytes | kAtomic)) | bytes | (atomic ? kAtomic : 0),
      PhaseOf(space.first),
      BarrierEpoch(space),
      checker_.phases(),
      {checker_.dispatch(), index_}};
  if (access.ConflictsWith(cell.write, false)) {
    FailConflict(view, element, cell.write, false);
  }
  if (write && access.ConflictsWith(cell.read, true)) {
    FailConflict(view, element, cell.read, true);
  }
  access.Note(write ? cell.write : cell.read, !write);
}

void CheckedThreadgroup::FailConflict(const View& view, const Element& element,
                                      uint64_t last, bool last_was_read) {
  const char* const did = last_was_read ? " read" : " wrote";
  std::string text = Verb(element.kind) +
                     ElementOf(view, element.offset, element.size) + ", which ";
  const std::string thread = "thread " + std::to_string(ThreadOf(last));
  const std::string atomically = (last & kAtomic) != 0 ? " atomically" : "";
  if (PhaseOf(last) == PhaseOf(view.space->stamp) &&
      (last & kOtherGroups) == 0) {
    const bool several = (last & (kOtherThreads | kOtherSimdgroups)) != 0;
    FailThread(
        text + thread + atomically + did + (several ? ", and others," : "") +
        " in the same phase: a threadgroup_barrier" +
        (view.kind == kBufferView ? " with mem_device" : "") + " is missing");
  }
  const Phases::Phase& other = checker_.phases()[PhaseOf(last)];
  if (other.dispatch != checker_.dispatch()) {
    FailThread(text + checker_.NameOf(other.dispatch) + atomically + did +
               ": memoryBarrier is missing between it and dispatch " +
               std::to_string(checker_.dispatch()));
  }
  const size_t i = other.threadgroup;
  if (i == index_) {  // and others, of which only that there are some is known
    FailThread(text + "another threadgroup or dispatch" + atomically + did +
               " at the same time");
  }
  const Size& grid = running_->threadgroups;
  const Size at(i % grid.width, i / grid.width % grid.height,
                i / grid.width / grid.height);
  FailThread(text + Position(at) + ", " + thread + "," + atomically + did +
             " in the same dispatch" +
             (atomically.empty() ? ", without atomics" : ""));
}

void CheckedThreadgroup::NewPhase(uint32_t flags) {
  const uint64_t stamp =
      uint64_t{checker_.phases().New(checker_.dispatch(), index_)}
          << kPhaseShift |
      kAllBytes;
  if ((flags & static_cast<uint32_t>(mem_flags::mem_device)) != 0) {
    device.stamp = stamp;
    device_barrier_epoch_ = 0;
  }
  if ((flags & static_cast<uint32_t>(mem_flags::mem_threadgroup)) != 0) {
    local.stamp = stamp;
    local_barrier_epoch_ = 0;
    // Nobody else touches this memory: all other phases are over.
    local.first = local.others = uint64_t{PhaseOf(stamp)} << kPhaseShift;
  }
  SetThread(0);
}

void CheckedThreadgroup::SimdFunction() {
  for (Space* const space : {&device, &local}) {
    if (EpochOf(space->stamp) != kLastEpoch) {
      space->stamp += uint64_t{1} << kEpochShift;
    }
  }
}

void CheckedThreadgroup::Barrier(const Threads& threads, bool simdgroup,
                                 uint32_t flags) {
  if (threads.some_gone) {
    for (size_t begin = 0; begin < threads.count;) {
      const size_t end = simdgroup ? std::min(threads.count, begin + kSimdWidth)
                                   : threads.count;
      size_t waits = end, gone = end;
      for (size_t i = end; i-- > begin;) {
        (threads.IsLeft(i) ? waits : gone) = i;
      }
      if (waits != end && gone != end) {
        Fail("thread " + std::to_string(waits) + " waits at a " +
             (simdgroup ? "simdgroup" : "threadgroup") + "_barrier, thread " +
             std::to_string(gone) + " has returned");
      }
      begin = end;
    }
  }
  if (simdgroup) {
    SimdFunction();
    if ((flags & static_cast<uint32_t>(mem_flags::mem_device)) != 0) {
      device_barrier_epoch_ = EpochOf(device.stamp);
    }
    if ((flags & static_cast<uint32_t>(mem_flags::mem_threadgroup)) != 0) {
      local_barrier_epoch_ = EpochOf(local.stamp);
    }
    return;
  }
  if (fiber_ != nullptr && fiber_->running()) {
    fiber_->Suspend();
    if (cancelled_) throw Cancelled();
  }
  NewPhase(flags);
}

const uint16_t* CheckedThreadgroup::OrderOfThreads(size_t count) {
  if (checker_.seed() == 0) return nullptr;
  order_.resize(count);
  for (size_t i = 0; i < count; ++i) order_[i] = static_cast<uint16_t>(i);
  checker_.random().Shuffle(order_.data(), count);
  return order_.data();
}

const View& CheckedThreadgroup::Buffer(const ThreadgroupContext& context,
                                       size_t index, size_t alignment,
                                       bool only_reads) {
  const ThreadgroupContext::Bytes bytes =
      context.Find(index, alignment, only_reads);
  View& view = buffers_[index];
  if (view.data == nullptr) {
    view.data = static_cast<unsigned char*>(bytes.data);
    view.length = bytes.length;
    view.words = bytes.length < 4 ? 0 : bytes.length - 3;
    view.shadow = checker_.shadow().Base(bytes.data);
    view.space = &device;
    view.thread = this;
    view.index = index;
    view.kind = kBufferView;
    view.fresh = running_->bindings[index].fresh;
  }
  return view;
}

const View& CheckedThreadgroup::LocalView(View& view, ViewKind kind,
                                          size_t index, void* data,
                                          size_t length) {
  if (view.data != nullptr) return view;
  view.data = static_cast<unsigned char*>(data);
  view.length = length;
  view.words = length < 4 ? 0 : length - 3;
  view.shadow = reinterpret_cast<uintptr_t>(local_cells_.data()) -
                reinterpret_cast<uintptr_t>(local_) / 4 * sizeof(Cell);
  view.space = &local;
  view.thread = this;
  view.index = index;
  view.kind = kind;
  view.fresh = true;
  FillNeverWritten(view.data, length);
  return view;
}

const View& CheckedThreadgroup::Memory(const ThreadgroupContext& context,
                                       size_t index) {
  const ThreadgroupContext::Bytes bytes = context.Local(index);
  return LocalView(memory_[index], kMemoryView, index, bytes.data,
                   bytes.length);
}

const View& CheckedThreadgroup::Array(const ThreadgroupContext& context,
                                      size_t length, DeclaredArrays* arrays) {
  const size_t index = arrays->count;
  void* const data = context.Array(length, arrays);
  return LocalView(arrays_[index], kArrayView, index, data, length);
}

void CheckedThreadgroup::NoteBinding(size_t index, bool only_reads,
                                     size_t length) {
  bool& noted = noted_[index][only_reads ? 0 : 1];
  if (!opaque_ || noted) return;
  noted = true;
  const std::string what = "buffer " + std::to_string(index) + " (as a whole)";
  const std::string error = checker_.Touch(
      what.c_str(), {running_->bindings[index].data, 1, length, length},
      !only_reads, CheckedMode::Fresh::kIgnore);
  if (!error.empty()) throw std::runtime_error(error);
}

void CheckedThreadgroup::Params(const ThreadgroupContext& context, size_t index,
                                size_t length, void* to) {
  context.Copy(index, length, to);
  const View& view = Buffer(context, index, 1, true);
  // Padding is never written: an error only if no word of the struct is.
  bool fresh = view.fresh;
  for (size_t i = 0; i + 4 <= length && fresh; i += 4) {
    const uint32_t word = kNeverWritten;
    fresh = std::memcmp(view.data + i, &word, sizeof(word)) == 0;
  }
  if (fresh && length >= 4) {
    Fail("reads the parameters in " + NameOf(view) +
         ", which nothing has written since newBuffer()");
  }
  View written = view;
  written.fresh = false;
  Check(written, 0, length, kReads);
}

}  // namespace switchyard::device::kernel_internal
