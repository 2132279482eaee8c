// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The checker of a queue in checked mode. It records the last accesses to
// memory, and decides whether a new access conflicts with them.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_CHECKER_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/src/checked/fences.h"
#include "device/src/checked/finding_list.h"
#include "device/src/checked/races.h"
#include "device/src/checked/shadow.h"
#include "device/src/core/checked_fibers.h"
#include "device/src/core/checked_mode.h"
#include "device/src/core/commands.h"

namespace switchyard::device::kernel_internal {

// Random numbers by splitmix64, which works with any seed and gives the same
// numbers on all platforms.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Returns a number below n; n must not be 0.
  size_t Below(size_t n) {
    const uint64_t bits = (*this)();
    // For an n of 32 bits, multiplies to avoid a division, which would take
    // longer than all other work of a small thread.
    return static_cast<size_t>(n <= UINT32_MAX ? (bits >> 32) * n >> 32
                                               : bits % n);
  }
  template <class T>
  void Shuffle(T* values, size_t n) {
    for (size_t i = n; i > 1; --i) std::swap(values[i - 1], values[Below(i)]);
  }

 private:
  uint64_t state_;
};

class CheckedThreadgroup;

class Checker : public CheckedMode {
 public:
  explicit Checker(const DeviceOptions& options);
  ~Checker() override;

  void Begin(const Commands& commands) override;
  void Finish() override;
  void End() override;
  void BeginDispatch(size_t index) override;
  const std::string& problem() const override { return list_.problem(); }
  const std::vector<Finding>& findings() const override {
    return list_.findings();
  }
  bool stopped() const override { return ended_ || list_is_full_; }
  std::vector<Finding> TakeFindings() override { return list_.Take(); }
  std::vector<NeverWritten> TakeNeverWritten() override {
    return std::exchange(never_written_, {});
  }
  std::string Touch(const char* what, const Rows& rows, bool write,
                    Fresh fresh) override;
  void RunThreadgroups(GridRunner& runner, size_t count) override;
  void NoteBinding(RunningThread& thread, size_t index, bool only_reads,
                   size_t length) override;

  Phases& phases() { return phases_; }
  Shadow& shadow() { return shadow_; }
  Fences& fences() { return fences_; }
  uint32_t dispatch() const { return static_cast<uint32_t>(dispatch_); }
  // Returns "dispatch 2 (name)".
  std::string NameOf(uint32_t dispatch) const;
  // The lowest number of a phase in the current command buffer.
  uint32_t first_phase() const { return first_phase_; }
  // True if another dispatch may run at the same time.
  bool dispatches_overlap() const { return dispatches_overlap_; }

  // Returns the list to which the running dispatch adds its findings.
  FindingList& list() { return list_; }
  bool list_is_full() const { return list_is_full_; }
  FindingList::Key KeyOf(FindingKind kind, const void* where,
                         uint64_t piece) const;
  // True if reports must distinguish same-value races (both writes store the
  // same value) from other races.
  bool WantsValues() const { return list_.WantsValues() || allows_same_value_; }
  // The other access in a race: its dispatch and the address of its code.
  struct Other {
    uint32_t dispatch = 0;
    const void* where = nullptr;
  };
  // Adds a finding, sets its kernel and dispatch, and puts the kernel's name
  // before the text. Returns false if the finding was suppressed. The caller
  // has checked with list().Seen() that the finding is new.
  bool Add(const FindingList::Key& key, const Other& other, Finding finding,
           bool weak = false);
  // Implements CheckedFibers::IsResident().
  bool IsResident(const void* address, size_t size) const;
  // Notes that the running dispatch may write the buffer bound at `index`.
  void NoteOutput(size_t index, const Binding& binding);
  // Notes that a threadgroup of the running dispatch could not continue.
  void NoteEnd() { ended_ = true; }
  // Sets the source places for the kernel of the running dispatch, or null if
  // they are not known.
  void SetPlaces(const Places* places);
  bool has_places() const { return !places_.empty(); }
  Place PlaceOf(uint32_t dispatch, const void* where) const;
  Place PlaceOf(const Other& other) const {
    return PlaceOf(other.dispatch, other.where);
  }

  uint64_t seed() const { return seed_; }
  Random& random() { return random_; }

 private:
  // RunInOrder() runs threadgroups one after the other. RunShuffled() lets 8
  // threadgroups take turns. While all of them wait in loops, it starts
  // further threadgroups, until 64 take turns.
  void RunInOrder(GridRunner& runner, size_t count);
  void RunShuffled(GridRunner& runner, size_t count);
  // Returns the i-th CheckedThreadgroup. Each of the threadgroups that take
  // turns has its own CheckedThreadgroup.
  CheckedThreadgroup& Threadgroup(size_t i);
  bool FindFresh(const Rows& rows, bool all, size_t* offset) const;
  const Places* PlacesOf(uint32_t dispatch) const {
    return dispatch < places_.size() ? places_[dispatch] : nullptr;
  }
  // True if an allow() comment at one of the finding's places suppresses it.
  bool IsAllowed(const Finding& finding, uint32_t other_dispatch) const;
  static std::string Element(const char* what, const Rows& rows, size_t offset);
  // Adds a finding; returns true if the dispatch cannot continue.
  bool AddConflict(const char* what, const Rows& rows, size_t offset,
                   bool write, const Conflict& conflict);

  const uint64_t seed_;
  Random random_;
  Phases phases_;
  Shadow shadow_;
  Fences fences_;
  uint32_t first_phase_ = 1;
  const Commands* commands_ = nullptr;
  size_t dispatch_ = 0;
  size_t next_barrier_ = 0;  // an index into commands_->barriers
  bool dispatches_overlap_ = false;
  // The phase that Touch() uses in this dispatch; 0 before its first call.
  uint32_t touch_phase_ = 0;
  FindingList list_;
  bool list_is_full_ = false;
  const bool track_never_written_;
  std::vector<NeverWritten> outputs_;
  std::vector<NeverWritten> never_written_;
  bool in_grid_ = false;  // true while a threadgroup runs
  bool ended_ = false;
  // The places of each dispatch's kernel; empty if no kernel has places.
  std::vector<const Places*> places_;
  // True if one of places_ allows same-value races.
  bool allows_same_value_ = false;
  std::vector<std::unique_ptr<CheckedThreadgroup>> threadgroups_;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_CHECKER_H_
