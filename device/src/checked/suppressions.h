// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Findings that DeviceOptions::suppressions excludes from the report.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_SUPPRESSIONS_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_SUPPRESSIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "device/src/core/finding_kinds.h"

namespace switchyard::device::kernel_internal {

class Suppressions {
 public:
  explicit Suppressions(const std::vector<std::string>& lines);

  // Returns the first invalid line and the reason, or an empty string.
  const std::string& problem() const { return problem_; }
  bool Match(const Finding& finding) const;
  // True if a rule names only races that write the same value.
  bool NameSameValue() const { return same_value_; }

 private:
  struct Rule {
    FindingKinds kinds = 0;
    std::string kernel;  // a pattern, or the text of a "text:" rule
    std::string file;    // a pattern; empty for any file
    uint32_t line = 0;   // 0 for any line
    bool is_text = false;

    bool IsAt(const Place& place) const;
  };
  std::string Parse(const std::string& line);

  std::vector<Rule> rules_;
  std::string problem_;
  bool same_value_ = false;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_SUPPRESSIONS_H_
