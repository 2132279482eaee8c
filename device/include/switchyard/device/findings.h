// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Findings of checked mode (DeviceOptions::check_kernels), and functions that
// write them as text, JSON or SARIF. device/docs/metal.md explains the kinds
// of findings.

#ifndef SWITCHYARD_DEVICE_FINDINGS_H_
#define SWITCHYARD_DEVICE_FINDINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

// The kind of a finding.
enum class FindingKind : uint32_t {
  kBounds,                // an access outside a bound buffer or declared array
  kNeverWritten,          // a read of memory that was never written
  kRace,                  // a race between threadgroups, which run in any order
  kMissingBarrier,        // a race inside a threadgroup, without a barrier
  kBarrierFlags,          // a race despite a barrier, which has a wrong flag
  kMissingMemoryBarrier,  // a race between dispatches of a concurrent encoder
  kSameValue,             // one of the four races, but both values are equal
  kDivergentBarrier,      // a barrier that some threads do not reach
  kDivergentSimd,         // a simd function that reads an absent lane
  kMisuse,                // any other mistake of a kernel
  kMisaligned,            // an access at an address not aligned for its type
  kBeforeOffset,          // a read of a buffer before the bound offset
  kDivision,              // for integers: x / 0, or the smallest integer / -1
};

// Returns the name of a kind in suppressions and reports: "bounds",
// "never-written", "race", "missing-barrier", "barrier-flags",
// "missing-memory-barrier", "same-value", "divergent-barrier",
// "divergent-simd", "misuse", "misaligned", "before-offset", "division".
const char* NameOf(FindingKind kind) noexcept;

// A place in the source of a kernel. Findings in kernels of kernel.h have no
// place.
struct Place {
  std::string file;     // empty if the place is not known
  uint32_t line = 0;    // counted from 1
  uint32_t column = 0;  // counted from 1; 0 if the column is not known

  // True if the place has a file and a line.
  bool known() const noexcept { return !file.empty(); }
  std::string text() const;  // "file:line:column"
};

// A mistake of a kernel that checked mode has found.
struct Finding {
  // The value of `thread` in a finding that belongs to no single thread.
  static constexpr size_t kNoThread = SIZE_MAX;

  FindingKind kind = FindingKind::kMisuse;  // the kind of the mistake
  std::string kernel;                       // the kernel's name
  size_t dispatch = 0;  // number of the dispatch in the command buffer
  Size threadgroup;     // position of the threadgroup in the grid
  // Number of the thread in the threadgroup. kNoThread if the finding does
  // not belong to a single thread.
  size_t thread = kNoThread;
  // "kernel: threadgroup (..), thread ..: problem". The text of the first
  // finding is also in CommandBuffer::error().
  std::string text;
  Place where;  // the place of the access or call
  Place other;  // for a race: the place of the earlier access
  // A hint for the fix; may be empty.
  std::string help;
};

// Returns a line for each finding, and a line for its help.
std::string FindingsToText(const std::vector<Finding>& findings);
// Returns {"findings": [{"kind": "bounds", "kernel": .., "dispatch": 0,
// "threadgroup": [0, 0, 0], "thread": 0, "text": .., "where": {"file": ..,
// "line": 1, "column": 1}, "other": .., "help": ..}]}; "thread" is null if
// the finding has no single thread, and a place is null if it is not known.
std::string FindingsToJson(const std::vector<Finding>& findings);
// Returns SARIF 2.1.0, a format from which a CI can show findings beside the
// source line. Files in `source_root` get paths relative to it, as a CI
// expects for a checkout.
std::string FindingsToSarif(const std::vector<Finding>& findings,
                            const std::string& source_root = std::string());

// The ranges of a buffer that was bound for writing, but that no dispatch of
// a command buffer has written (DeviceOptions::track_never_written).
struct NeverWritten {
  // A range of bytes.
  struct Bytes {
    size_t offset;  // in bytes from the bound offset
    size_t length;  // in bytes
  };
  std::string kernel;  // the kernel of the first dispatch that bound the buffer
  // The number of the first dispatch that bound the buffer, counted in the
  // command buffer.
  size_t dispatch = 0;
  size_t index = 0;            // the index at which the buffer was bound
  const void* data = nullptr;  // start of the binding
  size_t length = 0;           // bytes from the bound offset to the end
  // The ranges that were not written, in ascending order, without overlap;
  // never empty.
  std::vector<Bytes> ranges;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_FINDINGS_H_
