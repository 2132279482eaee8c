// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/text.h"

#include <algorithm>
#include <utility>

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

}  // namespace

// Fills in the tokens, pragmas, comments and files of a text.
class Text::Lexer {
 public:
  explicit Lexer(Text& to) : source_(to.source_), to_(to) {
    to_.files_.emplace_back();
  }

  void Run() {
    while (at_ < source_.size()) ReadToken();
  }

 private:
  char At(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }

  void EndLine() {
    ++at_;
    ++line_;
    line_begin_ = static_cast<uint32_t>(at_);
    is_line_blank_ = true;
  }

  void ReadToken() {
    const char c = source_[at_];
    if (c == '\n') return EndLine();
    if (IsBlank(c)) {
      ++at_;
      return;
    }
    if (c == '\\' && At(at_ + 1) == '\n') {
      const bool was_blank = is_line_blank_;
      ++at_;
      EndLine();
      is_line_blank_ = was_blank;
      return;
    }
    if (c == '#' && is_line_blank_) return ReadDirective();
    is_line_blank_ = false;
    if (c == '/' && At(at_ + 1) == '/') {
      AddComment(source_.find('\n', at_));
    } else if (c == '/' && At(at_ + 1) == '*') {
      const size_t end = source_.find("*/", at_ + 2);
      AddComment(end == source_.npos ? end : end + 2);
    } else if (c == '"' || c == '\'') {
      ReadQuoted(at_);
    } else if (IsDigit(c) || (c == '.' && IsDigit(At(at_ + 1)))) {
      ReadNumber();
    } else if (IsWord(c)) {
      ReadWord();
    } else {
      const char next = At(at_ + 1);
      const bool is_pair =
          (c == ':' && next == ':') || (c == '-' && next == '>');
      Add(Token::Kind::kOther, at_, at_ + (is_pair ? 2 : 1));
    }
  }

  // Moves to byte `end`, and counts the lines that it passes.
  void GoTo(size_t end) {
    while (at_ < end) {
      if (source_[at_] == '\n') {
        EndLine();
      } else {
        ++at_;
      }
    }
    is_line_blank_ = false;
  }

  void Add(Token::Kind kind, size_t begin, size_t end) {
    if (!is_system_) {
      to_.tokens_.push_back({static_cast<uint32_t>(begin),
                             static_cast<uint32_t>(end - begin), line_begin_,
                             line_, file_, kNone, kind});
    }
    GoTo(end);
  }

  // Adds a comment that ends at `end`, or at the end of the text.
  void AddComment(size_t end) {
    if (end > source_.size()) end = source_.size();
    if (!is_system_) {
      to_.comments_.push_back({static_cast<uint32_t>(at_),
                               static_cast<uint32_t>(end), line_begin_, line_,
                               file_, to_.size()});
    }
    GoTo(end);
  }

  // Reads a string or character literal. Its prefix begins at `begin`, and
  // at_ is at its quote.
  void ReadQuoted(size_t begin) {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote &&
           source_[end] != '\n') {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end < source_.size() && source_[end] == quote) ++end;
    if (end > source_.size()) end = source_.size();
    at_ = begin;
    Add(Token::Kind::kString, begin, end);
  }

  void ReadRawString(size_t begin) {
    const size_t quote = at_;
    const size_t open = source_.find_first_of("(\n \"", quote + 1);
    // The delimiter of a raw string has at most 16 characters.
    if (open == source_.npos || source_[open] != '(' || open - quote > 17) {
      return ReadQuoted(begin);
    }
    const std::string close =
        ")" + std::string(source_.substr(quote + 1, open - quote - 1)) + "\"";
    const size_t found = source_.find(close, open);
    at_ = begin;
    Add(Token::Kind::kString, begin,
        found == source_.npos ? source_.size() : found + close.size());
  }

  void ReadNumber() {
    size_t end = at_ + 1;
    for (; end < source_.size(); ++end) {
      const char c = source_[end], last = source_[end - 1];
      const bool is_exponent =
          last == 'e' || last == 'E' || last == 'p' || last == 'P';
      if (IsWord(c) || c == '.' || ((c == '+' || c == '-') && is_exponent)) {
        continue;
      }
      if (c == '\'' && IsWord(At(end + 1))) continue;
      break;
    }
    Add(Token::Kind::kNumber, at_, end);
  }

  void ReadWord() {
    size_t end = at_ + 1;
    while (end < source_.size() && IsWord(source_[end])) ++end;
    const std::string_view word = source_.substr(at_, end - at_);
    const char next = At(end);
    if (next == '"' || next == '\'') {
      const bool is_raw = next == '"' && (word == "R" || word == "u8R" ||
                                          word == "uR" || word == "LR");
      if (is_raw || word == "u8" || word == "u" || word == "U" || word == "L") {
        const size_t begin = at_;
        at_ = end;
        return is_raw ? ReadRawString(begin) : ReadQuoted(begin);
      }
    }
    Add(Token::Kind::kIdentifier, at_, end);
  }

  // Reads a line marker such as `# 12 "file" 1 3`, or a pragma.
  void ReadDirective() {
    const size_t begin = at_;
    size_t end = at_;
    while (end < source_.size() && source_[end] != '\n') {
      end += source_[end] == '\\' && At(end + 1) == '\n' ? 2 : 1;
    }
    if (end > source_.size()) end = source_.size();
    size_t i = begin + 1;
    while (i < end && IsBlank(source_[i])) ++i;
    if (source_.substr(i, 4) == "line") i += 4;
    while (i < end && IsBlank(source_[i])) ++i;
    const bool is_marker = i < end && IsDigit(source_[i]);
    if (!is_marker) {
      if (!is_system_) {
        to_.pragmas_.push_back({static_cast<uint32_t>(begin),
                                static_cast<uint32_t>(end), to_.size(), line_,
                                file_});
      }
      return GoTo(end);
    }
    uint32_t line = 0;
    for (; i < end && IsDigit(source_[i]); ++i) {
      line = line * 10 + static_cast<uint32_t>(source_[i] - '0');
    }
    ReadMarker(i, end);
    GoTo(end);
    // Subtracts 1, because the newline behind the marker adds 1 again.
    line_ = line - 1;
  }

  void ReadMarker(size_t i, size_t end) {
    while (i < end && IsBlank(source_[i])) ++i;
    if (i == end || source_[i] != '"') return;
    std::string file;
    for (++i; i < end && source_[i] != '"'; ++i) {
      if (source_[i] == '\\' && i + 1 < end) ++i;
      file += source_[i];
    }
    is_system_ = false;
    for (++i; i < end; ++i) is_system_ = is_system_ || source_[i] == '3';
    // Names such as "<built-in>" do not belong to files.
    if (!is_system_ && file[0] != '<') to_.user_files_.insert(file);
    if (to_.files_.back() != file) to_.files_.push_back(file);
    file_ = static_cast<uint32_t>(to_.files_.size() - 1);
  }

  const std::string_view source_;
  Text& to_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  uint32_t line_begin_ = 0;
  uint32_t file_ = 0;
  bool is_system_ = false;
  bool is_line_blank_ = true;  // true if this line has only blanks so far
};

// Fills in Token::match. A < behind an identifier gets a match only if a >
// follows before the end of the enclosing brackets or statement.
void Text::MatchPairs() {
  std::vector<uint32_t> open;
  const auto drop_angles = [&] {
    while (!open.empty() && Is(open.back(), "<")) open.pop_back();
  };
  const auto pair = [&](uint32_t i) {
    tokens_[i].match = open.back();
    tokens_[open.back()].match = i;
    open.pop_back();
  };
  for (uint32_t i = 0; i < size(); ++i) {
    if (tokens_[i].kind != Token::Kind::kOther || tokens_[i].size > 1) {
      continue;
    }
    const char c = word(i)[0];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(i);
    } else if (c == '<') {
      if (i > 0 && IsIdentifier(i - 1) && !Is(i + 1, "<") && !Is(i + 1, "=") &&
          !Is(i - 1, "operator")) {
        open.push_back(i);
      }
    } else if (c == '>') {
      if (!open.empty() && Is(open.back(), "<")) pair(i);
    } else if (c == ';') {
      drop_angles();
    } else if (c == ')' || c == ']' || c == '}') {
      drop_angles();
      const char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || word(open.back())[0] != opener) {
        is_balanced_ = false;
      } else {
        pair(i);
      }
    }
  }
  drop_angles();
  for (; !open.empty(); open.pop_back()) {
    is_balanced_ = is_balanced_ && Is(open.back(), "<");
  }
}

Text::Text(std::string_view source) : source_(source) {
  Lexer(*this).Run();
  MatchPairs();
  code_ = source;
  states_.assign(size(), State::kAsItIs);
  drops_insertions_.assign(size(), false);
}

std::vector<Piece> Text::SplitAtCommas(uint32_t first, uint32_t last) const {
  std::vector<Piece> pieces;
  uint32_t begin = first;
  for (uint32_t i = first; i < last; i = Skip(i)) {
    if (!Is(i, ",")) continue;
    pieces.push_back({begin, i});
    begin = i + 1;
  }
  if (begin < last) pieces.push_back({begin, last});
  return pieces;
}

uint32_t Text::FindDeclaredName(uint32_t first, uint32_t last) const {
  uint32_t name = kNone;
  for (uint32_t i = first; i < last; i = Skip(i)) {
    if (Is(i, "__attribute__") || Is(i, "alignas")) {
      if (Opens(i + 1)) i = match(i + 1);
    } else if (IsIdentifier(i)) {
      name = i;
    } else if (Is(i, "=") || Is(i, "{")) {
      break;
    } else if (Is(i, "[") && !IsAttributeList(i)) {
      break;
    } else if (Is(i, "(") && !Is(i - 1, "decltype") &&
               (Is(i + 1, "&") || Is(i + 1, "*"))) {
      last = match(i);
      name = kNone;
      ++i;  // continues inside of (*name)
    }
  }
  return name;
}

std::string Text::ReadString(uint32_t first, uint32_t last) const {
  std::string value;
  for (uint32_t i = first; i < last; ++i) {
    if (tokens_[i].kind != Token::Kind::kString) continue;
    const std::string_view text = word(i);
    for (size_t c = text.find('"') + 1; c < text.size() && text[c] != '"';
         ++c) {
      if (text[c] == '\\' && c + 1 < text.size()) ++c;
      value += text[c];
    }
  }
  return value;
}

bool Text::IsAttributeList(uint32_t i) const {
  return Is(i, "[") && Is(i + 1, "[") && Opens(i) && Opens(i + 1) &&
         match(i + 1) + 1 == match(i);
}

std::vector<Attribute> Text::FindAttributes(uint32_t first,
                                            uint32_t last) const {
  std::vector<Attribute> result;
  for (uint32_t i = first; i < last; ++i) {
    if (!IsAttributeList(i)) continue;
    const uint32_t end = match(i + 1);
    for (const Piece& piece : SplitAtCommas(i + 2, end)) {
      uint32_t name = piece.first;
      while (Is(name + 1, "::") && name + 2 < piece.last) name += 2;
      Attribute attribute = {name, name, name};
      if (OpensParentheses(name + 1)) {
        attribute.first = name + 2;
        attribute.last = match(name + 1);
      }
      result.push_back(attribute);
    }
    i = end + 1;
  }
  return result;
}

bool Text::IsOfClang(const Attribute& attribute) const {
  return Is(attribute.name - 1, "::") ||
         IsOneOf(word(attribute.name),
                 {"maybe_unused", "nodiscard", "noreturn", "deprecated",
                  "fallthrough", "likely", "unlikely", "no_unique_address"});
}

void Text::Erase(uint32_t token) {
  const Token& t = tokens_[token];
  EraseBytes(t.begin, t.end());
  states_[token] = State::kErased;
}

void Text::Erase(uint32_t first, uint32_t last) {
  for (uint32_t i = first; i < last; ++i) {
    Erase(i);
    drops_insertions_[i] = true;
  }
  const auto before = [](const Pragma& p, uint32_t token) {
    return p.token <= token;
  };
  auto p = std::lower_bound(pragmas_.begin(), pragmas_.end(), first, before);
  for (; p != pragmas_.end() && p->token < last; ++p) {
    EraseBytes(p->begin, p->end);
  }
}

void Text::EraseBytes(uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    if (code_[i] != '\n') code_[i] = ' ';
  }
}

void Text::Replace(uint32_t token, std::string_view by) {
  Erase(token);
  by.copy(&code_[tokens_[token].begin], tokens_[token].size);
  states_[token] = State::kReplaced;
}

void Text::InsertBefore(uint32_t token, std::string text) {
  insertions_.push_back(
      {tokens_[token].begin, token, --before_, std::move(text)});
}

void Text::InsertBehind(uint32_t token, std::string text) {
  const Token& t = tokens_[token];
  insertions_.push_back({t.end(), token, ++behind_, std::move(text)});
}

void Text::PutBefore(uint32_t token, std::string_view text) {
  uint32_t at = tokens_[token].begin;
  size_t left = text.size();
  // One blank must stay between the previous token and the text.
  while (left > 0 && at > 1 && code_[at - 1] == ' ' && code_[at - 2] == ' ') {
    code_[--at] = text[--left];
  }
  if (left != 0) {
    insertions_.push_back(
        {at, token, --before_, std::string(text.substr(0, left))});
  }
}

std::string_view Text::edited(uint32_t token) const {
  if (IsErased(token)) return {};
  std::string_view text(code_);
  text = text.substr(tokens_[token].begin, tokens_[token].size);
  if (states_[token] == State::kReplaced) {
    text = text.substr(0, text.find(' '));
  }
  return text;
}

std::string Text::edited(uint32_t first, uint32_t last) const {
  std::string result;
  uint32_t end = kNone;  // the end of the previous token
  for (uint32_t i = first; i < last; ++i) {
    if (IsErased(i)) continue;
    if (end != kNone && end != tokens_[i].begin) result += ' ';
    result += edited(i);
    end = tokens_[i].end();
  }
  // Only a raw string can contain newlines.
  std::replace(result.begin(), result.end(), '\n', ' ');
  return result;
}

std::string Text::Finish() {
  std::sort(insertions_.begin(), insertions_.end(),
            [](const Insertion& a, const Insertion& b) {
              return a.at != b.at ? a.at < b.at : a.order < b.order;
            });
  std::string result;
  uint32_t from = 0;
  for (const Insertion& insertion : insertions_) {
    if (drops_insertions_[insertion.token]) continue;
    result.append(code_, from, insertion.at - from);
    result += insertion.text;
    from = insertion.at;
  }
  result.append(code_, from);
  return result;
}

}  // namespace switchyard::device::metal
