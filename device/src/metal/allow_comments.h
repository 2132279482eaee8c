// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads comments such as `// switchyard: allow(race)` in a shader. Such a
// comment suppresses findings of checked mode on its line. The preprocessor
// drops comments, so they are read from the shader's files.

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
  uint32_t code_line = 0;  // findings on this line are suppressed
  mutable std::atomic<size_t> suppressed{0};
};

class AllowComments {
 public:
  // Reads the comments of a file. Throws std::runtime_error, worded like a
  // compiler's message, if a comment is wrong.
  void Read(std::string_view text, const std::string& file);
  // Adds a comment that was read earlier. Its counter of uses starts at 0.
  void Add(const AllowComment& comment);

  // True if a comment suppresses findings of this kind at this place. The
  // comment then counts as used. Any thread may call this.
  bool Allows(FindingKind kind, const Place& place) const;
  // True if some comment allows only same-value races.
  bool NameSameValue() const { return same_value_; }
  const std::list<AllowComment>& list() const { return list_; }

 private:
  std::list<AllowComment> list_;  // a list, because atomics can't be moved
  bool same_value_ = false;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_ALLOW_COMMENTS_H_
