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
  uint32_t begin, size;  // bytes of the source
  uint32_t line_begin;   // where its line begins, for the column
  uint32_t line;         // in its file
  uint32_t file;         // of Text::files()
  // The index of the matching bracket: of (), [] and {}, and of <> that look
  // like a pair of brackets.
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
  uint32_t line_begin, line;  // as in Token, where the comment begins
  uint32_t file;
  uint32_t token;  // the first one behind the comment
};

// name(first ... last - 1) between [[ and ]].
struct Attribute {
  uint32_t name;
  uint32_t first, last;  // equal if it has no arguments
};

// Tokens first to last - 1.
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

// The tokens are those of the source before any edits; only edited() and
// Finish() show the edits. System headers have no tokens, because the shim is
// one to the preprocessor. Behind the last token, word() is empty.
class Text {
 public:
  // `source` must have less than 4 GiB and outlive this object. Takes linear
  // time for any source.
  explicit Text(std::string_view source);

  std::string_view source() const { return source_; }
  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  const Token& token(uint32_t i) const { return tokens_[i]; }
  const std::vector<Pragma>& pragmas() const { return pragmas_; }
  // Empty for a preprocessed source.
  const std::vector<Comment>& comments() const { return comments_; }
  // Names from line markers, unescaped. The first one is empty.
  const std::vector<std::string>& files() const { return files_; }
  // The files that are no system headers.
  const std::set<std::string>& user_files() const { return user_files_; }
  // True if each of (), [] and {} has a match.
  bool is_balanced() const { return is_balanced_; }
  // Number of calls of word(): the cost of the translation.
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
  // True if the token is a member's name: behind . or ->.
  bool IsMember(uint32_t i) const { return Is(i - 1, ".") || Is(i - 1, "->"); }
  // The token's match, or kNone.
  uint32_t match(uint32_t i) const {
    return i < tokens_.size() ? tokens_[i].match : kNone;
  }
  // True for an opening bracket with a match.
  bool Opens(uint32_t i) const {
    return i < tokens_.size() && tokens_[i].match != kNone &&
           tokens_[i].match > i;
  }
  // True for an opening parenthesis with a match.
  bool OpensParentheses(uint32_t i) const { return Is(i, "(") && Opens(i); }
  // Returns the next token; behind the match, for an opening bracket.
  uint32_t Skip(uint32_t i) const {
    return (Opens(i) ? tokens_[i].match : i) + 1;
  }

  // Splits tokens first to last - 1 at commas outside of brackets.
  std::vector<Piece> SplitAtCommas(uint32_t first, uint32_t last) const;
  // Finds the name that a declarator declares: the last one before its [], = or
  // attributes. Returns kNone if it declares no name.
  uint32_t FindDeclaredName(uint32_t first, uint32_t last) const;
  // Returns the text of string literals in a row, without quotes and escapes.
  std::string ReadString(uint32_t first, uint32_t last) const;
  // True if token i is the first [ of an attribute list.
  bool IsAttributeList(uint32_t i) const;
  // Finds the attributes of all lists within tokens first to last - 1.
  std::vector<Attribute> FindAttributes(uint32_t first, uint32_t last) const;
  // True if the attribute is C++'s or Clang's own, not Metal's.
  bool IsOfClang(const Attribute& attribute) const;

  // Edits leave every token on its line: blanks replace erased tokens, and
  // insertions have no newline.

  void Erase(uint32_t token);
  // Erases tokens first to last - 1, the pragmas between them, and all
  // insertions at them, earlier and later ones.
  void Erase(uint32_t first, uint32_t last);
  // Erases bytes begin to end - 1 of the source, outside of tokens.
  void EraseBytes(uint32_t begin, uint32_t end);
  bool IsErased(uint32_t token) const {
    return states_[token] == State::kErased;
  }
  // `by` must not be longer than the token.
  void Replace(uint32_t token, std::string_view by);
  // Later insertions are further from the token.
  void InsertBefore(uint32_t token, std::string text);
  void InsertBehind(uint32_t token, std::string text);
  // Writes the text over the blanks before the token, and inserts the rest if
  // the blanks are too few.
  void PutBefore(uint32_t token, std::string_view text);
  // Returns the token after edits, without insertions.
  std::string_view edited(uint32_t token) const;
  // Returns tokens first to last - 1 after edits, on one line.
  std::string edited(uint32_t first, uint32_t last) const;
  // Returns the text with all edits. No edits may follow.
  std::string Finish();

 private:
  class Lexer;
  enum class State : uint8_t { kAsItIs, kErased, kReplaced };
  struct Insertion {
    uint32_t at;
    uint32_t token;
    int64_t order;  // among insertions at one place
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

  std::string code_;  // the source with all edits but insertions
  std::vector<State> states_;
  std::vector<bool> drops_insertions_;
  std::vector<Insertion> insertions_;
  int64_t behind_ = 0;
  int64_t before_ = int64_t{1} << 62;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_TEXT_H_
