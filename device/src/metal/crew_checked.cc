// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The part of Crew that reports to checked mode, and its own checks.

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/src/metal/crew.h"
#include "switchyard/device/kernel.h"

namespace switchyard::device::metal {
namespace {

namespace abi = switchyard_metal;

std::string Thread(size_t i) { return "thread " + std::to_string(i); }

}  // namespace

void Crew::AddRange(const kernel_internal::View& view, const char* name,
                    size_t element_bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(view.data);
  ranges_.push_back({&view, begin, begin + view.length});
  checked_->Describe(view, name, element_bytes);
}

const Crew::Range* Crew::NearestRange(uintptr_t address) const {
  // Ranges further away than this are ignored. If an index is wrong by a row
  // or by a matrix, the access is nearer than this.
  constexpr uintptr_t kFar = uintptr_t{16} << 20;
  const Range* nearest = nullptr;
  uintptr_t least = kFar;
  for (const Range& range : ranges_) {
    // A distance before a range counts twice, because more accesses go beyond
    // an end than before a beginning.
    const uintptr_t distance =
        address < range.begin
            ? std::min(range.begin - address, UINTPTR_MAX / 2) * 2
            : address - range.end + 1;
    if (distance >= least) continue;
    nearest = &range;
    least = distance;
  }
  return nearest;
}

void Crew::NoteWait(const void* address, size_t bytes, const void* where) {
  // No other thread runs until this one lets it, so a loop that waits for a
  // change of the value would never end. A thread that reads the same value
  // this often in a row is in such a loop.
  constexpr size_t kInARow = 16;
  uint64_t value = 0;
  std::memcpy(&value, address, std::min(bytes, sizeof(value)));
  if (wait_.address != address || wait_.value != value ||
      wait_.thread != running_) {
    wait_ = {address, value, running_, 0};
  }
  if (++wait_.count < kInARow) return;
  wait_.count = 0;
  waits_ += kInARow;
  LetOthersRun(where);
}

void Crew::GiveWay() {
  const size_t waits = waits_;
  waits_ = 0;
  if (checked_->GiveWay(waits)) return;
  size_t thread = 0;
  while (progress_[thread].state != State::kGivesWay) ++thread;
  throw std::runtime_error(
      Thread(thread) + " waits at " +
      around_.places->PlaceOf(calls_[thread].where).text() +
      " for a write of another threadgroup" +
      (order_.empty() ? ", which does not run before this one ends"
                      : ": all running threadgroups wait"));
}

// True if an access that is outside of all ranges is allowed.
bool Crew::IsOthers(const void* address, size_t bytes, uint32_t kind) const {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const auto in = [at](const void* data, size_t size) {
    return at - reinterpret_cast<uintptr_t>(data) < size;
  };
  // The shim reads kRuntime, group_ and threads_ itself.
  if (ranges_.empty() || in(&kRuntime, sizeof(kRuntime)) ||
      in(&group_, sizeof(group_)) ||
      in(threads_.data(), threads_.size() * sizeof(threads_[0]))) {
    return true;
  }
  // True for program-scope constants, which no kernel writes, and for the
  // zeros of absent_.
  const bool constant =
      in(absent_, sizeof(absent_)) || (at >= around_.begin && at < around_.end);
  return (constant && (kind & abi::kWrites) == 0) ||
         checked_->IsResident(address, bytes);
}

void Crew::Access(const void* address, size_t bytes, uint32_t kind,
                  const void* where) {
  // While lanes meet in a simd function, only the shim runs. It accesses the
  // memory that the lanes passed to the function. These accesses need no check.
  if (meeting_ != nullptr) return;
  if (bytes == 0) return checked_->Fence(kind);
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const Range* range = ranges_.data();
  const Range* const end = range + ranges_.size();
  while (range != end && at - range->begin >= range->end - range->begin) {
    ++range;
  }
  try {
    if (range == end) {
      if (IsOthers(address, bytes, kind)) return NoteUnset(at, bytes, where);
      range = NearestRange(at);
    }
    if (range == nullptr) {
      checked_->EndThreadgroup(
          FindingKind::kBounds, running_, where, nullptr,
          std::string((kind & abi::kWrites) != 0 ? "writes " : "reads ") +
              std::to_string(bytes) + " bytes at " +
              around_.places->PlaceOf(where).text() +
              " that are in no buffer and no threadgroup memory",
          "check the pointer, and the index from which it was computed");
    }
    const ptrdiff_t offset = static_cast<ptrdiff_t>(at - range->begin);
    if ((kind & (abi::kAtomically | abi::kVolatile)) != 0) {
      kind &= ~uint32_t{abi::kVolatile};
      // Bytes outside of the range may not be readable, so the value is
      // compared only inside.
      if (at >= range->begin && at < range->end && bytes <= range->end - at) {
        NoteWait(address, bytes, where);
      }
    }
    if ((kind & abi::kAligned) != 0) {
      kind &= ~uint32_t{abi::kAligned};
      if (at % bytes != 0) {
        checked_->ReportMisaligned(*range->view, offset, bytes, where);
      }
      if (kind == 0) return;
    }
    checked_->Access(*range->view, offset, bytes, kind, where);
    return;
  } catch (...) {
    failure_ = std::current_exception();
  }
  // End() must be called after the catch block: it never returns, so inside
  // the block the exception would never be released.
  End();
}

void Crew::Divides(bool by_zero, const void* where) {
  if (checked_ == nullptr) return;
  try {
    checked_->Report(
        FindingKind::kDivision, running_, where, nullptr,
        std::string(by_zero
                        ? "divides by zero at "
                        : "divides the least number of its type by -1 at ") +
            around_.places->PlaceOf(where).text() +
            ": Metal leaves the result unspecified",
        by_zero ? "test the divisor before the division"
                : "test both numbers before the division");
    return;
  } catch (...) {
    if (failure_ == nullptr) failure_ = std::current_exception();
  }
  // End() is called after the catch block for the same reason as in Access().
  if (meeting_ == nullptr) End();
}

void Crew::NoteUnset(uintptr_t address, size_t bytes, const void* where) {
  if (around_.unset == nullptr) return;
  for (const Unset& unset : *around_.unset) {
    if (address >= unset.end || address + bytes <= unset.begin) continue;
    const std::string name = unset.name;
    checked_->Report(
        FindingKind::kNeverWritten, running_, where, nullptr,
        "reads function constant " + name + " at " +
            around_.places->PlaceOf(where).text() + ", which has no value",
        "set it, or ask is_function_constant_defined(" + name + ") before");
  }
}

// Sorts the simdgroups as the checker's order has them. A simdgroup's place is
// the place of the first of its threads in that order.
void Crew::TakeOrder() {
  order_.clear();
  simdgroups_.clear();
  const uint16_t* const order = checked_->Order();
  if (order == nullptr) return;
  order_.resize(count_);
  std::vector<size_t> placed((count_ + abi::kSimdWidth - 1) / abi::kSimdWidth);
  for (size_t i = 0; i < count_; ++i) {
    const size_t simdgroup = order[i] / abi::kSimdWidth;
    if (placed[simdgroup] == 0) simdgroups_.push_back(simdgroup);
    order_[simdgroup * abi::kSimdWidth + placed[simdgroup]++] = order[i];
  }
}

// Called when all threads wait at a barrier or have returned.
void Crew::MeetAtBarrier() {
  size_t waits = count_, other = count_, gone = count_;
  uint32_t flags = 0;
  for (size_t i = count_; i-- > 0;) {
    (progress_[i].state == State::kAtBarrier ? waits : gone) = i;
  }
  if (waits == count_) return;
  for (size_t i = 0; i < count_; ++i) {
    if (progress_[i].state != State::kAtBarrier) continue;
    flags = calls_[i].flags;
    if (calls_[i].where != calls_[waits].where) other = i;
  }
  const std::string at = Thread(waits) + " waits at a threadgroup_barrier, ";
  if (gone != count_) {
    checked_->EndThreadgroup(
        FindingKind::kDivergentBarrier, waits, calls_[waits].where, nullptr,
        at + Thread(gone) + " has returned",
        "let every thread of the threadgroup reach the barrier");
  }
  if (other != count_) {
    checked_->EndThreadgroup(
        FindingKind::kDivergentBarrier, waits, calls_[waits].where,
        calls_[other].where, at + Thread(other) + " at another",
        "let every thread of the threadgroup reach the same barrier");
  }
  checked_->ThreadgroupBarrier(flags);
}

// Reports a meeting to checked mode. `lanes` are the lanes of the simdgroup
// that make the call.
void Crew::NoteMeeting(State state, const Call& call, size_t begin, size_t end,
                       uint32_t lanes) {
  uint32_t here = lanes;
  size_t elsewhere = end;
  bool gone = false;
  for (size_t i = begin; i < begin + abi::kSimdWidth; ++i) {
    const bool done = i < end && progress_[i].state == State::kDone;
    if (i >= end || done) here |= uint32_t{1} << (i - begin);
    if (i < end && (lanes >> (i - begin) & 1) == 0) {
      elsewhere = i;
      gone = done;
    }
  }
  const size_t simdgroup = begin / abi::kSimdWidth;
  if (state == State::kAtSimdgroupBarrier) {
    if (elsewhere != end) {
      checked_->Report(FindingKind::kDivergentBarrier, begin, call.where,
                       gone ? nullptr : calls_[elsewhere].where,
                       Thread(begin) + " waits at a simdgroup_barrier, " +
                           Thread(elsewhere) +
                           (gone ? " has returned" : " is elsewhere"),
                       "let every lane of the simdgroup reach the barrier");
    }
    checked_->SimdgroupBarrier(simdgroup, here, call.flags);
  } else {
    checked_->SimdFunction(simdgroup, here);
  }
}

}  // namespace switchyard::device::metal
