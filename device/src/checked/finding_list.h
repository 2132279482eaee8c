// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The findings of checked mode in a command buffer.

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
  // Two findings are the same if these are equal: the kernel, the kind, the
  // place of the code and the piece of memory.
  using Key = std::tuple<const Pipeline*, FindingKind, const void*, uint64_t>;

  FindingList(size_t most, const std::vector<std::string>& suppressions)
      : most_(most), suppressions_(suppressions) {}

  // The error in the suppressions, or an empty text.
  const std::string& problem() const { return suppressions_.problem(); }
  void Clear() {
    seen_.clear();
    passed_.clear();
    weak_.clear();
    findings_.clear();
  }
  // A weak finding asks for a simdgroup_barrier, which is not enough for one of
  // the same key that asks for a threadgroup_barrier.

  // Returns whether it was seen, or suppressed with code at `other` to race
  // with: the next one, with other code, may not be benign.
  bool Seen(const Key& key, const void* other, bool weak = true) const {
    return (seen_.count(key) != 0 && (weak || weak_.count(key) == 0)) ||
           (!passed_.empty() && passed_.count({key, other}) != 0);
  }
  // Adds a finding that has not been seen, unless it is allowed, or suppressed
  // by an option. It takes the place of a weak one of the same key. Returns
  // whether it was added.
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
  // No more are wanted.
  bool full() const { return most_ != 0 && findings_.size() >= most_; }
  // Whether it makes a difference what a racing write writes: the only finding
  // there may be is to come before the write.
  bool WantsValues() const {
    return most_ != 1 || suppressions_.NameSameValue();
  }
  const std::vector<Finding>& findings() const { return findings_; }
  std::vector<Finding> Take() { return std::exchange(findings_, {}); }

 private:
  const size_t most_;  // 0: any number
  const Suppressions suppressions_;
  std::set<Key> seen_;
  std::map<Key, size_t> weak_;  // and where in findings_
  std::set<std::pair<Key, const void*>> passed_;
  std::vector<Finding> findings_;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_FINDING_LIST_H_
