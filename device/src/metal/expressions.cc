// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/expressions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace switchyard::device::metal {
namespace {

bool NamesSmallFloats(const Text& text) {
  for (uint32_t i = 0; i < text.size(); ++i) {
    const std::string_view word = text.word(i);
    if (word.find("half") != word.npos || word.find("bfloat") != word.npos) {
      return true;
    }
  }
  return false;
}

// The expression in a bracket, a statement or an argument: where it begins,
// and its conditionals.
struct Expression {
  struct Conditional {
    uint32_t begin, question, colon;
  };
  // True in [], where conditionals are not marked. Expressions in [] contain
  // only integers, so they need no marks. In a local class a mark would even be
  // an error, because it takes references to constants of the surrounding
  // function.
  bool is_left_alone = false;
  uint32_t begin = kNone;  // kNone if no conditional in it may be marked
  std::vector<Conditional> conditionals;
};

class ConditionalMarker {
 public:
  explicit ConditionalMarker(Text& text) : text_(text) {}

  void Run() {
    stack_.emplace_back();
    for (uint32_t i = 0; i < text_.size();) i = Step(i);
  }

 private:
  // Handles token i, and returns the next token to handle.
  uint32_t Step(uint32_t i) {
    const std::string_view text = text_.word(i);
    if (text == "(" || text == "[") {
      Push(text == "[");
      BeginExpression(i + 1);
    } else if (text == "{") {
      // This brace begins an initializer list or statements.
      const bool is_list =
          text_.Is(i - 1, "=") || text_.Is(i - 1, "(") || text_.Is(i - 1, ",");
      Reset();
      Push(false);
      if (is_list) BeginExpression(i + 1);
    } else if (text == ")" || text == "]" || text == "}") {
      EndExpression(i);
      if (stack_.size() > 1) stack_.pop_back();
      if (text == "}") Reset();
    } else if (text == ";") {
      EndExpression(i);
      Reset();
    } else if (text == ",") {
      EndExpression(i);
      if (Top().begin != kNone) BeginExpression(i + 1);
    } else if (text == "return" || IsAssignment(i)) {
      // The left side of an assignment is not part of a conditional on the
      // right side.
      if (Top().conditionals.empty()) BeginExpression(i + 1);
    } else if (text == "?") {
      Top().conditionals.push_back({FindBegin(), i, kNone});
    } else if (text == ":") {
      SetColon(i);
    } else if (text == "<" && text_.Opens(i)) {
      // These are template arguments, or a comparison that looks like them.
      const uint32_t next = text_.match(i) + 1;
      if (!text_.Is(next, "(") && !text_.Is(next, "::")) Reset();
      return next;
    }
    return i + 1;
  }

  Expression& Top() { return stack_.back(); }
  void Push(bool is_left_alone) {
    is_left_alone = is_left_alone || Top().is_left_alone;
    stack_.emplace_back();
    Top().is_left_alone = is_left_alone;
  }
  void Reset() {
    Top().begin = kNone;
    Top().conditionals.clear();
  }
  void BeginExpression(uint32_t i) {
    Top().begin = Top().is_left_alone ? kNone : i;
    Top().conditionals.clear();
  }
  // Finds where the conditional of a ? begins: at an arm of an outer
  // conditional, or at the beginning of the expression.
  uint32_t FindBegin() {
    if (Top().begin == kNone || Top().conditionals.empty()) return Top().begin;
    const Expression::Conditional& outer = Top().conditionals.back();
    return (outer.colon == kNone ? outer.question : outer.colon) + 1;
  }

  bool IsAssignment(uint32_t i) const {
    if (!text_.Is(i, "=")) return false;
    const uint32_t at = text_.token(i).begin;
    const std::string_view text = text_.source();
    const char before = at > 0 ? text[at - 1] : ' ';
    if (at + 1 < text.size() && text[at + 1] == '=') return false;
    if (before == '<' || before == '>') {  // <<= is an assignment, <= is not
      return at > 1 && text[at - 2] == before;
    }
    return before != '=' && before != '!';
  }

  // Gives the colon to the innermost conditional that has no colon yet.
  // Conditionals inside that conditional's second operand end here.
  void SetColon(uint32_t i) {
    std::vector<Expression::Conditional>& all = Top().conditionals;
    while (!all.empty() && all.back().colon != kNone) {
      Mark(all.back(), i);
      all.pop_back();
    }
    if (all.empty()) {
      Reset();  // the colon of a label, or of for (a : b)
    } else {
      all.back().colon = i;
    }
  }

  void EndExpression(uint32_t i) {
    for (auto c = Top().conditionals.rbegin(); c != Top().conditionals.rend();
         ++c) {
      if (c->colon != kNone) Mark(*c, i);
    }
    Top().conditionals.clear();
  }

  // True if an arm is a literal, but not a half or bfloat. Such an arm is not
  // marked, because a 0 may be a null pointer.
  bool IsLiteral(uint32_t first, uint32_t last) const {
    if (first + 1 != last) return false;
    const std::string_view text = text_.word(first);
    if (!text_.IsNumber(first)) {
      return text == "nullptr" || text == "true" || text == "false";
    }
    const std::string_view suffix =
        text.substr(text.size() - std::min<size_t>(text.size(), 2));
    return suffix.back() != 'h' && suffix.back() != 'H' &&
           ((suffix != "bf" && suffix != "BF") || text.substr(0, 2) == "0x");
  }

  void Mark(const Expression::Conditional& c, uint32_t end) {
    if (c.begin == kNone || c.begin >= c.question ||
        c.question + 1 >= c.colon || c.colon + 1 >= end) {
      return;
    }
    const bool first = IsLiteral(c.question + 1, c.colon);
    const bool second = IsLiteral(c.colon + 1, end);
    if (first && second) return;
    text_.InsertBefore(c.begin, "switchyard_metal::Either(");
    if (!first) MarkArm(c.question + 1, c.colon);
    if (!second) MarkArm(c.colon + 1, end);
    text_.InsertBehind(end - 1, ")");
  }

  void MarkArm(uint32_t first, uint32_t last) {
    text_.InsertBefore(first, "(");
    text_.InsertBehind(last - 1, ", switchyard_metal::Arm())");
  }

  Text& text_;
  std::vector<Expression> stack_;
};

// Returns the index that a letter has in xyzw or rgba.
size_t FindElement(char letter) {
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

// Returns the one swizzle that has the effect of two swizzles in a row.
// Returns an empty text if the second is no swizzle, or names elements that
// the first lacks.
std::string ComposeSwizzles(const std::string& first, std::string_view second) {
  std::string both;
  if (!IsSwizzle(second)) return both;
  for (const char letter : second) {
    if (FindElement(letter) >= first.size()) return std::string();
    both += first[FindElement(letter)];
  }
  return both;
}

class SwizzleResolver {
 public:
  explicit SwizzleResolver(Text& text) : text_(text) {}

  void Run() {
    FindNames();
    for (uint32_t i = 0; i < text_.size(); ++i) {
      if (IsVectorSwizzle(i)) i = Compose(i);
    }
    for (uint32_t i = 1; i < text_.size(); ++i) {
      if (text_.OpensParentheses(i) && IsCall(i)) {
        MakeVectors(i);
      } else if (text_.Is(i, "=") && text_.IsIdentifier(i - 1) &&
                 text_.Is(i - 2, "auto")) {
        MakeVector(i + 1, ";");
      }
    }
  }

 private:
  // Collects the names of members that look like swizzles, and of functions
  // that have a body.
  void FindNames() {
    // Has an element for each open brace.
    std::vector<bool> is_class = {false};
    bool begins_class = false;
    for (uint32_t i = 0; i < text_.size(); ++i) {
      const std::string_view text = text_.word(i);
      if (text == "struct" || text == "class" || text == "union") {
        begins_class = true;
      } else if (text == "{") {
        is_class.push_back(begins_class);
        begins_class = false;
      } else if (text == "}") {
        if (is_class.size() > 1) is_class.pop_back();
      } else if (text == ";" || text == ")" || text == "=") {
        begins_class = false;
      }
      if (!text_.IsIdentifier(i)) continue;
      if (is_class.back() && IsSwizzle(text) && !text_.IsMember(i)) {
        declared_.insert(text);
      }
      if (!text_.OpensParentheses(i + 1)) continue;
      uint32_t next = text_.match(i + 1) + 1;
      for (; text_.IsIdentifier(next); ++next) {
        const std::string_view word = text_.word(next);
        if (word != "const" && word != "thread" && word != "device" &&
            word != "threadgroup" && word != "constant") {
          break;
        }
      }
      if (text_.Is(next, "{")) functions_.insert(text_.word(i));
    }
    for (const std::string_view word : {"if", "for", "while", "switch"}) {
      functions_.erase(word);
    }
  }

  // True for a swizzle of two to four elements.
  bool IsVectorSwizzle(uint32_t i) const {
    return text_.IsIdentifier(i) && text_.word(i).size() > 1 &&
           IsSwizzle(text_.word(i)) && text_.IsMember(i) &&
           declared_.count(text_.word(i)) == 0 && !text_.Is(i + 1, "(");
  }

  // Joins a swizzle with the swizzles behind it into one. Returns the last
  // token.
  uint32_t Compose(uint32_t first) {
    std::string letters(text_.word(first));
    uint32_t last = first;
    while (text_.Is(last + 1, ".") && !text_.Is(last + 3, "(")) {
      const std::string both = ComposeSwizzles(letters, text_.word(last + 2));
      if (both.empty()) break;
      letters = both;
      text_.Erase(last + 1);
      text_.Erase(last + 2);
      last += 2;
    }
    if (last != first && letters.size() <= text_.word(first).size()) {
      text_.Replace(first, letters);
    } else if (last != first) {
      text_.Erase(first);
      text_.InsertBehind(first, letters);
    }
    return last;
  }

  bool IsCall(uint32_t open) const {
    uint32_t name = open - 1;
    if (text_.Is(name, ">") && text_.match(name) != kNone) {
      name = text_.match(name) - 1;
    }
    return text_.IsIdentifier(name) && functions_.count(text_.word(name)) != 0;
  }

  void MakeVectors(uint32_t open) {
    const uint32_t close = text_.match(open);
    uint32_t begin = open + 1;
    for (uint32_t i = begin; i <= close; i = text_.Skip(i)) {
      if (i != close && !text_.Is(i, ",")) continue;
      MakeVector(begin, text_.word(i));
      begin = i + 1;
    }
  }

  // If the tokens from `first` up to `end` are an operand without operators
  // that ends in a swizzle, puts a plus before it.
  void MakeVector(uint32_t first, std::string_view end) {
    uint32_t i = first;
    if (!text_.IsIdentifier(i) && !text_.Is(i, "(")) return;
    uint32_t last = i;
    for (i = text_.Skip(i); i < text_.size();) {
      const std::string_view text = text_.word(i);
      if (text == "." || text == "->" || text == "::") {
        last = i + 1;
        i += 2;
      } else if ((text == "[" || text == "(" || text == "<") &&
                 text_.Opens(i)) {
        last = i;
        i = text_.Skip(i);
      } else {
        break;
      }
    }
    if (!text_.Is(i, end)) return;
    // A composed swizzle has as many elements as its last name has letters.
    const bool is_composed = IsSwizzle(text_.word(last)) &&
                             text_.word(last).size() > 1 &&
                             text_.IsMember(last) && IsVectorSwizzle(last - 2);
    if (IsVectorSwizzle(last) || is_composed) text_.InsertBefore(first, "+");
  }

  Text& text_;
  std::unordered_set<std::string_view> declared_, functions_;
};

}  // namespace

void MarkConditionals(Text& text) {
  if (NamesSmallFloats(text)) ConditionalMarker(text).Run();
}

void ResolveSwizzles(Text& text) { SwizzleResolver(text).Run(); }

}  // namespace switchyard::device::metal
