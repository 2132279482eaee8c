// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/lexer.h"

namespace switchyard::device::metal {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) ||
         c == '_' || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    tokens_.text = text;
    tokens_.files.emplace_back();
  }

  Tokens Run() {
    while (at_ < text_.size()) Step();
    return std::move(tokens_);
  }

 private:
  char At(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void Newline() {
    ++at_;
    ++line_;
    line_begin_ = static_cast<uint32_t>(at_);
    fresh_ = true;
  }

  void Step() {
    const char c = text_[at_];
    if (c == '\n') return Newline();
    if (IsBlank(c)) {
      ++at_;
      return;
    }
    if (c == '\\' && At(at_ + 1) == '\n') {
      const bool fresh = fresh_;
      ++at_;
      Newline();
      fresh_ = fresh;
      return;
    }
    if (c == '#' && fresh_) return Directive();
    fresh_ = false;
    if (c == '/' && At(at_ + 1) == '/') {
      AddComment(text_.find('\n', at_));
    } else if (c == '/' && At(at_ + 1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      AddComment(end == text_.npos ? end : end + 2);
    } else if (c == '"' || c == '\'') {
      Quoted(at_);
    } else if (IsDigit(c) || (c == '.' && IsDigit(At(at_ + 1)))) {
      Number();
    } else if (IsWord(c)) {
      Word();
    } else {
      const char next = At(at_ + 1);
      const bool two = (c == ':' && next == ':') || (c == '-' && next == '>');
      Add(Token::Kind::kOther, at_, at_ + (two ? 2 : 1));
    }
  }

  // To `end`, over the lines between.
  void Through(size_t end) {
    while (at_ < end) {
      if (text_[at_] == '\n') {
        Newline();
      } else {
        ++at_;
      }
    }
    fresh_ = false;
  }

  void Add(Token::Kind kind, size_t begin, size_t end) {
    if (!system_) {
      tokens_.list.push_back({static_cast<uint32_t>(begin),
                              static_cast<uint32_t>(end - begin), line_begin_,
                              line_, file_, kNone, kind});
    }
    Through(end);
  }

  // To `end`, or to the text's.
  void AddComment(size_t end) {
    if (end > text_.size()) end = text_.size();
    if (!system_) {
      tokens_.comments.push_back({static_cast<uint32_t>(at_),
                                  static_cast<uint32_t>(end), line_begin_,
                                  line_, file_, tokens_.size()});
    }
    Through(end);
  }

  // From its prefix at `begin` on, with at_ at the quote.
  void Quoted(size_t begin) {
    const char quote = text_[at_];
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    if (end < text_.size() && text_[end] == quote) ++end;
    if (end > text_.size()) end = text_.size();
    at_ = begin;
    Add(Token::Kind::kString, begin, end);
  }

  void RawString(size_t begin) {
    const size_t quote = at_;
    const size_t open = text_.find_first_of("(\n \"", quote + 1);
    // A delimiter has at most 16 characters.
    if (open == text_.npos || text_[open] != '(' || open - quote > 17) {
      return Quoted(begin);
    }
    const std::string close =
        ")" + std::string(text_.substr(quote + 1, open - quote - 1)) + "\"";
    const size_t found = text_.find(close, open);
    at_ = begin;
    Add(Token::Kind::kString, begin,
        found == text_.npos ? text_.size() : found + close.size());
  }

  void Number() {
    size_t end = at_ + 1;
    for (; end < text_.size(); ++end) {
      const char c = text_[end], last = text_[end - 1];
      const bool exponent =
          last == 'e' || last == 'E' || last == 'p' || last == 'P';
      if (IsWord(c) || c == '.' || ((c == '+' || c == '-') && exponent)) {
        continue;
      }
      if (c == '\'' && IsWord(At(end + 1))) continue;
      break;
    }
    Add(Token::Kind::kNumber, at_, end);
  }

  void Word() {
    size_t end = at_ + 1;
    while (end < text_.size() && IsWord(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    const char next = At(end);
    if (next == '"' || next == '\'') {
      const bool raw = next == '"' && (word == "R" || word == "u8R" ||
                                       word == "uR" || word == "LR");
      if (raw || word == "u8" || word == "u" || word == "U" || word == "L") {
        const size_t begin = at_;
        at_ = end;
        return raw ? RawString(begin) : Quoted(begin);
      }
    }
    Add(Token::Kind::kIdentifier, at_, end);
  }

  // A line marker, `# 12 "file" 1 3`, or a pragma.
  void Directive() {
    const size_t begin = at_;
    size_t end = at_;
    while (end < text_.size() && text_[end] != '\n') {
      end += text_[end] == '\\' && At(end + 1) == '\n' ? 2 : 1;
    }
    if (end > text_.size()) end = text_.size();
    size_t i = begin + 1;
    while (i < end && IsBlank(text_[i])) ++i;
    if (text_.substr(i, 4) == "line") i += 4;
    while (i < end && IsBlank(text_[i])) ++i;
    const bool is_marker = i < end && IsDigit(text_[i]);
    if (!is_marker) {
      if (!system_) {
        tokens_.pragmas.push_back({static_cast<uint32_t>(begin),
                                   static_cast<uint32_t>(end), tokens_.size(),
                                   line_, file_});
      }
      return Through(end);
    }
    uint32_t line = 0;
    for (; i < end && IsDigit(text_[i]); ++i) {
      line = line * 10 + static_cast<uint32_t>(text_[i] - '0');
    }
    Marker(i, end);
    Through(end);
    // The newline behind it counts.
    line_ = line - 1;
  }

  void Marker(size_t i, size_t end) {
    while (i < end && IsBlank(text_[i])) ++i;
    if (i == end || text_[i] != '"') return;
    std::string file;
    for (++i; i < end && text_[i] != '"'; ++i) {
      if (text_[i] == '\\' && i + 1 < end) ++i;
      file += text_[i];
    }
    system_ = false;
    for (++i; i < end; ++i) system_ = system_ || text_[i] == '3';
    // "<built-in>" and the like are none.
    if (!system_ && file[0] != '<') tokens_.user_files.insert(file);
    if (tokens_.files.back() != file) tokens_.files.push_back(file);
    file_ = static_cast<uint32_t>(tokens_.files.size() - 1);
  }

  const std::string_view text_;
  Tokens tokens_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  uint32_t line_begin_ = 0;
  uint32_t file_ = 0;
  bool system_ = false;
  bool fresh_ = true;  // nothing but blanks on this line
};

// Fills in `match`. What looks like < of template arguments is that only if a >
// comes before the end of what is around it.
void MatchPairs(Tokens& tokens) {
  std::vector<uint32_t> open;
  const auto drop_angles = [&] {
    while (!open.empty() && tokens.Is(open.back(), "<")) open.pop_back();
  };
  const auto pair = [&](uint32_t i) {
    tokens.list[i].match = open.back();
    tokens.list[open.back()].match = i;
    open.pop_back();
  };
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    if (tokens.list[i].kind != Token::Kind::kOther || tokens.list[i].size > 1) {
      continue;
    }
    const char c = tokens.Text(i)[0];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(i);
    } else if (c == '<') {
      if (i > 0 && tokens.IsIdentifier(i - 1) && !tokens.Is(i + 1, "<") &&
          !tokens.Is(i + 1, "=") && !tokens.Is(i - 1, "operator")) {
        open.push_back(i);
      }
    } else if (c == '>') {
      if (!open.empty() && tokens.Is(open.back(), "<")) pair(i);
    } else if (c == ';') {
      drop_angles();
    } else if (c == ')' || c == ']' || c == '}') {
      drop_angles();
      const char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || tokens.Text(open.back())[0] != opener) {
        tokens.balanced = false;
      } else {
        pair(i);
      }
    }
  }
  drop_angles();
  for (; !open.empty(); open.pop_back()) {
    tokens.balanced = tokens.balanced && tokens.Is(open.back(), "<");
  }
}

}  // namespace

Tokens Lex(std::string_view text) {
  Tokens tokens = Lexer(text).Run();
  MatchPairs(tokens);
  return tokens;
}

}  // namespace switchyard::device::metal
