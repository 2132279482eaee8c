// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/findings.h"

#include "device/src/core/finding_kinds.h"

namespace switchyard::device {

const char* NameOf(FindingKind kind) noexcept {
  switch (kind) {
    case FindingKind::kBounds:
      return "bounds";
    case FindingKind::kNeverWritten:
      return "never-written";
    case FindingKind::kRace:
      return "race";
    case FindingKind::kMissingBarrier:
      return "missing-barrier";
    case FindingKind::kBarrierFlags:
      return "barrier-flags";
    case FindingKind::kMissingMemoryBarrier:
      return "missing-memory-barrier";
    case FindingKind::kSameValue:
      return "same-value";
    case FindingKind::kDivergentBarrier:
      return "divergent-barrier";
    case FindingKind::kDivergentSimd:
      return "divergent-simd";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kBeforeOffset:
      return "before-offset";
    case FindingKind::kDivision:
      return "division";
    case FindingKind::kMisuse:
      break;
  }
  return "misuse";
}

std::string Place::text() const {
  if (!known()) return std::string();
  std::string text = file + ":" + std::to_string(line);
  if (column != 0) text += ":" + std::to_string(column);
  return text;
}

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
