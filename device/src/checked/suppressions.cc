// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/checked/suppressions.h"

#include <algorithm>
#include <cstddef>

namespace switchyard::device::kernel_internal {
namespace {

// True if the text matches the pattern. A * in the pattern matches any text.
bool Matches(const std::string& pattern, const std::string& text) {
  size_t p = 0, t = 0, star = std::string::npos, after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++after;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

bool ParseLine(const std::string& text, uint32_t* line) {
  if (text.empty() || text.size() > 9 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  *line = static_cast<uint32_t>(std::stoul(text));
  return *line != 0;
}

}  // namespace

Suppressions::Suppressions(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::string why = Parse(line);
    if (!why.empty() && problem_.empty()) {
      problem_ = "suppressions: \"" + line + "\": " + why;
    }
  }
}

std::string Suppressions::Parse(const std::string& line) {
  Rule rule;
  const size_t colon = line.find(':');
  const std::string kind = line.substr(0, colon);
  if (kind == "text") {
    rule.kinds = kMayPass;
    rule.is_text = true;
  } else {
    const std::string why = KindsNamed(kind, &rule.kinds);
    if (!why.empty()) return why;
  }
  const std::string rest =
      colon == std::string::npos ? std::string() : line.substr(colon + 1);
  const size_t file = rule.is_text ? std::string::npos : rest.find(':');
  rule.kernel = rest.substr(0, file);
  if (rule.kernel.empty()) {
    return rule.is_text ? "a text is missing" : "the kernel's name is missing";
  }
  if (file != std::string::npos) {
    rule.file = rest.substr(file + 1);
    const size_t number = rule.file.rfind(':');
    if (number != std::string::npos) {
      if (!ParseLine(rule.file.substr(number + 1), &rule.line)) {
        return "\"" + rule.file.substr(number + 1) + "\" is not a line number";
      }
      rule.file.resize(number);
    }
    if (rule.file.empty()) return "the file's name is missing";
  }
  same_value_ = same_value_ || rule.kinds == BitOf(FindingKind::kSameValue);
  rules_.push_back(rule);
  return std::string();
}

// The pattern must match the whole path, or the part after one of its
// slashes.
bool Suppressions::Rule::IsAt(const Place& place) const {
  if (!place.known() || (line != 0 && line != place.line)) return false;
  for (size_t begin = 0;;) {
    if (Matches(file, place.file.substr(begin))) return true;
    begin = place.file.find('/', begin);
    if (begin == std::string::npos) return false;
    ++begin;
  }
}

bool Suppressions::Match(const Finding& finding) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    if ((rule.kinds & BitOf(finding.kind)) == 0) return false;
    if (rule.is_text) {
      return finding.text.find(rule.kernel) != std::string::npos;
    }
    return Matches(rule.kernel, finding.kernel) &&
           (rule.file.empty() || rule.IsAt(finding.where) ||
            rule.IsAt(finding.other));
  });
}

}  // namespace switchyard::device::kernel_internal
