// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checked mode: what a queue knows of who touched which memory.

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

// splitmix64: any seed will do, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Below n, which is not 0.
  size_t Below(size_t n) {
    const uint64_t bits = (*this)();
    // A division would take longer than the rest of a small thread.
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
  // "dispatch 2 (name)"
  std::string NameOf(uint32_t dispatch) const;
  // Phases from here on are of this command buffer.
  uint32_t first_phase() const { return first_phase_; }
  // Whether another dispatch may run at the same time.
  bool dispatches_overlap() const { return dispatches_overlap_; }

  // Something is found by the dispatch that runs.
  FindingList& list() { return list_; }
  bool list_is_full() const { return list_is_full_; }
  FindingList::Key KeyOf(FindingKind kind, const void* where,
                         uint64_t piece) const;
  // Whether it makes a difference what a racing write writes.
  bool WantsValues() const { return list_.WantsValues() || allows_same_value_; }
  // The code that an access races with.
  struct Other {
    uint32_t dispatch = 0;
    const void* where = nullptr;
  };
  // Adds a finding that has not been seen, with kernel and dispatch filled in
  // and the kernel's name before the text. Returns whether nobody had
  // suppressed it.
  bool Add(const FindingList::Key& key, const Other& other, Finding finding,
           bool weak = false);
  // See CheckedFibers.
  bool IsResident(const void* address, size_t size) const;
  // The dispatch that runs may write what it has bound at `index`.
  void NoteOutput(size_t index, const Binding& binding);
  // A threadgroup of the dispatch that runs could not go on.
  void NoteEnd() { ended_ = true; }
  // Sets the places in the code of a dispatch's kernel; null if it has none.
  void SetPlaces(const Places* places);
  bool has_places() const { return !places_.empty(); }
  Place PlaceOf(uint32_t dispatch, const void* where) const;
  Place PlaceOf(const Other& other) const {
    return PlaceOf(other.dispatch, other.where);
  }

  uint64_t seed() const { return seed_; }
  Random& random() { return random_; }

 private:
  // One threadgroup after the other, or up to 8 that take turns.
  void RunInOrder(GridRunner& runner, size_t count);
  void RunShuffled(GridRunner& runner, size_t count);
  // For the i-th of those that run at the same time.
  CheckedThreadgroup& Threadgroup(size_t i);
  bool FindFresh(const Rows& rows, bool all, size_t* offset) const;
  const Places* PlacesOf(uint32_t dispatch) const {
    return dispatch < places_.size() ? places_[dispatch] : nullptr;
  }
  // Whether the shader allows it, at either of its places.
  bool IsAllowed(const Finding& finding, uint32_t other_dispatch) const;
  static std::string Element(const char* what, const Rows& rows, size_t offset);
  // Notes it; returns whether the dispatch cannot go on.
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
  size_t next_barrier_ = 0;  // in commands_->barriers
  bool dispatches_overlap_ = false;
  uint32_t touch_phase_ = 0;  // of Touch() in this dispatch; 0: none yet
  FindingList list_;
  bool list_is_full_ = false;
  const bool track_never_written_;
  std::vector<NeverWritten> outputs_;
  std::vector<NeverWritten> never_written_;
  bool in_grid_ = false;  // a threadgroup runs
  bool ended_ = false;
  std::vector<const Places*> places_;  // by dispatch; empty: nobody's
  bool allows_same_value_ = false;     // one of them
  std::vector<std::unique_ptr<CheckedThreadgroup>> threadgroups_;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_CHECKER_H_
