// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/edits.h"

#include <algorithm>
#include <utility>

namespace switchyard::device::metal {

void Edits::Blank(uint32_t token) {
  const Token& t = tokens_.list[token];
  BlankBytes(t.begin, t.begin + t.size);
  written_[token] = Written::kBlank;
}

void Edits::Blank(uint32_t first, uint32_t last) {
  for (uint32_t i = first; i < last; ++i) {
    Blank(i);
    is_gone_[i] = true;
  }
  const auto before = [](const Pragma& p, uint32_t token) {
    return p.token <= token;
  };
  auto p = std::lower_bound(tokens_.pragmas.begin(), tokens_.pragmas.end(),
                            first, before);
  for (; p != tokens_.pragmas.end() && p->token < last; ++p) {
    BlankBytes(p->begin, p->end);
  }
}

void Edits::BlankBytes(uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    if (code_[i] != '\n') code_[i] = ' ';
  }
}

void Edits::Become(uint32_t token, std::string_view word) {
  Blank(token);
  word.copy(&code_[tokens_.list[token].begin], tokens_.list[token].size);
  written_[token] = Written::kShorter;
}

void Edits::InsertBefore(uint32_t token, std::string text) {
  insertions_.push_back(
      {tokens_.list[token].begin, token, --before_, std::move(text)});
}

void Edits::InsertBehind(uint32_t token, std::string text) {
  const Token& t = tokens_.list[token];
  insertions_.push_back({t.begin + t.size, token, ++behind_, std::move(text)});
}

void Edits::PutBefore(uint32_t token, std::string_view text) {
  uint32_t at = tokens_.list[token].begin;
  size_t left = text.size();
  // The blank behind what comes before stays.
  while (left > 0 && at > 1 && code_[at - 1] == ' ' && code_[at - 2] == ' ') {
    code_[--at] = text[--left];
  }
  if (left != 0) {
    insertions_.push_back(
        {at, token, --before_, std::string(text.substr(0, left))});
  }
}

std::string_view Edits::Text(uint32_t token) const {
  if (IsBlank(token)) return {};
  std::string_view text(code_);
  text = text.substr(tokens_.list[token].begin, tokens_.list[token].size);
  if (written_[token] == Written::kShorter) {
    text = text.substr(0, text.find(' '));
  }
  return text;
}

std::string Edits::Text(uint32_t first, uint32_t last) const {
  std::string result;
  uint32_t end = kNone;  // of the token before
  for (uint32_t i = first; i < last; ++i) {
    if (IsBlank(i)) continue;
    if (end != kNone && end != tokens_.list[i].begin) result += ' ';
    result += Text(i);
    end = tokens_.list[i].begin + tokens_.list[i].size;
  }
  // A raw string: there is no other token of several lines.
  std::replace(result.begin(), result.end(), '\n', ' ');
  return result;
}

std::string Edits::Finish() {
  std::sort(insertions_.begin(), insertions_.end(),
            [](const Insertion& a, const Insertion& b) {
              return a.at != b.at ? a.at < b.at : a.order < b.order;
            });
  std::string result;
  uint32_t from = 0;
  for (const Insertion& insertion : insertions_) {
    if (is_gone_[insertion.token]) continue;
    result.append(code_, from, insertion.at - from);
    result += insertion.text;
    from = insertion.at;
  }
  result.append(code_, from);
  return result;
}

}  // namespace switchyard::device::metal
