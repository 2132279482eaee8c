// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The tokens of preprocessed Metal, with the place in its file of each.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_LEXER_H_
#define SWITCHYARD_DEVICE_SRC_METAL_LEXER_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace switchyard::device::metal {

constexpr uint32_t kNone = 0xffffffff;

struct Token {
  enum class Kind : uint8_t { kIdentifier, kNumber, kString, kOther };
  uint32_t begin, size;  // bytes of the text
  uint32_t line_begin;   // where its line begins, for the column
  uint32_t line;         // in its file
  uint32_t file;         // of Tokens::files
  // The index of the other one of a pair of (), [], {} or, as far as it looks
  // like one, <>.
  uint32_t match;
  Kind kind;
};

// A #pragma, which stands before that token.
struct Pragma {
  uint32_t begin, end;
  uint32_t token;
  uint32_t line, file;  // as Token's
};

struct Comment {
  uint32_t begin, end;
  uint32_t line_begin, line;  // as Token's, of its begin
  uint32_t file;
  uint32_t token;  // the first behind it
};

// The tokens outside of system headers: to the preprocessor the shim is one.
struct Tokens {
  std::string_view text;
  std::vector<Token> list;
  std::vector<Pragma> pragmas;
  std::vector<Comment> comments;     // of texts that are not preprocessed
  std::vector<std::string> files;    // as in line markers, unescaped
  std::set<std::string> user_files;  // those of them that are no system's
  bool balanced = true;              // each of (), [] and {} has a match
  mutable uint64_t looks = 0;        // at a token's text: what all this costs

  uint32_t size() const { return static_cast<uint32_t>(list.size()); }
  std::string_view Text(uint32_t i) const {
    ++looks;
    if (i >= list.size()) return {};
    return text.substr(list[i].begin, list[i].size);
  }
  bool Is(uint32_t i, std::string_view what) const { return Text(i) == what; }
  bool IsIdentifier(uint32_t i) const {
    return i < list.size() && list[i].kind == Token::Kind::kIdentifier;
  }
  uint32_t Match(uint32_t i) const {
    return i < list.size() ? list[i].match : kNone;
  }
  // Whether it opens what its match closes.
  bool Opens(uint32_t i) const {
    return i < list.size() && list[i].match != kNone && list[i].match > i;
  }
  // Behind it and all that it opens.
  uint32_t Skip(uint32_t i) const { return (Opens(i) ? list[i].match : i) + 1; }
};

// Text of less than 4 GiB. Linear in its length, whatever is in it.
Tokens Lex(std::string_view text);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_LEXER_H_
