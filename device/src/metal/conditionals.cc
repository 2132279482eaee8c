// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "device/src/metal/edits.h"

namespace switchyard::device::metal {
namespace {

bool NamesSmallFloats(const Tokens& tokens) {
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens.Text(i);
    if (text.find("half") != text.npos || text.find("bfloat") != text.npos) {
      return true;
    }
  }
  return false;
}

// The expression of one bracket, statement or argument: its begin and its
// conditionals.
struct Expression {
  struct Conditional {
    uint32_t begin, question, colon;
  };
  // In [], where only integers are, and which may be of a local class.
  bool is_left_alone = false;
  uint32_t begin = kNone;  // kNone: none that may be marked
  std::vector<Conditional> conditionals;
};

class Marker {
 public:
  Marker(const Tokens& tokens, Edits& edits) : tokens_(tokens), edits_(edits) {}

  void Run() {
    stack_.emplace_back();
    for (uint32_t i = 0; i < tokens_.size();) i = Step(i);
  }

 private:
  // Returns the next token to look at.
  uint32_t Step(uint32_t i) {
    const std::string_view text = tokens_.Text(i);
    if (text == "(" || text == "[") {
      Push(text == "[");
      Begin(i + 1);
    } else if (text == "{") {
      // A bracket of a list, or of statements.
      const bool is_list = tokens_.Is(i - 1, "=") || tokens_.Is(i - 1, "(") ||
                           tokens_.Is(i - 1, ",");
      Reset();
      Push(false);
      if (is_list) Begin(i + 1);
    } else if (text == ")" || text == "]" || text == "}") {
      End(i);
      if (stack_.size() > 1) stack_.pop_back();
      if (text == "}") Reset();
    } else if (text == ";") {
      End(i);
      Reset();
    } else if (text == ",") {
      End(i);
      if (Top().begin != kNone) Begin(i + 1);
    } else if (text == "return" || IsAssignment(i)) {
      // Its left side is no part of a conditional on the right.
      if (Top().conditionals.empty()) Begin(i + 1);
    } else if (text == "?") {
      Top().conditionals.push_back({Begin(), i, kNone});
    } else if (text == ":") {
      Colon(i);
    } else if (text == "<" && tokens_.Opens(i)) {
      // Template arguments, or what only looks like them.
      const uint32_t next = tokens_.Match(i) + 1;
      if (!tokens_.Is(next, "(") && !tokens_.Is(next, "::")) Reset();
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
  void Begin(uint32_t i) {
    Top().begin = Top().is_left_alone ? kNone : i;
    Top().conditionals.clear();
  }
  // The begin of the next conditional: a part of another one, or the
  // expression.
  uint32_t Begin() {
    if (Top().begin == kNone || Top().conditionals.empty()) return Top().begin;
    const Expression::Conditional& outer = Top().conditionals.back();
    return (outer.colon == kNone ? outer.question : outer.colon) + 1;
  }

  bool IsAssignment(uint32_t i) const {
    if (!tokens_.Is(i, "=")) return false;
    const uint32_t at = tokens_.list[i].begin;
    const std::string_view text = tokens_.text;
    const char before = at > 0 ? text[at - 1] : ' ';
    if (at + 1 < text.size() && text[at + 1] == '=') return false;
    if (before == '<' || before == '>') {  // <<= is one, <= is none
      return at > 1 && text[at - 2] == before;
    }
    return before != '=' && before != '!';
  }

  // Sets the colon of the innermost that has none; those within its second part
  // are done.
  void Colon(uint32_t i) {
    std::vector<Expression::Conditional>& all = Top().conditionals;
    while (!all.empty() && all.back().colon != kNone) {
      Mark(all.back(), i);
      all.pop_back();
    }
    if (all.empty()) {
      Reset();  // a label, or for (a : b)
    } else {
      all.back().colon = i;
    }
  }

  void End(uint32_t i) {
    for (auto c = Top().conditionals.rbegin(); c != Top().conditionals.rend();
         ++c) {
      if (c->colon != kNone) Mark(*c, i);
    }
    Top().conditionals.clear();
  }

  // Whether it is a literal: it has none of those types and stays, because 0
  // may be a null pointer.
  bool IsLiteral(uint32_t first, uint32_t last) const {
    if (first + 1 != last) return false;
    const std::string_view text = tokens_.Text(first);
    if (tokens_.list[first].kind != Token::Kind::kNumber) {
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
    edits_.InsertBefore(c.begin, "switchyard_metal::Either(");
    if (!first) Arm(c.question + 1, c.colon);
    if (!second) Arm(c.colon + 1, end);
    edits_.InsertBehind(end - 1, ")");
  }

  void Arm(uint32_t first, uint32_t last) {
    edits_.InsertBefore(first, "(");
    edits_.InsertBehind(last - 1, ", switchyard_metal::Arm())");
  }

  const Tokens& tokens_;
  Edits& edits_;
  std::vector<Expression> stack_;
};

}  // namespace

void MarkConditionals(const Tokens& tokens, Edits& edits) {
  if (NamesSmallFloats(tokens)) Marker(tokens, edits).Run();
}

}  // namespace switchyard::device::metal
