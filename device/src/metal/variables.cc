// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Program-scope constants, and variables in threadgroup memory.

#include <algorithm>
#include <string>
#include <utility>

#include "device/src/metal/walker.h"

namespace switchyard::device::metal {

void Walker::Variable(const Declaration& d, const std::string& scope) {
  if (tokens_.Is(d.head, "using") || tokens_.Is(d.head, "typedef")) return;
  uint32_t constant = kNone, threadgroup = kNone, pointer = kNone;
  const uint32_t end = std::min(std::min(d.initializer, d.open), d.end);
  for (uint32_t i = d.head; i < end; i = tokens_.Skip(i)) {
    if (tokens_.Is(i, "constant")) constant = i;
    if (tokens_.Is(i, "threadgroup")) threadgroup = i;
    if (tokens_.Is(i, "*") || tokens_.Is(i, "&")) pointer = i;
  }
  if (threadgroup != kNone && pointer == kNone) {
    AddUnsupported("a threadgroup variable outside of a function", threadgroup,
                   "");
  }
  if (d.initializer != kNone && pointer == kNone) {
    const uint32_t name = DeclaredName(tokens_, d.head, d.initializer);
    if (name != kNone && name + 1 == d.initializer) {
      constants_.Add(
          tokens_.Text(name),
          constants_.Evaluate(tokens_, d.initializer + 1, d.end - 1));
    }
  }
  if (constant == kNone) return;
  for (const Attribute& a : Attributes(tokens_, d.head, d.end)) {
    if (!d.IsFunction() && tokens_.Is(a.name, "function_constant")) {
      return FunctionConstants(d, scope);
    }
  }
  if (NeedsFunctionConstants(d.head, d.end)) SetUp(d, scope);
}

void Walker::FunctionConstants(const Declaration& d, const std::string& scope) {
  std::string type, defined;
  for (const Piece& piece : SplitAtCommas(tokens_, d.head, d.end - 1)) {
    const uint32_t name = DeclaredName(tokens_, piece.first, piece.last);
    if (name == kNone) return;
    if (piece.first == d.head) {
      for (uint32_t i = d.head; i < name; ++i) {
        if (tokens_.Is(i, "constant") || tokens_.Is(i, "const") ||
            tokens_.Is(i, "static") || tokens_.Is(i, "constexpr")) {
          edits_.Blank(i);
        }
      }
      type = TypeName(edits_.Text(d.head, name));
    }
    for (const Attribute& a : Attributes(tokens_, piece.first, piece.last)) {
      if (!tokens_.Is(a.name, "function_constant")) continue;
      const auto index = constants_.Evaluate(tokens_, a.first, a.last);
      if (!index) {
        AddUnsupported("a function constant whose index is no number", a.name,
                       "");
        continue;
      }
      const std::string text(tokens_.Text(name));
      specialized_.insert(tokens_.Text(name));
      table_.constants.push_back({scope, text, *index, type});
      defined += " static bool swy_defined_" + text + ";";
    }
  }
  for (uint32_t i = d.head;; ++i) {
    if (!tokens_.Is(i, "constant")) continue;
    edits_.Become(i, "static");
    break;
  }
  edits_.InsertBehind(d.end - 1, defined);
}

bool Walker::NeedsFunctionConstants(uint32_t first, uint32_t last) const {
  for (uint32_t i = first; i < last; ++i) {
    if (tokens_.IsIdentifier(i) && specialized_.count(tokens_.Text(i)) != 0 &&
        !tokens_.Is(i - 1, ".") && !tokens_.Is(i - 1, "->")) {
      return true;
    }
  }
  return false;
}

void Walker::SetUp(const Declaration& d, const std::string& scope) {
  const uint32_t name = DeclaredName(tokens_, d.head, d.end);
  const bool several =
      SplitAtCommas(tokens_, d.head, d.end - 1).size() != 1 ||
      (d.initializer != kNone && tokens_.Is(d.initializer - 1, "]") &&
       tokens_.Is(d.initializer - 2, "["));
  if (name == kNone || several || d.initializer == kNone) {
    return AddUnsupported(
        "function constants in this form of a constant's initializer", d.head,
        "");
  }
  specialized_.insert(tokens_.Text(name));
  bool is_static = false;
  for (uint32_t i = d.head; i < name; i = tokens_.Skip(i)) {
    if (tokens_.Is(i, "const") || tokens_.Is(i, "static") ||
        tokens_.Is(i, "constexpr")) {
      edits_.Blank(i);
    } else if (tokens_.Is(i, "constant")) {
      if (is_static) {
        edits_.Blank(i);
      } else {
        edits_.Become(i, "static");
      }
      is_static = true;
    }
  }
  const std::string text(tokens_.Text(name));
  const std::string function = "swy_set_up_" + std::to_string(next_++);
  // The type without `static`, and what is behind the name.
  std::string type = edits_.Text(d.head, name);
  const size_t word = type.find("static");
  if (word != type.npos) type.erase(word, 6);
  edits_.InsertBefore(d.initializer,
                      "; __attribute__((noinline)) static void " + function +
                          "() { " + type + " swy_value" +
                          edits_.Text(name + 1, d.initializer) + " ");
  edits_.InsertBehind(d.end - 1, " __builtin_memcpy(&" + text +
                                     ", &swy_value, sizeof(" + text + ")); }");
  table_.set_ups.push_back(scope + function);
}

void Walker::Body(uint32_t first, uint32_t last) {
  for (uint32_t i = first; i < last; ++i) {
    if (!tokens_.Is(i, "threadgroup")) continue;
    const uint32_t begin = StatementBegin(i, first);
    if (begin == kNone) continue;
    i = std::max(i, ThreadgroupVariables(begin, last));
  }
}

uint32_t Walker::StatementBegin(uint32_t i, uint32_t first) const {
  // Specifiers and a type may stand before the word, a few tokens.
  for (int steps = 0; steps < 24; ++steps, --i) {
    if (i == first) return i;
    const uint32_t before = i - 1;
    const std::string_view text = tokens_.Text(before);
    if (text == ";" || text == "{" || text == "}" || text == ":") return i;
    const uint32_t match = tokens_.Match(before);
    if (text == ">" && match < before && match > first) {
      i = match + 1;
    } else if (text == ")" && match < before && match > first &&
               (tokens_.Is(match - 1, "alignas") ||
                tokens_.Is(match - 1, "__attribute__"))) {
      i = match + 1;
    } else if (text != "::" && !tokens_.IsIdentifier(before)) {
      return kNone;
    } else if (IsOneOf(text, {"typedef", "using", "return", "sizeof", "new",
                              "case", "else", "do", "goto"})) {
      return kNone;
    }
  }
  return kNone;
}

uint32_t Walker::ThreadgroupVariables(uint32_t first, uint32_t last) {
  uint32_t end = first;
  bool braces = false;
  for (; end < last && !tokens_.Is(end, ";"); end = tokens_.Skip(end)) {
    // No statement; nor is each of many looked at to the end of them all.
    if (tokens_.Is(end, ":") || (braces && tokens_.Is(end, "threadgroup"))) {
      return first;
    }
    braces = braces || tokens_.Is(end, "{");
  }
  if (end >= last) return first;
  const std::vector<Piece> pieces = SplitAtCommas(tokens_, first, end);
  if (pieces.empty()) return first;
  uint32_t type_end = first;  // of struct {...}
  for (uint32_t i = first; i < pieces[0].last; i = tokens_.Skip(i)) {
    if (tokens_.Is(i, "=")) break;
    const bool of_struct = tokens_.Is(i - 1, "struct") ||
                           tokens_.Is(i - 1, "union") ||
                           tokens_.Is(i - 2, "struct");
    if (tokens_.Is(i, "{") && of_struct) type_end = tokens_.Match(i) + 1;
  }
  const uint32_t first_name = DeclaredName(tokens_, type_end, pieces[0].last);
  if (first_name == kNone) return first;
  const std::string number = std::to_string(next_);
  const std::string type = "SwyVariables" + number;
  bool aligned = false;
  for (uint32_t i = first; i < first_name; i = tokens_.Skip(i)) {
    if (tokens_.Is(i, "*") || tokens_.Is(i, "&") || tokens_.Is(i, "(")) {
      if (!tokens_.Is(i - 1, "alignas") && !tokens_.Is(i - 1, "decltype") &&
          !tokens_.Is(i - 1, "__attribute__")) {
        return first;
      }
    }
    aligned =
        aligned || tokens_.Is(i, "alignas") || tokens_.Is(i, "__attribute__");
  }
  std::vector<std::string> names;
  for (const Piece& piece : pieces) {
    const uint32_t name = piece.first == first
                              ? first_name
                              : DeclaredName(tokens_, piece.first, piece.last);
    if (name == kNone) return first;
    uint32_t i = name + 1;
    while (i < piece.last && (tokens_.Is(i, "[") || tokens_.IsIdentifier(i))) {
      const bool align =
          tokens_.Is(i, "__attribute__") || tokens_.Is(i, "alignas");
      aligned = aligned || align;
      i = tokens_.Skip(align && i + 1 < piece.last ? i + 1 : i);
    }
    if (piece.first != first && name != piece.first) {
      AddUnsupported("this form of a threadgroup variable", name, "");
      return first;
    }
    if (i < piece.last) {
      AddUnsupported(
          "the initializer of a threadgroup variable: it has no effect, "
          "threads "
          "have to write what they are to read",
          name, "");
      edits_.Blank(i, piece.last);
    }
    names.emplace_back(tokens_.Text(name));
  }
  ++next_;
  edits_.InsertBefore(first, "struct " + type + " { ");
  for (uint32_t i = first; i < first_name; ++i) {
    if (tokens_.Is(i, "static")) edits_.Blank(i);
  }
  const std::string call = "switchyard_metal::ThreadgroupVariable<";
  std::string code = " };";
  if (aligned) {
    const std::string all = "swy_variables_" + number;
    code += " auto& " + all + " = " + call + type + ">([] {}, \"" + names[0] +
            "\");";
    for (const std::string& name : names) {
      code += " auto& " + name + " = " + all + "." + name + ";";
    }
  } else {
    for (const std::string& name : names) {
      code += " auto& " + name + " = " + call + "decltype(" + type +
              "::" + name + ")>([] {}, \"" + name + "\");";
    }
  }
  edits_.InsertBehind(end, std::move(code));
  return end;
}

}  // namespace switchyard::device::metal
