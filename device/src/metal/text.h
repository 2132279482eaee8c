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
  // The index of the other one of a pair of (), [], {} or, as far as it looks
  // like one, <>.
  uint32_t match;
  Kind kind;

  uint32_t end() const { return begin + size; }
  uint32_t column() const { return begin - line_begin + 1; }
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

// Has no tokens of system headers, because the shim is one to the preprocessor.
// Words, pairs and attributes are the source's before edits; only edited() and
// Finish() show the edits. The word of any index behind the last token is
// empty.
class Text {
 public:
  // `source` has less than 4 GiB and outlives this. Takes linear time for any
  // source.
  explicit Text(std::string_view source);

  std::string_view source() const { return source_; }
  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  const Token& token(uint32_t i) const { return tokens_[i]; }
  const std::vector<Pragma>& pragmas() const { return pragmas_; }
  // Not empty if the source is not preprocessed.
  const std::vector<Comment>& comments() const { return comments_; }
  // As in line markers, unescaped. The first has no name.
  const std::vector<std::string>& files() const { return files_; }
  // Those of `files` that are no system headers.
  const std::set<std::string>& user_files() const { return user_files_; }
  // True if each of (), [] and {} has a match.
  bool is_balanced() const { return is_balanced_; }
  // How often a word was looked at: the cost of the translation.
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
  // True for the name of a member: behind . or ->.
  bool IsMember(uint32_t i) const { return Is(i - 1, ".") || Is(i - 1, "->"); }
  // The token's match, or kNone.
  uint32_t match(uint32_t i) const {
    return i < tokens_.size() ? tokens_[i].match : kNone;
  }
  // True if it opens a pair.
  bool Opens(uint32_t i) const {
    return i < tokens_.size() && tokens_[i].match != kNone &&
           tokens_[i].match > i;
  }
  // True for an opening parenthesis with a match.
  bool OpensParentheses(uint32_t i) const { return Is(i, "(") && Opens(i); }
  // Returns the token behind it and all that it opens.
  uint32_t Skip(uint32_t i) const {
    return (Opens(i) ? tokens_[i].match : i) + 1;
  }

  // Splits tokens first to last - 1 at commas outside of brackets.
  std::vector<Piece> SplitAtCommas(uint32_t first, uint32_t last) const;
  // Finds the name that a declarator declares: the last one before its [], = or
  // attributes. Returns kNone if it declares no name.
  uint32_t FindDeclaredName(uint32_t first, uint32_t last) const;
  // The text of a string literal or several in a row, quotes and escapes apart.
  std::string ReadString(uint32_t first, uint32_t last) const;
  // True if token i is the first [ of an attribute list.
  bool IsAttributeList(uint32_t i) const;
  // Finds the attributes of all lists within tokens first to last - 1.
  std::vector<Attribute> FindAttributes(uint32_t first, uint32_t last) const;
  // True if the attribute is C++'s or Clang's own.
  bool IsOfClang(const Attribute& attribute) const;

  // Edits leave every token on its line: blanks take the place of an erased
  // one, and insertions have one line.

  void Erase(uint32_t token);
  // Tokens first to last - 1, the pragmas between, and all that is inserted at
  // them, before and after this call.
  void Erase(uint32_t first, uint32_t last);
  // Bytes begin to end - 1 of the source, which are no token's.
  void EraseBytes(uint32_t begin, uint32_t end);
  bool IsErased(uint32_t token) const {
    return states_[token] == State::kErased;
  }
  // `by` is no longer than the token.
  void Replace(uint32_t token, std::string_view by);
  // Later insertions are further from the token.
  void InsertBefore(uint32_t token, std::string text);
  void InsertBehind(uint32_t token, std::string text);
  // Over the blanks before the token, as far as there are enough of them.
  void PutBefore(uint32_t token, std::string_view text);
  // The word of the token after edits, without insertions.
  std::string_view edited(uint32_t token) const;
  // The tokens from first to last - 1 that are not erased, on one line.
  std::string edited(uint32_t first, uint32_t last) const;
  // The text with all edits. No more edits afterwards.
  std::string Finish();

 private:
  class Lexer;
  enum class State : uint8_t { kAsItIs, kErased, kReplaced };
  struct Insertion {
    uint32_t at;
    uint32_t token;
    int64_t order;  // among those at one place
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
