// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/walker.h"

#include <algorithm>
#include <string>
#include <utility>

namespace switchyard::device::metal {
namespace {

// Scopes that are nested deeper are not translated, because the recursion
// needs stack. No shader nests scopes so deeply.
constexpr int kMaxDepth = 100;

}  // namespace

void Walker::WalkNamespace(uint32_t first, uint32_t last,
                           const std::string& scope, int depth) {
  if (depth > kMaxDepth) return;
  for (uint32_t i = first; i < last;) {
    if (text_.Is(i, ";")) {
      ++i;
      continue;
    }
    const uint32_t behind = EnterNamespace(i, last, scope, depth);
    if (behind != i) {
      i = behind;
      continue;
    }
    const Declaration d = ReadDeclaration(text_, i, last);
    WalkDeclaration(d, scope, depth);
    i = std::max(d.end, i + 1);
  }
}

uint32_t Walker::EnterNamespace(uint32_t i, uint32_t last,
                                const std::string& scope, int depth) {
  const bool is_extern =
      text_.Is(i, "extern") && i + 2 < last && text_.Is(i + 2, "{");
  uint32_t open = i + (text_.Is(i, "inline") ? 1 : 0);
  if (!is_extern && !text_.Is(open, "namespace")) return i;
  std::string inner = scope;
  if (is_extern) {
    open = i + 2;
  } else {
    for (++open; open < last && !text_.Is(open, "{"); ++open) {
      if (text_.Is(open, ";") || text_.Is(open, "=")) return i;
      if (text_.IsErased(open) || !text_.IsIdentifier(open)) continue;
      inner.append(text_.word(open)).append("::");
    }
  }
  if (open >= last || !text_.Opens(open)) return i;
  WalkNamespace(open + 1, text_.match(open), inner, depth + 1);
  return text_.match(open) + 1;
}

void Walker::WalkDeclaration(const Declaration& d, const std::string& scope,
                             int depth) {
  if (d.is_instantiation) return TranslateInstantiation(d, scope);
  if (TranslateKernel(d, scope) || LeaveOutIfUnsupported(d)) return;
  if (d.IsClass()) {
    if (!EraseIfDuplicate(d, scope)) WalkClass(d, scope, depth);
  } else if (d.IsFunction()) {
    // This may be a variable such as int x(3).
    if (d.body == kNone) return WalkVariable(d, scope);
    if (EraseIfDuplicate(d, scope)) return;
    if (d.name != kNone) functions_.insert(text_.word(d.name));
    WalkBody(d.body + 1, d.BodyEnd(text_));
  } else {
    WalkVariable(d, scope);
  }
}

bool Walker::EraseIfDuplicate(const Declaration& d, const std::string& scope) {
  Piece earlier = {};
  const Duplicates::Found found = duplicates_.Add(scope, d, &earlier);
  if (found == Duplicates::Found::kNew) return false;
  const bool replaces = found == Duplicates::Found::kReplaces;
  if (found != Duplicates::Found::kSame) {
    const uint32_t name = d.name != kNone ? d.name : d.head;
    AddUnsupported("'" + std::string(text_.word(name)) +
                       "' and an earlier one differ by address space, and do "
                       "different things: " +
                       (replaces ? "this" : "that") + " one is taken for both",
                   name, "");
  }
  if (replaces) {
    text_.Erase(earlier.first, earlier.last);
  } else {
    text_.Erase(d.begin, d.end);
  }
  return !replaces;
}

void Walker::WalkClass(const Declaration& d, const std::string& scope,
                       int depth) {
  if (text_.Is(d.class_key, "enum")) {
    return constants_.AddEnumerators(text_, d.body);
  }
  if (depth > kMaxDepth) return;
  uint32_t name = d.class_key + 1;
  while (name < d.body &&
         (!text_.IsIdentifier(name) || text_.Is(name, "alignas") ||
          text_.Is(name, "__attribute__") || text_.IsErased(name))) {
    name = text_.Skip(name);
  }
  // A number is added to the scope's name, because specializations have the
  // same name.
  const std::string inner = scope + std::to_string(d.body) + "::";
  const uint32_t last = d.BodyEnd(text_);
  for (uint32_t i = d.body + 1; i < last;) {
    if (text_.Is(i, ";") || text_.Is(i, ":") || text_.Is(i, "public") ||
        text_.Is(i, "private") || text_.Is(i, "protected")) {
      ++i;
      continue;
    }
    const Declaration member = ReadDeclaration(text_, i, last);
    WalkMember(member, text_.word(name), inner, depth);
    i = std::max(member.end, i + 1);
  }
}

void Walker::WalkMember(const Declaration& d, std::string_view class_name,
                        const std::string& scope, int depth) {
  if (d.IsClass()) return WalkClass(d, scope, depth + 1);
  if (d.IsFunction()) {
    // A `constant` behind the parameters is the address space of the object,
    // and becomes const. A constructor can't be const, so there it is erased.
    uint32_t end = d.body == kNone ? d.end : d.body;
    end = std::min(end, d.initializer);
    const bool is_constructor = d.name != kNone &&
                                text_.word(d.name) == class_name &&
                                !text_.Is(d.name - 1, "~");
    for (uint32_t i = d.close + 1; is_constructor && i < end; ++i) {
      if (text_.Is(i, "constant")) text_.Erase(i);
    }
    if (!EraseIfDuplicate(d, scope) && d.body != kNone) {
      WalkBody(d.body + 1, d.BodyEnd(text_));
    }
    return;
  }
  if (d.initializer == kNone) return;
  for (uint32_t i = d.head; i < d.initializer; i = text_.Skip(i)) {
    if (!text_.Is(i, "constant")) continue;
    if (NeedsFunctionConstants(d.initializer, d.end)) {
      AddUnsupported("a member made of function constants", i, "");
    }
    // In a class, C++ allows an initializer of a static member only for
    // integers, unless the member is inline.
    bool is_constexpr = false;
    for (uint32_t k = d.head; k < d.initializer; ++k) {
      is_constexpr = is_constexpr || text_.Is(k, "constexpr");
    }
    if (!is_constexpr) text_.InsertBefore(d.head, "inline ");
    return;
  }
}

void Walker::AddUnsupported(std::string what, uint32_t token,
                            std::string kernel) {
  const Token& t = text_.token(token);
  result_.unsupported.push_back({std::move(what), text_.files()[t.file], t.line,
                                 t.column(), std::move(kernel)});
}

void Walker::SetError(std::string_view what, uint32_t token) {
  if (!result_.error.empty()) return;
  const Token& t = text_.token(token);
  result_.error = text_.files()[t.file] + ":" + std::to_string(t.line) + ":" +
                  std::to_string(t.column()) + ": error: " + std::string(what);
}

void Walker::WalkVariable(const Declaration& d, const std::string& scope) {
  if (text_.Is(d.head, "using") || text_.Is(d.head, "typedef")) return;
  uint32_t constant = kNone, threadgroup = kNone, pointer = kNone;
  const uint32_t end = std::min(std::min(d.initializer, d.open), d.end);
  for (uint32_t i = d.head; i < end; i = text_.Skip(i)) {
    if (text_.Is(i, "constant")) constant = i;
    if (text_.Is(i, "threadgroup")) threadgroup = i;
    if (text_.Is(i, "*") || text_.Is(i, "&")) pointer = i;
  }
  if (threadgroup != kNone && pointer == kNone) {
    AddUnsupported("a threadgroup variable outside of a function", threadgroup,
                   "");
  }
  if (d.initializer != kNone && pointer == kNone) {
    const uint32_t name = text_.FindDeclaredName(d.head, d.initializer);
    if (name != kNone && name + 1 == d.initializer) {
      constants_.Add(text_.word(name),
                     constants_.Evaluate(text_, d.initializer + 1, d.end - 1));
    }
  }
  if (constant == kNone) return;
  for (const Attribute& a : text_.FindAttributes(d.head, d.end)) {
    if (!d.IsFunction() && text_.Is(a.name, "function_constant")) {
      return TranslateFunctionConstants(d, scope);
    }
  }
  if (NeedsFunctionConstants(d.head, d.end)) MakeSetUp(d, scope);
}

void Walker::TranslateFunctionConstants(const Declaration& d,
                                        const std::string& scope) {
  std::string type, defined;
  for (const Piece& piece : text_.SplitAtCommas(d.head, d.end - 1)) {
    const uint32_t name = text_.FindDeclaredName(piece.first, piece.last);
    if (name == kNone) return;
    if (piece.first == d.head) {
      for (uint32_t i = d.head; i < name; ++i) {
        if (text_.Is(i, "constant") || text_.Is(i, "const") ||
            text_.Is(i, "static") || text_.Is(i, "constexpr")) {
          text_.Erase(i);
        }
      }
      type = NameMetalType(text_.edited(d.head, name));
    }
    for (const Attribute& a : text_.FindAttributes(piece.first, piece.last)) {
      if (!text_.Is(a.name, "function_constant")) continue;
      const auto index = constants_.Evaluate(text_, a.first, a.last);
      if (!index) {
        AddUnsupported("a function constant whose index is no number", a.name,
                       "");
        continue;
      }
      const std::string text(text_.word(name));
      specialized_.insert(text_.word(name));
      table_.constants.push_back({scope, text, *index, type});
      defined += " static bool swy_defined_" + text + ";";
    }
  }
  for (uint32_t i = d.head;; ++i) {
    if (!text_.Is(i, "constant")) continue;
    text_.Replace(i, "static");
    break;
  }
  text_.InsertBehind(d.end - 1, defined);
}

bool Walker::NeedsFunctionConstants(uint32_t first, uint32_t last) const {
  for (uint32_t i = first; i < last; ++i) {
    if (text_.IsIdentifier(i) && specialized_.count(text_.word(i)) != 0 &&
        !text_.IsMember(i)) {
      return true;
    }
  }
  return false;
}

void Walker::MakeSetUp(const Declaration& d, const std::string& scope) {
  const uint32_t name = text_.FindDeclaredName(d.head, d.end);
  const bool has_other_form =
      text_.SplitAtCommas(d.head, d.end - 1).size() != 1 ||
      (d.initializer != kNone && text_.Is(d.initializer - 1, "]") &&
       text_.Is(d.initializer - 2, "["));
  if (name == kNone || has_other_form || d.initializer == kNone) {
    return AddUnsupported(
        "function constants in this form of a constant's initializer", d.head,
        "");
  }
  specialized_.insert(text_.word(name));
  bool is_static = false;
  for (uint32_t i = d.head; i < name; i = text_.Skip(i)) {
    if (text_.Is(i, "const") || text_.Is(i, "static") ||
        text_.Is(i, "constexpr")) {
      text_.Erase(i);
    } else if (text_.Is(i, "constant")) {
      if (is_static) {
        text_.Erase(i);
      } else {
        text_.Replace(i, "static");
      }
      is_static = true;
    }
  }
  const std::string text(text_.word(name));
  const std::string function = "swy_set_up_" + std::to_string(next_++);
  // The type consists of the tokens without `static`, and of the dimensions
  // behind the name.
  std::string type = text_.edited(d.head, name);
  const size_t word = type.find("static");
  if (word != type.npos) type.erase(word, 6);
  text_.InsertBefore(d.initializer,
                     "; __attribute__((noinline)) static void " + function +
                         "() { " + type + " swy_value" +
                         text_.edited(name + 1, d.initializer) + " ");
  text_.InsertBehind(d.end - 1, " __builtin_memcpy(&" + text +
                                    ", &swy_value, sizeof(" + text + ")); }");
  table_.set_ups.push_back(scope + function);
}

void Walker::WalkBody(uint32_t first, uint32_t last) {
  for (uint32_t i = first; i < last; ++i) {
    if (!text_.Is(i, "threadgroup")) continue;
    const uint32_t begin = FindStatementBegin(i, first);
    if (begin == kNone) continue;
    i = std::max(i, TranslateThreadgroupVariables(begin, last));
  }
}

uint32_t Walker::FindStatementBegin(uint32_t i, uint32_t first) const {
  // A few tokens may precede `threadgroup`: specifiers and a type.
  for (int steps = 0; steps < 24; ++steps, --i) {
    if (i == first) return i;
    const uint32_t before = i - 1;
    const std::string_view text = text_.word(before);
    if (text == ";" || text == "{" || text == "}" || text == ":") return i;
    const uint32_t match = text_.match(before);
    if (text == ">" && match < before && match > first) {
      i = match + 1;
    } else if (text == ")" && match < before && match > first &&
               (text_.Is(match - 1, "alignas") ||
                text_.Is(match - 1, "__attribute__"))) {
      i = match + 1;
    } else if (text != "::" && !text_.IsIdentifier(before)) {
      return kNone;
    } else if (IsOneOf(text, {"typedef", "using", "return", "sizeof", "new",
                              "case", "else", "do", "goto"})) {
      return kNone;
    }
  }
  return kNone;
}

uint32_t Walker::TranslateThreadgroupVariables(uint32_t first, uint32_t last) {
  uint32_t end = first;
  bool has_braces = false;
  for (; end < last && !text_.Is(end, ";"); end = text_.Skip(end)) {
    // A : or a second `threadgroup` shows that this is not a declaration. If
    // the loop went on there, a long list of `threadgroup` without a ; would
    // take quadratic time.
    if (text_.Is(end, ":") || (has_braces && text_.Is(end, "threadgroup"))) {
      return first;
    }
    has_braces = has_braces || text_.Is(end, "{");
  }
  if (end >= last) return first;
  const std::vector<Piece> pieces = text_.SplitAtCommas(first, end);
  if (pieces.empty()) return first;
  uint32_t type_end = first;  // the token behind struct {...}
  for (uint32_t i = first; i < pieces[0].last; i = text_.Skip(i)) {
    if (text_.Is(i, "=")) break;
    const bool is_of_struct = text_.Is(i - 1, "struct") ||
                              text_.Is(i - 1, "union") ||
                              text_.Is(i - 2, "struct");
    if (text_.Is(i, "{") && is_of_struct) type_end = text_.match(i) + 1;
  }
  const uint32_t first_name = text_.FindDeclaredName(type_end, pieces[0].last);
  if (first_name == kNone) return first;
  const std::string number = std::to_string(next_);
  const std::string type = "SwyVariables" + number;
  bool is_aligned = false;
  for (uint32_t i = first; i < first_name; i = text_.Skip(i)) {
    if (text_.Is(i, "*") || text_.Is(i, "&") || text_.Is(i, "(")) {
      if (!text_.Is(i - 1, "alignas") && !text_.Is(i - 1, "decltype") &&
          !text_.Is(i - 1, "__attribute__")) {
        return first;
      }
    }
    is_aligned =
        is_aligned || text_.Is(i, "alignas") || text_.Is(i, "__attribute__");
  }
  std::vector<std::string> names;
  for (const Piece& piece : pieces) {
    const uint32_t name = piece.first == first
                              ? first_name
                              : text_.FindDeclaredName(piece.first, piece.last);
    if (name == kNone) return first;
    uint32_t i = name + 1;
    while (i < piece.last && (text_.Is(i, "[") || text_.IsIdentifier(i))) {
      const bool aligns =
          text_.Is(i, "__attribute__") || text_.Is(i, "alignas");
      is_aligned = is_aligned || aligns;
      i = text_.Skip(aligns && i + 1 < piece.last ? i + 1 : i);
    }
    if (piece.first != first && name != piece.first) {
      AddUnsupported("this form of a threadgroup variable", name, "");
      return first;
    }
    if (i < piece.last) {
      AddUnsupported(
          "the initializer of a threadgroup variable: it has no effect; let a "
          "thread write the variable before others read it",
          name, "");
      text_.Erase(i, piece.last);
    }
    names.emplace_back(text_.word(name));
  }
  ++next_;
  text_.InsertBefore(first, "struct " + type + " { ");
  for (uint32_t i = first; i < first_name; ++i) {
    if (text_.Is(i, "static")) text_.Erase(i);
  }
  const std::string call = "switchyard_metal::ThreadgroupVariable<";
  std::string code = " };";
  if (is_aligned) {
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
  text_.InsertBehind(end, std::move(code));
  return end;
}

}  // namespace switchyard::device::metal
