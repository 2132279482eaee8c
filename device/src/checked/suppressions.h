// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Findings that are not to be reported: DeviceOptions::suppressions.

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

  // The first line that is wrong and why, or an empty text.
  const std::string& problem() const { return problem_; }
  bool Match(const Finding& finding) const;
  // Whether any is for races of the same value alone.
  bool NameSameValue() const { return same_value_; }

 private:
  struct Rule {
    FindingKinds kinds = 0;
    std::string kernel;  // a pattern; the text of "text:"
    std::string file;    // a pattern; empty: any
    uint32_t line = 0;   // 0: any
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
