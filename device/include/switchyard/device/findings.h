// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Findings of checked mode (DeviceOptions::check_kernels), and functions that
// write them as text, JSON or SARIF. device/docs/metal.md lists their kinds.

#ifndef SWITCHYARD_DEVICE_FINDINGS_H_
#define SWITCHYARD_DEVICE_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

enum class FindingKind : uint32_t {
  kBounds,          // an access outside a bound buffer or declared array
  kNeverWritten,    // a read of memory that was never written
  kRace,            // a race of threadgroups, which run in no order
  kMissingBarrier,  // a race of threads of a threadgroup, without a barrier
  kBarrierFlags,    // the same, with a barrier that has the wrong flag
  kMissingMemoryBarrier,  // a race of dispatches of a concurrent encoder
  kSameValue,             // one of these four, where both write the same value
  kDivergentBarrier,      // a barrier that some threads do not reach
  kDivergentSimd,         // a simd function that reads a lane which is absent
  kMisuse,                // any other mistake of a kernel
  kMisaligned,            // an access at an address not aligned for its type
  kBeforeOffset,          // a read of a buffer before the bound offset
  kDivision,              // integer division by zero, or of the least by -1
};

// "bounds", "never-written", "race", "missing-barrier", "barrier-flags",
// "missing-memory-barrier", "same-value", "divergent-barrier",
// "divergent-simd", "misuse", "misaligned", "before-offset", "division": the
// names in suppressions and reports.
const char* NameOf(FindingKind kind) noexcept;

// A place in the source of a kernel. Kernels of kernel.h do not have one.
struct Place {
  std::string file;  // empty: not known
  uint32_t line = 0;
  uint32_t column = 0;  // 0: not known

  bool known() const noexcept { return !file.empty(); }
  std::string text() const;  // "file:line:column"
};

struct Finding {
  static constexpr size_t kNoThread = SIZE_MAX;

  FindingKind kind = FindingKind::kMisuse;
  std::string kernel;
  size_t dispatch = 0;        // in the command buffer
  Size threadgroup;           // its position in the grid
  size_t thread = kNoThread;  // in the threadgroup; kNoThread: not one alone
  // "kernel: threadgroup (..), thread ..: problem". The text of the first
  // finding is also in CommandBuffer::error().
  std::string text;
  Place where;
  Place other;  // of a race: the earlier access
  // A hint for the fix; may be empty.
  std::string help;
};

// A line for each finding, and one for its help.
std::string FindingsToText(const std::vector<Finding>& findings);
// {"findings": [{"kind": "bounds", "kernel": .., "dispatch": 0,
// "threadgroup": [0, 0, 0], "thread": 0, "text": .., "where": {"file": ..,
// "line": 1, "column": 1}, "other": .., "help": ..}]}; null if the finding
// has no single thread, or no place.
std::string FindingsToJson(const std::vector<Finding>& findings);
// SARIF 2.1.0, which lets a CI show findings beside the source line. Files in
// `source_root` get paths relative to it, as a CI expects for a checkout.
std::string FindingsToSarif(const std::vector<Finding>& findings,
                            const std::string& source_root = std::string());

// The part of a buffer, bound for writing, that no dispatch of a command
// buffer has written (DeviceOptions::track_never_written).
struct NeverWritten {
  struct Bytes {
    size_t offset;  // from the bound offset
    size_t length;
  };
  std::string kernel;  // the first one that bound it, and where
  size_t dispatch = 0;
  size_t index = 0;
  const void* data = nullptr;  // start of the binding
  size_t length = 0;
  std::vector<Bytes> ranges;  // ascending, disjoint; not empty
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_FINDINGS_H_
