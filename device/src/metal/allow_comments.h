// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// `// switchyard: allow(race)` in a shader: what checked mode is not to report
// of a line. The preprocessor drops comments, so they are read from the files.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_ALLOW_COMMENTS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_ALLOW_COMMENTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>

#include "device/src/core/finding_kinds.h"

namespace switchyard::device::metal {

struct AllowComment {
  std::string kinds;  // as written: "race, never-written"
  FindingKinds bits = 0;
  std::string file;
  uint32_t line = 0, column = 0;
  uint32_t code_line = 0;  // that it is about
  mutable std::atomic<size_t> suppressed{0};
};

class AllowComments {
 public:
  // Reads those of a file. Throws std::runtime_error, worded like a compiler's,
  // if one is wrong.
  void Read(std::string_view text, const std::string& file);
  // One that was read before; its counter begins anew.
  void Add(const AllowComment& comment);

  // Whether one is about this line and kind, which it then counts. From any
  // thread.
  bool Allows(FindingKind kind, const Place& place) const;
  // Whether any is for races of the same value alone.
  bool NameSameValue() const { return same_value_; }
  const std::list<AllowComment>& list() const { return list_; }

 private:
  std::list<AllowComment> list_;  // their counters do not move
  bool same_value_ = false;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_ALLOW_COMMENTS_H_
