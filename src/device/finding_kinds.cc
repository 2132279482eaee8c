// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/finding_kinds.h"

namespace switchyard::device {

std::string KindsNamed(const std::string& name, FindingKinds* kinds) {
  *kinds = name == "race" ? kRaces : 0;
  for (uint32_t k = 0;
       k <= static_cast<uint32_t>(kLastFindingKind) && *kinds == 0; ++k) {
    if (name == NameOf(static_cast<FindingKind>(k))) *kinds = 1u << k;
  }
  if (*kinds == 0) return "there is no kind \"" + name + "\"";
  if ((*kinds & kMayPass) == 0) {
    return name + " ends a threadgroup and cannot be suppressed";
  }
  return std::string();
}

}  // namespace switchyard::device
