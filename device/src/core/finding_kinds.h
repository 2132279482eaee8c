// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kinds of findings that may be let pass, as options and comments spell them.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_FINDING_KINDS_H_
#define SWITCHYARD_DEVICE_SRC_CORE_FINDING_KINDS_H_

#include <cstdint>
#include <string>

#include "switchyard/device/findings.h"

namespace switchyard::device {

// A bit for each kind.
using FindingKinds = uint32_t;

constexpr FindingKinds BitOf(FindingKind kind) {
  return FindingKinds{1} << static_cast<uint32_t>(kind);
}
constexpr FindingKinds kRaces =
    BitOf(FindingKind::kRace) | BitOf(FindingKind::kMissingBarrier) |
    BitOf(FindingKind::kBarrierFlags) |
    BitOf(FindingKind::kMissingMemoryBarrier) | BitOf(FindingKind::kSameValue);
// The others end a threadgroup: without a finding, nothing would say so.
constexpr FindingKinds kMayPass = kRaces | BitOf(FindingKind::kNeverWritten) |
                                  BitOf(FindingKind::kMisaligned) |
                                  BitOf(FindingKind::kBeforeOffset) |
                                  BitOf(FindingKind::kDivision);
constexpr FindingKind kLastFindingKind = FindingKind::kDivision;

// "race" is all races. Returns what is wrong with the name, or an empty text.
std::string KindsNamed(const std::string& name, FindingKinds* kinds);

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_FINDING_KINDS_H_
