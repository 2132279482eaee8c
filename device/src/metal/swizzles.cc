// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "device/src/metal/edits.h"

namespace switchyard::device::metal {
namespace {

// Which element a letter names, in either set of them.
size_t IndexOf(char letter) {
  const size_t position = std::string_view("xyzw").find(letter);
  return position != std::string_view::npos
             ? position
             : std::string_view("rgba").find(letter);
}

bool IsSwizzle(std::string_view word) {
  return !word.empty() && word.size() <= 4 &&
         (word.find_first_not_of("xyzw") == word.npos ||
          word.find_first_not_of("rgba") == word.npos);
}

// Empty if the second is none, or of more than the first has.
std::string OfBoth(const std::string& first, std::string_view second) {
  std::string both;
  if (!IsSwizzle(second)) return both;
  for (const char letter : second) {
    if (IndexOf(letter) >= first.size()) return std::string();
    both += first[IndexOf(letter)];
  }
  return both;
}

class Resolver {
 public:
  Resolver(const Tokens& tokens, Edits& edits)
      : tokens_(tokens), edits_(edits) {}

  void Run() {
    FindNames();
    for (uint32_t i = 0; i < tokens_.size(); ++i) {
      if (IsVectors(i)) i = Compose(i);
    }
    for (uint32_t i = 1; i < tokens_.size(); ++i) {
      if (tokens_.Is(i, "(") && tokens_.Opens(i) && IsCall(i)) {
        Arguments(i);
      } else if (tokens_.Is(i, "=") && tokens_.IsIdentifier(i - 1) &&
                 tokens_.Is(i - 2, "auto")) {
        MakeVector(i + 1, ";");
      }
    }
  }

 private:
  bool IsMember(uint32_t i) const {
    return tokens_.Is(i - 1, ".") || tokens_.Is(i - 1, "->");
  }

  // Members of classes with names like swizzles, and functions with a body.
  void FindNames() {
    std::vector<bool> classes = {false};  // whether the braces are one's
    bool begins = false;
    for (uint32_t i = 0; i < tokens_.size(); ++i) {
      const std::string_view text = tokens_.Text(i);
      if (text == "struct" || text == "class" || text == "union") {
        begins = true;
      } else if (text == "{") {
        classes.push_back(begins);
        begins = false;
      } else if (text == "}") {
        if (classes.size() > 1) classes.pop_back();
      } else if (text == ";" || text == ")" || text == "=") {
        begins = false;
      }
      if (!tokens_.IsIdentifier(i)) continue;
      if (classes.back() && IsSwizzle(text) && !IsMember(i)) {
        declared_.insert(text);
      }
      if (!tokens_.Is(i + 1, "(") || !tokens_.Opens(i + 1)) continue;
      uint32_t next = tokens_.Match(i + 1) + 1;
      for (; tokens_.IsIdentifier(next); ++next) {
        const std::string_view word = tokens_.Text(next);
        if (word != "const" && word != "thread" && word != "device" &&
            word != "threadgroup" && word != "constant") {
          break;
        }
      }
      if (tokens_.Is(next, "{")) functions_.insert(tokens_.Text(i));
    }
    for (const std::string_view word : {"if", "for", "while", "switch"}) {
      functions_.erase(word);
    }
  }

  // Several elements of a vector.
  bool IsVectors(uint32_t i) const {
    return tokens_.IsIdentifier(i) && tokens_.Text(i).size() > 1 &&
           IsSwizzle(tokens_.Text(i)) && IsMember(i) &&
           declared_.count(tokens_.Text(i)) == 0 && !tokens_.Is(i + 1, "(");
  }

  // Returns the last token of it.
  uint32_t Compose(uint32_t first) {
    std::string letters(tokens_.Text(first));
    uint32_t last = first;
    while (tokens_.Is(last + 1, ".") && !tokens_.Is(last + 3, "(")) {
      const std::string both = OfBoth(letters, tokens_.Text(last + 2));
      if (both.empty()) break;
      letters = both;
      edits_.Blank(last + 1);
      edits_.Blank(last + 2);
      last += 2;
    }
    if (last != first && letters.size() <= tokens_.Text(first).size()) {
      edits_.Become(first, letters);
    } else if (last != first) {
      edits_.Blank(first);
      edits_.InsertBehind(first, letters);
    }
    return last;
  }

  bool IsCall(uint32_t open) const {
    uint32_t name = open - 1;
    if (tokens_.Is(name, ">") && tokens_.Match(name) != kNone) {
      name = tokens_.Match(name) - 1;
    }
    return tokens_.IsIdentifier(name) &&
           functions_.count(tokens_.Text(name)) != 0;
  }

  void Arguments(uint32_t open) {
    const uint32_t close = tokens_.Match(open);
    uint32_t begin = open + 1;
    for (uint32_t i = begin; i <= close; i = tokens_.Skip(i)) {
      if (i != close && !tokens_.Is(i, ",")) continue;
      MakeVector(begin, tokens_.Text(i));
      begin = i + 1;
    }
  }

  // If it is a swizzle of something without an operator, up to `end`.
  void MakeVector(uint32_t first, std::string_view end) {
    uint32_t i = first;
    if (!tokens_.IsIdentifier(i) && !tokens_.Is(i, "(")) return;
    uint32_t last = i;
    for (i = tokens_.Skip(i); i < tokens_.size();) {
      const std::string_view text = tokens_.Text(i);
      if (text == "." || text == "->" || text == "::") {
        last = i + 1;
        i += 2;
      } else if ((text == "[" || text == "(" || text == "<") &&
                 tokens_.Opens(i)) {
        last = i;
        i = tokens_.Skip(i);
      } else {
        break;
      }
    }
    if (!tokens_.Is(i, end)) return;
    // A swizzle's size is the length of its last name.
    const bool composed = IsSwizzle(tokens_.Text(last)) &&
                          tokens_.Text(last).size() > 1 && IsMember(last) &&
                          IsVectors(last - 2);
    if (IsVectors(last) || composed) edits_.InsertBefore(first, "+");
  }

  const Tokens& tokens_;
  Edits& edits_;
  std::unordered_set<std::string_view> declared_, functions_;
};

}  // namespace

void ResolveSwizzles(const Tokens& tokens, Edits& edits) {
  Resolver(tokens, edits).Run();
}

}  // namespace switchyard::device::metal
