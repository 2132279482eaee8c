// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/checked/finding_list.h"

namespace switchyard::device::kernel_internal {

bool FindingList::Add(const Key& key, Finding finding) {
  if (!seen_.insert(key).second || suppressions_.Match(finding)) return false;
  findings_.push_back(std::move(finding));
  return true;
}

}  // namespace switchyard::device::kernel_internal
