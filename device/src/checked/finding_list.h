// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The findings of checked mode in one command buffer.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_FINDING_LIST_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_FINDING_LIST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device/src/checked/suppressions.h"
#include "switchyard/device/findings.h"

namespace switchyard::device {
struct Pipeline;
}  // namespace switchyard::device

namespace switchyard::device::kernel_internal {

class FindingList {
 public:
  // The identity of a finding. Two findings are the same if they agree in the
  // kernel, the kind, the address of the code and the piece of memory.
  using Key = std::tuple<const Pipeline*, FindingKind, const void*, uint64_t>;

  FindingList(size_t most, const std::vector<std::string>& suppressions)
      : most_(most), suppressions_(suppressions) {}

  // Returns the error in the suppressions, or an empty string.
  const std::string& problem() const { return suppressions_.problem(); }
  void Clear() {
    seen_.clear();
    passed_.clear();
    weak_.clear();
    findings_.clear();
  }
  // Findings can be weak. A weak finding asks for a simdgroup_barrier. If a
  // finding with the same key asks for a threadgroup_barrier, a
  // simdgroup_barrier is not enough, so that finding replaces the weak one.

  // Returns true if the finding was already added, or if a race with the code
  // at `other` was already suppressed. A race with code at another address is
  // a new finding, because it may not be benign.
  bool Seen(const Key& key, const void* other, bool weak = true) const {
    return (seen_.count(key) != 0 && (weak || weak_.count(key) == 0)) ||
           (!passed_.empty() && passed_.count({key, other}) != 0);
  }
  // Adds a finding for which Seen() is false, and returns true. If an allow()
  // comment or an option suppresses the finding, it is not added, and the
  // result is false. The new finding replaces a weak finding with the same
  // key.
  bool Add(const Key& key, const void* other, bool allowed, bool weak,
           Finding finding) {
    if (allowed || suppressions_.Match(finding)) {
      passed_.insert({key, other});
      return false;
    }
    const auto found = weak_.find(key);
    if (found != weak_.end()) {
      findings_[found->second] = std::move(finding);
      weak_.erase(found);
      return true;
    }
    if (weak) weak_[key] = findings_.size();
    seen_.insert(key);
    findings_.push_back(std::move(finding));
    return true;
  }
  bool full() const { return most_ != 0 && findings_.size() >= most_; }
  // True if reports must distinguish same-value races (both writes store the
  // same value) from other races. The new value is known only after the write.
  // But if the list has room for only one finding, the finding must be
  // reported before the write changes memory. Then only a suppression rule
  // for same-value races makes the result true.
  bool WantsValues() const {
    return most_ != 1 || suppressions_.NameSameValue();
  }
  const std::vector<Finding>& findings() const { return findings_; }
  std::vector<Finding> Take() { return std::exchange(findings_, {}); }

 private:
  const size_t most_;  // the maximum number of findings; 0 if unlimited
  const Suppressions suppressions_;
  std::set<Key> seen_;
  std::map<Key, size_t> weak_;  // indices of weak findings in findings_
  std::set<std::pair<Key, const void*>> passed_;
  std::vector<Finding> findings_;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_FINDING_LIST_H_
