// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Findings of checked mode (DeviceOptions::check_kernels) in a run, and how to
// hand them on. device/docs/metal.md lists their kinds.

#ifndef SWITCHYARD_DEVICE_FINDINGS_H_
#define SWITCHYARD_DEVICE_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

enum class FindingKind : uint32_t {
  kBounds,                // outside of what is bound or declared
  kNeverWritten,          // a read of what nothing has written
  kRace,                  // threadgroups of one dispatch, which nothing orders
  kMissingBarrier,        // threads of a threadgroup, no barrier between them
  kBarrierFlags,          // a barrier between them, for the other memory
  kMissingMemoryBarrier,  // dispatches of a concurrent encoder
  kSameValue,             // any of these four where both write the same value
  kDivergentBarrier,      // a barrier that not all threads come to
  kDivergentSimd,         // a simd function that needs a lane that is not there
  kMisuse,                // anything else that a kernel must not do
  kMisaligned,            // at an address that its type is not aligned to
  kBeforeOffset,          // a read of a buffer in front of the bound offset
  kDivision,              // of an integer by zero, or of the least one by -1
};

// "bounds", "never-written", "race", "missing-barrier", "barrier-flags",
// "missing-memory-barrier", "same-value", "divergent-barrier",
// "divergent-simd", "misuse", "misaligned", "before-offset", "division": as
// suppressions and reports spell it.
const char* NameOf(FindingKind kind) noexcept;

// In the source of a kernel. Kernels of kernel.h have none.
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
  size_t thread = kNoThread;  // in the threadgroup; not of one thread alone
  // "kernel: threadgroup (..), thread ..: what is wrong", as
  // CommandBuffer::error() has it of the first.
  std::string text;
  Place where;
  Place other;  // of the access before, of a race
  // A hint that would help; may be empty.
  std::string help;
};

// A line for each finding, and one for its help.
std::string FindingsToText(const std::vector<Finding>& findings);
// {"findings": [{"kind": "bounds", "kernel": .., "dispatch": 0, "threadgroup":
// [0, 0, 0], "thread": 0, "text": .., "where": {"file": .., "line": 1,
// "column": 1}, "other": .., "help": ..}]}; null: no thread alone, no place.
std::string FindingsToJson(const std::vector<Finding>& findings);
// SARIF 2.1.0, which shows findings beside the line. Files in `source_root` are
// named from there on, as it is asked for by a CI that has the sources.
std::string FindingsToSarif(const std::vector<Finding>& findings,
                            const std::string& source_root = std::string());

// The part of a buffer bound to write that no dispatch of a command buffer has
// written (DeviceOptions::track_never_written).
struct NeverWritten {
  struct Bytes {
    size_t offset;  // from the binding's on
    size_t length;
  };
  std::string kernel;  // the first that has bound it, and where
  size_t dispatch = 0;
  size_t index = 0;
  const void* data = nullptr;  // what is bound
  size_t length = 0;
  std::vector<Bytes> ranges;  // in order, apart; not empty
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_FINDINGS_H_
