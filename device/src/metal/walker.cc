// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/walker.h"

#include <algorithm>
#include <utility>

namespace switchyard::device::metal {
namespace {

// Deeper ones pass as they are: no shader has them, and the stack has an end.
constexpr int kMaxDepth = 100;

}  // namespace

void Walker::Namespace(uint32_t first, uint32_t last, const std::string& scope,
                       int depth) {
  if (depth > kMaxDepth) return;
  for (uint32_t i = first; i < last;) {
    if (tokens_.Is(i, ";")) {
      ++i;
      continue;
    }
    const uint32_t behind = EnterNamespace(i, last, scope, depth);
    if (behind != i) {
      i = behind;
      continue;
    }
    const Declaration d = ReadDeclaration(tokens_, i, last);
    AtNamespace(d, scope, depth);
    i = std::max(d.end, i + 1);
  }
}

uint32_t Walker::EnterNamespace(uint32_t i, uint32_t last,
                                const std::string& scope, int depth) {
  const bool is_extern =
      tokens_.Is(i, "extern") && i + 2 < last && tokens_.Is(i + 2, "{");
  uint32_t open = i + (tokens_.Is(i, "inline") ? 1 : 0);
  if (!is_extern && !tokens_.Is(open, "namespace")) return i;
  std::string inner = scope;
  if (is_extern) {
    open = i + 2;
  } else {
    for (++open; open < last && !tokens_.Is(open, "{"); ++open) {
      if (tokens_.Is(open, ";") || tokens_.Is(open, "=")) return i;
      if (edits_.IsBlank(open) || !tokens_.IsIdentifier(open)) continue;
      inner.append(tokens_.Text(open)).append("::");
    }
  }
  if (open >= last || !tokens_.Opens(open)) return i;
  Namespace(open + 1, tokens_.Match(open), inner, depth + 1);
  return tokens_.Match(open) + 1;
}

void Walker::AtNamespace(const Declaration& d, const std::string& scope,
                         int depth) {
  if (d.is_instantiation) return Instantiation(d, scope);
  if (Kernel(d, scope) || IsUnsupported(d)) return;
  if (d.IsClass()) {
    if (!IsDuplicate(d, scope)) Class(d, scope, depth);
  } else if (d.IsFunction()) {
    if (d.body == kNone) return Variable(d, scope);  // int x(3); perhaps
    if (IsDuplicate(d, scope)) return;
    if (d.name != kNone) functions_.insert(tokens_.Text(d.name));
    Body(d.body + 1, d.BodyEnd(tokens_));
  } else {
    Variable(d, scope);
  }
}

bool Walker::IsDuplicate(const Declaration& d, const std::string& scope) {
  std::pair<uint32_t, uint32_t> earlier;
  const Duplicates::Found found = duplicates_.Add(scope, d, &earlier);
  if (found == Duplicates::Found::kNew) return false;
  const bool replaces = found == Duplicates::Found::kReplaces;
  if (found != Duplicates::Found::kSame) {
    const uint32_t name = d.name != kNone ? d.name : d.head;
    AddUnsupported("'" + std::string(tokens_.Text(name)) +
                       "' and an earlier one differ by address space, and do "
                       "different things: " +
                       (replaces ? "this" : "that") + " one is taken for both",
                   name, "");
  }
  if (replaces) {
    edits_.Blank(earlier.first, earlier.second);
  } else {
    edits_.Blank(d.begin, d.end);
  }
  return !replaces;
}

void Walker::Class(const Declaration& d, const std::string& scope, int depth) {
  if (tokens_.Is(d.class_key, "enum")) {
    return constants_.AddEnumerators(tokens_, d.body);
  }
  if (depth > kMaxDepth) return;
  uint32_t name = d.class_key + 1;
  while (name < d.body &&
         (!tokens_.IsIdentifier(name) || tokens_.Is(name, "alignas") ||
          tokens_.Is(name, "__attribute__") || edits_.IsBlank(name))) {
    name = tokens_.Skip(name);
  }
  // Specializations have the same name.
  const std::string inner = scope + std::to_string(d.body) + "::";
  const uint32_t last = d.BodyEnd(tokens_);
  for (uint32_t i = d.body + 1; i < last;) {
    if (tokens_.Is(i, ";") || tokens_.Is(i, ":") || tokens_.Is(i, "public") ||
        tokens_.Is(i, "private") || tokens_.Is(i, "protected")) {
      ++i;
      continue;
    }
    const Declaration member = ReadDeclaration(tokens_, i, last);
    Member(member, tokens_.Text(name), inner, depth);
    i = std::max(member.end, i + 1);
  }
}

void Walker::Member(const Declaration& d, std::string_view class_name,
                    const std::string& scope, int depth) {
  if (d.IsClass()) return Class(d, scope, depth + 1);
  if (d.IsFunction()) {
    // `constant` behind the parameters says where the object is: as good as
    // const, which no constructor takes.
    uint32_t end = d.body == kNone ? d.end : d.body;
    end = std::min(end, d.initializer);
    const bool constructs = d.name != kNone &&
                            tokens_.Text(d.name) == class_name &&
                            !tokens_.Is(d.name - 1, "~");
    for (uint32_t i = d.close + 1; constructs && i < end; ++i) {
      if (tokens_.Is(i, "constant")) edits_.Blank(i);
    }
    if (!IsDuplicate(d, scope) && d.body != kNone) {
      Body(d.body + 1, d.BodyEnd(tokens_));
    }
    return;
  }
  if (d.initializer == kNone) return;
  for (uint32_t i = d.head; i < d.initializer; i = tokens_.Skip(i)) {
    if (!tokens_.Is(i, "constant")) continue;
    if (NeedsFunctionConstants(d.initializer, d.end)) {
      AddUnsupported("a member made of function constants", i, "");
    }
    // C++ takes an initializer of integers only without.
    bool is_constexpr = false;
    for (uint32_t k = d.head; k < d.initializer; ++k) {
      is_constexpr = is_constexpr || tokens_.Is(k, "constexpr");
    }
    if (!is_constexpr) edits_.InsertBefore(d.head, "inline ");
    return;
  }
}

std::string Walker::Place(uint32_t token) const {
  const Token& t = tokens_.list[token];
  return tokens_.files[t.file] + ":" + std::to_string(t.line) + ":" +
         std::to_string(t.begin - t.line_begin + 1);
}

void Walker::AddUnsupported(std::string what, uint32_t token,
                            std::string kernel) {
  const Token& t = tokens_.list[token];
  result_.unsupported.push_back({std::move(what), tokens_.files[t.file], t.line,
                                 t.begin - t.line_begin + 1,
                                 std::move(kernel)});
}

void Walker::SetError(std::string_view what, uint32_t token) {
  if (!result_.error.empty()) return;
  result_.error = Place(token) + ": error: " + std::string(what);
}

}  // namespace switchyard::device::metal
