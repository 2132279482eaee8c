// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/declarations.h"

#include <string_view>

#include "device/src/metal/signatures.h"

namespace switchyard::device::metal {
namespace {

// Whether what follows in parentheses belongs to it, and is no parameter list.
bool TakesParentheses(std::string_view word) {
  return IsOneOf(word, {"decltype", "__attribute__", "alignas", "noexcept",
                        "__declspec", "sizeof", "static_assert", "alignof",
                        "throw", "typeof", "__typeof__"});
}

bool IsClassKey(std::string_view word) {
  return IsOneOf(word, {"struct", "class", "union", "enum"});
}

bool IsArithmetic(std::string_view word) {
  return IsOneOf(word, {"int", "short", "char", "long", "float", "half", "bool",
                        "unsigned", "signed"});
}

// From the : of a constructor to its body.
uint32_t SkipInitializers(const Tokens& tokens, uint32_t i, uint32_t limit) {
  for (++i; i < limit && !tokens.Is(i, ";"); i = tokens.Skip(i)) {
    if (!tokens.Is(i, "{")) continue;
    // It initialises a member, or is the body.
    const bool of_member = tokens.IsIdentifier(i - 1) || tokens.Is(i - 1, ">");
    if (!of_member) break;
  }
  return i;
}

class Hash {
 public:
  void Add(std::string_view text) {
    for (const char c : text) Byte(static_cast<unsigned char>(c));
    Byte(0);
  }
  uint64_t value() const { return value_; }

 private:
  void Byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  uint64_t value_ = 0xcbf29ce484222325;
};

// The names of template parameters and of parameters, which may differ.
class Names {
 public:
  explicit Names(const Tokens& tokens) : tokens_(tokens) {}

  void AddTemplate(uint32_t first, uint32_t last) {
    for (const Piece& p : SplitAtCommas(tokens_, first, last)) Add(p);
  }

  void AddParameters(uint32_t first, uint32_t last) {
    for (const Piece& p : SplitAtCommas(tokens_, first, last)) {
      const uint32_t name = DeclaredName(tokens_, p.first, p.last);
      // The only name is a type's; one behind `const` may be.
      if (name == kNone || name == p.first) continue;
      const std::string_view before = tokens_.Text(name - 1);
      if (before != "::" && before != "const" && before != "struct" &&
          !IsAddressSpace(before) && !IsArithmetic(tokens_.Text(name))) {
        Add(p);
      }
    }
  }

  std::string Text(const Edits& edits, uint32_t token) const {
    const std::string_view text = edits.Text(token);
    if (tokens_.IsIdentifier(token) && !tokens_.Is(token - 1, ".") &&
        !tokens_.Is(token - 1, "->") && !tokens_.Is(token - 1, "::")) {
      const auto found = names_.find(text);
      if (found != names_.end()) return "$" + std::to_string(found->second);
    }
    return std::string(text);
  }

 private:
  void Add(const Piece& piece) {
    const uint32_t name = DeclaredName(tokens_, piece.first, piece.last);
    if (name != kNone) names_.emplace(tokens_.Text(name), names_.size());
  }

  const Tokens& tokens_;
  std::unordered_map<std::string_view, size_t> names_;
};

}  // namespace

Declaration ReadDeclaration(const Tokens& tokens, uint32_t begin,
                            uint32_t limit) {
  Declaration d;
  d.begin = begin;
  uint32_t i = begin;
  while (tokens.Is(i, "template") && i < limit) {
    if (!tokens.Is(i + 1, "<")) {
      d.is_instantiation = true;
      ++i;
      break;
    }
    if (tokens.Opens(i + 1)) {
      if (tokens.Match(i + 1) > i + 2) d.parameters = i + 1;
      i = tokens.Match(i + 1) + 1;
    } else {  // template <>, whose < no identifier stands before
      ++i;
      while (i < limit && !tokens.Is(i, ">") && !tokens.Is(i, ";")) ++i;
      ++i;
    }
  }
  d.head = i;
  for (; i < limit; i = tokens.Skip(i)) {
    const std::string_view text = tokens.Text(i);
    if (text == ";") {
      d.end = i + 1;
      return d;
    }
    if (text == "{") {
      if (d.open != kNone && (d.initializer == kNone || d.body != kNone)) {
        d.body = i;
        d.end = tokens.Match(i) + 1;
        return d;
      }
      if (d.class_key != kNone && d.initializer == kNone && d.body == kNone) {
        d.body = i;
      }
    } else if (text == "(" && d.open == kNone && d.initializer == kNone &&
               d.body == kNone && !TakesParentheses(tokens.Text(i - 1))) {
      uint32_t name = i - 1;
      if (tokens.Is(name, ">") && tokens.Match(name) < name) {
        name = tokens.Match(name) - 1;
      }
      d.name = tokens.IsIdentifier(name) ? name : kNone;
      d.open = i;
      d.close = tokens.Match(i);
    } else if (text == "=" && d.initializer == kNone) {
      d.initializer = i;
    } else if (text == ":" && d.open != kNone && d.initializer == kNone) {
      d.initializer = i;
      i = SkipInitializers(tokens, i, limit);
      if (tokens.Is(i, "{") && i < limit) {
        d.body = i;
        d.end = tokens.Match(i) + 1;
        return d;
      }
      --i;
    } else if (text == "operator" && d.open == kNone &&
               d.initializer == kNone) {
      d.name = i;
      uint32_t open = i + 1;
      if (tokens.Is(open, "(")) open += 2;
      while (open < limit && !tokens.Is(open, "(") && !tokens.Is(open, ";")) {
        ++open;
      }
      if (open < limit && tokens.Is(open, "(")) {
        d.open = open;
        d.close = tokens.Match(open);
        i = open;
      } else {
        i = open - 1;
      }
    } else if (IsClassKey(text) && d.open == kNone && d.class_key == kNone &&
               d.initializer == kNone) {
      d.class_key = i;
    }
  }
  d.end = limit;
  return d;
}

Duplicates::Found Duplicates::Add(const std::string& scope,
                                  const Declaration& d,
                                  std::pair<uint32_t, uint32_t>* earlier) {
  const uint32_t body_end = d.body == kNone ? d.end : d.BodyEnd(tokens_) + 1;
  uint32_t head_end = d.body == kNone ? d.end : d.body;
  if (d.initializer < head_end) head_end = d.initializer;
  Names names(tokens_);
  if (d.IsTemplate()) {
    names.AddTemplate(d.parameters + 1, tokens_.Match(d.parameters));
  }
  if (d.IsFunction()) names.AddParameters(d.open + 1, d.close);
  std::string key = scope + '\n';
  Hash original;
  bool names_thread = false, names_other = false;
  for (uint32_t i = d.begin; i < head_end; ++i) {
    const std::string_view text = tokens_.Text(i);
    if (text == "__attribute__" && tokens_.Opens(i + 1)) {
      i = tokens_.Match(i + 1);
      continue;
    }
    if (text == "inline" || text == "static" || text == "constexpr") continue;
    if (text == "=" && d.IsFunction() && i > d.open && i < d.close) {
      while (i + 1 < d.close && !tokens_.Is(i + 1, ",")) {
        i = tokens_.Skip(i + 1) - 1;
      }
      continue;
    }
    if (IsAddressSpace(text)) {
      original.Add(text);
      (text == "thread" ? names_thread : names_other) = true;
    }
    if (edits_.IsBlank(i)) continue;
    const std::string written = names.Text(edits_, i);
    // A parameter needs no name.
    if (d.IsFunction() && i > d.open && i < d.close && written[0] == '$' &&
        (tokens_.Is(i + 1, ",") || tokens_.Is(i + 1, ")") ||
         tokens_.Is(i + 1, "[") || tokens_.Is(i + 1, "=")) &&
        i > d.open + 1 && !tokens_.Is(i - 1, ",") && !tokens_.Is(i - 1, "<")) {
      continue;
    }
    original.Add(written);
    key += written;
    key += ' ';
  }
  Hash body;
  for (uint32_t i = head_end; i < body_end; ++i) {
    if (!edits_.IsBlank(i)) body.Add(names.Text(edits_, i));
  }
  key += d.body == kNone ? ';' : '{';
  const Seen now = {original.value(),
                    body.value(),
                    {d.begin, d.end},
                    names_thread && !names_other};
  const auto [found, is_new] = seen_.emplace(std::move(key), now);
  Seen& seen = found->second;
  if (is_new || seen.original == now.original) return Found::kNew;
  if (seen.body == now.body) return Found::kSame;
  if (!now.is_thread || seen.is_thread) return Found::kDifferent;
  *earlier = seen.tokens;
  seen = now;
  return Found::kReplaces;
}

}  // namespace switchyard::device::metal
