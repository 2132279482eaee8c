// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The text of a shader: its tokens, and the edits that make it C++.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_TEXT_H_
#define SWITCHYARD_DEVICE_SRC_METAL_TEXT_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace switchyard::device::metal {

constexpr uint32_t kNone = 0xffffffff;

struct Token {
  enum class Kind : uint8_t { kIdentifier, kNumber, kString, kOther };
  uint32_t begin, size;  // its first byte in the source, and its length
  uint32_t line_begin;   // the first byte of its line, to compute the column
  uint32_t line;         // the line in its file
  uint32_t file;         // an index into Text::files()
  // The index of the matching bracket. It is set for (), [] and {}, and for
  // <> that look like a pair of brackets.
  uint32_t match;
  Kind kind;

  uint32_t end() const { return begin + size; }
  uint32_t column() const { return begin - line_begin + 1; }
};

// A #pragma. `token` is the first token behind it.
struct Pragma {
  uint32_t begin, end;
  uint32_t token;
  uint32_t line, file;  // as in Token
};

struct Comment {
  uint32_t begin, end;
  uint32_t line_begin, line;  // as in Token, for the comment's first byte
  uint32_t file;
  uint32_t token;  // the first token behind the comment
};

// An attribute in [[ ]]: its name, and its arguments in tokens first to last
// - 1.
struct Attribute {
  uint32_t name;
  uint32_t first, last;  // they are equal if it has no arguments
};

// A piece of the text: tokens first to last - 1.
struct Piece {
  uint32_t first, last;
};

inline bool IsOneOf(std::string_view word,
                    std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
inline bool IsAddressSpace(std::string_view word) {
  return IsOneOf(word, {"device", "constant", "threadgroup", "thread"});
}

// The text of a shader. Edits do not change the tokens; only edited() and
// Finish() show the edits. The text of system headers has no tokens. The
// shim counts as a system header, so its text is not edited. For an index
// behind the last token, word() returns an empty text.
class Text {
 public:
  // `source` must have less than 4 GiB and outlive this object. Takes linear
  // time for any source.
  explicit Text(std::string_view source);

  std::string_view source() const { return source_; }
  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  const Token& token(uint32_t i) const { return tokens_[i]; }
  const std::vector<Pragma>& pragmas() const { return pragmas_; }
  // Returns the comments. A preprocessed source has none.
  const std::vector<Comment>& comments() const { return comments_; }
  // Returns the files' names from line markers, without escapes. The first
  // name is empty.
  const std::vector<std::string>& files() const { return files_; }
  // Returns the files that are not system headers.
  const std::set<std::string>& user_files() const { return user_files_; }
  // True if each of (), [] and {} has a match.
  bool is_balanced() const { return is_balanced_; }
  // Returns the number of calls of word(): a measure of the translation's
  // cost.
  uint64_t looks() const { return looks_; }

  std::string_view word(uint32_t i) const {
    ++looks_;
    if (i >= tokens_.size()) return {};
    return source_.substr(tokens_[i].begin, tokens_[i].size);
  }
  bool Is(uint32_t i, std::string_view what) const { return word(i) == what; }
  bool IsIdentifier(uint32_t i) const {
    return i < tokens_.size() && tokens_[i].kind == Token::Kind::kIdentifier;
  }
  bool IsNumber(uint32_t i) const {
    return i < tokens_.size() && tokens_[i].kind == Token::Kind::kNumber;
  }
  // True if the token is the name of a member, because it stands behind . or
  // ->.
  bool IsMember(uint32_t i) const { return Is(i - 1, ".") || Is(i - 1, "->"); }
  // Returns the token's matching bracket, or kNone.
  uint32_t match(uint32_t i) const {
    return i < tokens_.size() ? tokens_[i].match : kNone;
  }
  // True for an opening bracket with a match.
  bool Opens(uint32_t i) const {
    return i < tokens_.size() && tokens_[i].match != kNone &&
           tokens_[i].match > i;
  }
  bool OpensParentheses(uint32_t i) const { return Is(i, "(") && Opens(i); }
  // Returns the next token. For an opening bracket, it is the token behind
  // the matching bracket.
  uint32_t Skip(uint32_t i) const {
    return (Opens(i) ? tokens_[i].match : i) + 1;
  }

  // Splits tokens first to last - 1 at commas outside of brackets.
  std::vector<Piece> SplitAtCommas(uint32_t first, uint32_t last) const;
  // Finds the name that a declarator declares: the last name before its [], =
  // or attributes. Returns kNone if it declares no name.
  uint32_t FindDeclaredName(uint32_t first, uint32_t last) const;
  // Returns the text that consecutive string literals have together, without
  // quotes and escapes.
  std::string ReadString(uint32_t first, uint32_t last) const;
  // True if token i is the first [ of an attribute list.
  bool IsAttributeList(uint32_t i) const;
  // Finds the attributes of all lists within tokens first to last - 1.
  std::vector<Attribute> FindAttributes(uint32_t first, uint32_t last) const;
  // True if the attribute is one of C++ or Clang, not of Metal.
  bool IsOfClang(const Attribute& attribute) const;

  // Edits leave every token on its line: an erased token becomes blanks, and
  // an insertion has no newline.

  void Erase(uint32_t token);
  // Erases tokens first to last - 1 and the pragmas between them. Also drops
  // all insertions at these tokens, earlier and later ones.
  void Erase(uint32_t first, uint32_t last);
  // Erases bytes begin to end - 1 of the source. They must lie outside of
  // tokens.
  void EraseBytes(uint32_t begin, uint32_t end);
  bool IsErased(uint32_t token) const {
    return states_[token] == State::kErased;
  }
  // Replaces the token's text. `by` must not be longer than the token.
  void Replace(uint32_t token, std::string_view by);
  // Insert text beside the token. A later insertion is further from the token
  // than an earlier one.
  void InsertBefore(uint32_t token, std::string text);
  void InsertBehind(uint32_t token, std::string text);
  // Writes the text over the blanks before the token. If there are too few
  // blanks, inserts the rest.
  void PutBefore(uint32_t token, std::string_view text);
  // Returns the token with all edits except insertions.
  std::string_view edited(uint32_t token) const;
  // Returns tokens first to last - 1 with all edits, on one line.
  std::string edited(uint32_t first, uint32_t last) const;
  // Returns the text with all edits. No edits may follow.
  std::string Finish();

 private:
  class Lexer;
  enum class State : uint8_t { kAsItIs, kErased, kReplaced };
  struct Insertion {
    uint32_t at;
    uint32_t token;
    int64_t order;  // the order of insertions at the same place
    std::string text;
  };

  void MatchPairs();

  const std::string_view source_;
  std::vector<Token> tokens_;
  std::vector<Pragma> pragmas_;
  std::vector<Comment> comments_;
  std::vector<std::string> files_;
  std::set<std::string> user_files_;
  bool is_balanced_ = true;
  mutable uint64_t looks_ = 0;

  std::string code_;  // the source with all edits except insertions
  std::vector<State> states_;
  std::vector<bool> drops_insertions_;
  std::vector<Insertion> insertions_;
  int64_t behind_ = 0;
  int64_t before_ = int64_t{1} << 62;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_TEXT_H_
