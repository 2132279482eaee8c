// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/allow_comments.h"

#include <algorithm>
#include <stdexcept>

#include "device/src/metal/text.h"

namespace switchyard::device::metal {
namespace {

constexpr std::string_view kName = "switchyard:";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Parses the text between the parentheses of allow(). Returns an error or an
// empty text.
std::string ParseKinds(std::string_view list, FindingKinds* all) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    FindingKinds kinds = 0;
    const std::string why = KindsNamed(
        std::string(Trimmed(list.substr(begin, end - begin))), &kinds);
    if (!why.empty()) {
      return why + (kinds != 0 ? ""
                               : ": race, missing-barrier, barrier-flags, "
                                 "missing-memory-barrier, same-value or "
                                 "never-written");
    }
    *all |= kinds;
    begin = end + 1;
  }
  return std::string();
}

// Reads the allow() comments of one file.
class CommentReader {
 public:
  CommentReader(std::string_view text, const std::string& file,
                AllowComments* comments)
      : text_(text), name_(file), comments_(comments) {}

  void Run() {
    for (const Comment& comment : text_.comments()) ReadComment(comment);
    // A comment in a directive is missing from comments(), because the lexer
    // returns it as a part of the directive.
    for (const Pragma& pragma : text_.pragmas()) ReadDirective(pragma);
  }

 private:
  const std::string& File(uint32_t file) const {
    return file == 0 ? name_ : text_.files()[file];
  }

  // Sets the comment's line and column to those of byte `at`. The search for
  // newlines starts at byte `begin`, which is on line `line`; this line begins
  // at byte `line_begin`.
  void SetPlace(size_t at, size_t begin, size_t line_begin, uint32_t line,
                AllowComment& comment) const {
    for (size_t i = begin; i < at; ++i) {
      if (text_.source()[i] != '\n') continue;
      ++line;
      line_begin = i + 1;
    }
    comment.line = line;
    comment.column = static_cast<uint32_t>(at - line_begin + 1);
  }

  [[noreturn]] static void Fail(const AllowComment& comment,
                                const std::string& what) {
    throw std::runtime_error(comment.file + ":" + std::to_string(comment.line) +
                             ":" + std::to_string(comment.column) +
                             ": error: switchyard: " + what);
  }

  void ReadComment(const Comment& c) {
    const std::string_view text =
        text_.source().substr(c.begin, c.end - c.begin);
    const size_t first = text.find_first_not_of("/*!< \t");
    for (size_t at = 0; (at = text.find(kName, at)) != text.npos;) {
      const size_t begin = at;
      AllowComment comment;
      comment.file = File(c.file);
      SetPlace(c.begin + begin, c.begin, c.line_begin, c.line, comment);
      at += kName.size();
      const std::string_view rest = text.substr(at);
      const size_t word = rest.find_first_not_of(" \t");
      const bool allows = word != rest.npos && rest.substr(word, 5) == "allow";
      const size_t open =
          allows ? rest.find_first_not_of(" \t", word + 5) : rest.npos;
      if (open == rest.npos || rest[open] != '(') {
        // In the middle of a sentence, "switchyard:" may be just the
        // project's name.
        if (begin != first) continue;
        Fail(comment, "expected allow(KIND, ...)");
      }
      const size_t close = rest.find(')', open);
      if (close == rest.npos)
        Fail(comment, "allow(...) has no closing parenthesis");
      const std::string_view kinds =
          Trimmed(rest.substr(open + 1, close - open - 1));
      const std::string why = ParseKinds(kinds, &comment.bits);
      if (!why.empty()) Fail(comment, why);
      comment.kinds = kinds;
      SetCode(c, comment);
      comments_->Add(comment);
    }
  }

  // Finds the line to which the comment applies. It is the comment's own line
  // if code stands before the comment, or else the next line with code.
  void SetCode(const Comment& c, AllowComment& comment) const {
    const auto on_line = [&](uint32_t i) {
      return i < text_.size() && text_.token(i).file == c.file &&
             text_.token(i).line == c.line;
    };
    const uint32_t token =
        c.token != 0 && on_line(c.token - 1) ? c.token - 1 : c.token;
    if (token >= text_.size()) Fail(comment, "no code follows it");
    comment.file = File(text_.token(token).file);
    comment.code_line = text_.token(token).line;
  }

  void ReadDirective(const Pragma& pragma) const {
    const std::string_view text =
        text_.source().substr(pragma.begin, pragma.end - pragma.begin);
    const size_t comment =
        std::min(text.find("//"), std::min(text.find("/*"), text.size()));
    const size_t at = text.find(kName, comment);
    if (at == text.npos) return;
    const size_t word = text.find_first_not_of(" \t", at + kName.size());
    if (word == text.npos || text.substr(word, 5) != "allow") return;
    AllowComment place;
    place.file = File(pragma.file);
    SetPlace(pragma.begin + at, pragma.begin, pragma.begin, pragma.line, place);
    Fail(place,
         "a directive makes no accesses: put the comment where the macro is "
         "used");
  }

  const Text text_;
  const std::string& name_;
  AllowComments* const comments_;
};

}  // namespace

void AllowComments::Read(std::string_view text, const std::string& file) {
  // Most files have no allow() comment, so the lexer need not run.
  if (text.find(kName) == text.npos) return;
  CommentReader(text, file, this).Run();
}

void AllowComments::Add(const AllowComment& comment) {
  list_.emplace_back();
  AllowComment& added = list_.back();
  added.kinds = comment.kinds;
  added.bits = comment.bits;
  added.file = comment.file;
  added.line = comment.line;
  added.column = comment.column;
  added.code_line = comment.code_line;
  same_value_ = same_value_ || comment.bits == BitOf(FindingKind::kSameValue);
}

bool AllowComments::Allows(FindingKind kind, const Place& place) const {
  for (const AllowComment& comment : list_) {
    if ((comment.bits & BitOf(kind)) == 0 || comment.code_line != place.line ||
        comment.file != place.file) {
      continue;
    }
    ++comment.suppressed;
    return true;
  }
  return false;
}

}  // namespace switchyard::device::metal
