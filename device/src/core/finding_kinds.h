// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The kinds of findings that can be suppressed, and their names in options
// and comments.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_FINDING_KINDS_H_
#define SWITCHYARD_DEVICE_SRC_CORE_FINDING_KINDS_H_

#include <cstdint>
#include <string>

#include "switchyard/device/findings.h"

namespace switchyard::device {

// A set of kinds: one bit for each.
using FindingKinds = uint32_t;

constexpr FindingKinds BitOf(FindingKind kind) {
  return FindingKinds{1} << static_cast<uint32_t>(kind);
}
constexpr FindingKinds kRaces =
    BitOf(FindingKind::kRace) | BitOf(FindingKind::kMissingBarrier) |
    BitOf(FindingKind::kBarrierFlags) |
    BitOf(FindingKind::kMissingMemoryBarrier) | BitOf(FindingKind::kSameValue);
// The kinds that can be suppressed, because the threadgroup goes on after
// them. All other kinds end the threadgroup: if such a finding were
// suppressed, nothing would report that the threadgroup ended.
constexpr FindingKinds kMayPass = kRaces | BitOf(FindingKind::kNeverWritten) |
                                  BitOf(FindingKind::kMisaligned) |
                                  BitOf(FindingKind::kBeforeOffset) |
                                  BitOf(FindingKind::kDivision);
constexpr FindingKind kLastFindingKind = FindingKind::kDivision;

// Looks up a kind by name; "race" means all races. Returns an error or an
// empty string.
std::string KindsNamed(const std::string& name, FindingKinds* kinds);

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_FINDING_KINDS_H_
