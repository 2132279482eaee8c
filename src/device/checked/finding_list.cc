// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/checked/finding_list.h"

namespace switchyard::device::kernel_internal {

bool FindingList::Add(const Key& key, const void* other, bool allowed,
                      Finding finding) {
  if (allowed || suppressions_.Match(finding)) {
    passed_.insert({key, other});
    return false;
  }
  seen_.insert(key);
  findings_.push_back(std::move(finding));
  return true;
}

}  // namespace switchyard::device::kernel_internal
