// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/translate.h"

#include <algorithm>
#include <limits>

#include "device/src/metal/expressions.h"
#include "device/src/metal/table.h"
#include "device/src/metal/text.h"
#include "device/src/metal/walker.h"

namespace switchyard::device::metal {
namespace {

bool IsConst(const Text& text, uint32_t i) {
  return text.Is(i, "const") || text.Is(i, "constexpr");
}

// Erases the words device, thread and threadgroup. Replaces `constant` by
// const, or erases it if a const stands beside it.
void EraseAddressSpace(Text& text, uint32_t i) {
  if (!text.Is(i, "constant") || IsConst(text, i - 1) || IsConst(text, i + 1)) {
    text.Erase(i);
  } else {
    text.Replace(i, "const");
  }
}

// Erases Metal's attributes in a list, and returns the list's last token.
uint32_t EraseAttributes(Text& text, uint32_t i) {
  const uint32_t end = text.match(i);
  for (const Attribute& a : text.FindAttributes(i, end + 1)) {
    if (text.IsOfClang(a)) return end;
  }
  text.Erase(i, end + 1);
  return end;
}

// Erases words such as `coherent(system)`, because all memory is coherent on
// a CPU.
void EraseCoherent(Text& text, uint32_t i) {
  if (text.OpensParentheses(i + 1) && text.match(i + 1) == i + 3) {
    text.Erase(i, i + 4);
  } else if (text.IsIdentifier(i + 1) && (IsAddressSpace(text.word(i + 1)) ||
                                          IsAddressSpace(text.word(i - 1)))) {
    text.Erase(i);
  }
}

// Erases the label of a function that a shader declares, such as
// __asm("air.wait_simdgroup_events"). The shim defines these functions under
// their C++ names, once for all address spaces (switchyard_async_copy.h).
void EraseLabel(Text& text, uint32_t i) {
  if (!text.OpensParentheses(i + 1)) return;
  const std::string_view label = text.word(i + 2);
  for (const std::string_view known :
       {"\"air.simdgroup_async_copy_1d.", "\"air.simdgroup_async_copy_2d.",
        "\"air.wait_simdgroup_events\""}) {
    if (label.substr(0, known.size()) != known) continue;
    text.Erase(i, text.match(i + 1) + 1);
  }
}

// Replaces a vector type such as `typedef half half8
// __attribute__((ext_vector_type(8)))`. Clang's vectors can only have
// built-in types as elements, and half is a class of the shim.
void ReplaceVectorType(Text& text, uint32_t i) {
  if (!text.OpensParentheses(i + 1)) return;
  if (!text.Is(i + 3, "ext_vector_type") &&
      !text.Is(i + 3, "__ext_vector_type__")) {
    return;
  }
  const uint32_t end = text.match(i + 1) + 1;
  if (!text.OpensParentheses(i + 4)) return;
  // The type is searched for in this many tokens on each side of the
  // attribute.
  constexpr uint32_t kMost = 8;
  const auto is_type = [&](uint32_t at) {
    return text.Is(at, "half") || text.Is(at, "bfloat");
  };
  uint32_t type = kNone;
  for (uint32_t k = 1; k <= kMost && k <= i && type == kNone; ++k) {
    if (text.Is(i - k, ";") || text.Is(i - k, "}")) break;
    if (is_type(i - k)) type = i - k;
  }
  for (uint32_t at = end; at < end + kMost && type == kNone; ++at) {
    if (at >= text.size() || text.Is(at, ";")) break;
    if (is_type(at)) type = at;
  }
  if (type == kNone) return;
  text.InsertBefore(type, "::metal::vec<");
  text.InsertBehind(type, ", (" + text.edited(i + 5, text.match(i + 4)) + ")>");
  text.Erase(i, end);
}

// Replaces is_function_constant_defined(ns::x) by ns::swy_defined_x.
void ReplaceIsDefined(Text& text, uint32_t i) {
  if (!text.OpensParentheses(i + 1)) return;
  const uint32_t close = text.match(i + 1);
  if (!text.IsIdentifier(close - 1)) return;
  if (text.Is(i - 1, "::")) {
    text.Erase(i - 1);
    if (text.Is(i - 2, "metal")) text.Erase(i - 2);
  }
  text.Erase(i);
  text.Erase(i + 1);
  text.Erase(close);
  text.InsertBefore(close - 1, "swy_defined_");
}

// Replaces "1.5bf" by bfloat(1.5f), because Clang 14 does not know the
// suffix.
void ReplaceBfloatLiteral(Text& text, uint32_t i) {
  const std::string_view word = text.word(i);
  if (word.size() < 3 || word.substr(0, 2) == "0x" ||
      word.substr(0, 2) == "0X") {
    return;
  }
  const std::string_view suffix = word.substr(word.size() - 2);
  if (suffix != "bf" && suffix != "BF") return;
  std::string number(word.substr(0, word.size() - 2));
  if (number.find_first_of(".eE") == number.npos) number += '.';
  text.Replace(i, number + 'f');
  text.InsertBefore(i, "bfloat(");
  text.InsertBehind(i, ")");
}

// Makes the edits that need no knowledge of declarations.
void EraseWords(Text& text) {
  for (uint32_t i = 0; i < text.size(); ++i) {
    if (text.IsAttributeList(i)) {
      i = EraseAttributes(text, i);
      continue;
    }
    if (text.IsNumber(i)) {
      ReplaceBfloatLiteral(text, i);
      continue;
    }
    if (!text.IsIdentifier(i) || text.IsMember(i)) {
      continue;
    }
    if (IsAddressSpace(text.word(i))) {
      EraseAddressSpace(text, i);
    } else if (text.Is(i, "kernel") || text.Is(i, "visible")) {
      // The word is a specifier here, unless a declaration uses it as a name.
      if (text.IsIdentifier(i + 1) || text.IsAttributeList(i + 1)) {
        text.Erase(i);
      }
    } else if (text.Is(i, "coherent")) {
      EraseCoherent(text, i);
    } else if (text.Is(i, "__asm") || text.Is(i, "__asm__")) {
      EraseLabel(text, i);
    } else if (text.Is(i, "__attribute__")) {
      ReplaceVectorType(text, i);
    } else if (text.Is(i, "is_function_constant_defined")) {
      ReplaceIsDefined(text, i);
    }
  }
}

// Erases the unroll count in a pragma if it is a macro. The preprocessor does
// not expand macros in pragmas, so Clang would not know the name. The count
// is only a hint.
void EraseUnrollCounts(Text& text) {
  for (const Pragma& pragma : text.pragmas()) {
    const std::string_view line =
        text.source().substr(pragma.begin, pragma.end - pragma.begin);
    const size_t open = line.find('(');
    if (open == line.npos || line.find("unroll") > open) continue;
    for (size_t i = open; i < line.size(); ++i) {
      const char c = line[i];
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')) {
        continue;
      }
      const bool is_loop = line.find("loop") < open;
      const std::string_view word = line.substr(i, 4);
      if (is_loop && (word == "full" || word == "enab" || word == "disa")) {
        break;
      }
      text.EraseBytes(pragma.begin + static_cast<uint32_t>(is_loop ? 0 : open),
                      pragma.end);
      break;
    }
  }
}

// Returns an error for a directive that a macro makes, such as `H include`
// where H is #. The preprocessor itself leaves only the directives #pragma and
// #ident in its output. Clang would take the line for a directive when it
// reads the text again, and look for the file.
std::string FindMadeDirective(const Text& text) {
  for (const Pragma& pragma : text.pragmas()) {
    std::string_view word =
        text.source().substr(pragma.begin + 1, pragma.end - pragma.begin - 1);
    word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
    if (word.substr(0, 6) == "pragma" || word.substr(0, 5) == "ident") continue;
    return text.files()[pragma.file] + ":" + std::to_string(pragma.line) +
           ":1: error: a directive can't be a macro's: #" +
           std::string(word.substr(0, word.find_first_of(" \t\n")));
  }
  return std::string();
}

}  // namespace

Translation Translate(std::string_view preprocessed,
                      const std::vector<std::string>& kernels) {
  Translation result;
  if (preprocessed.size() > std::numeric_limits<uint32_t>::max() / 2) {
    result.error = "error: not supported: a shader of more than 2 GiB";
    return result;
  }
  Text text(preprocessed);
  result.files.assign(text.user_files().begin(), text.user_files().end());
  result.error = FindMadeDirective(text);
  EraseWords(text);
  EraseUnrollCounts(text);
  std::string table;
  // Leave unbalanced texts to Clang, which reports the place.
  if (text.is_balanced()) {
    MarkConditionals(text);
    ResolveSwizzles(text);
    Walker walker(text, kernels, result);
    walker.Run();
    table = WriteTable(walker.table());
  }
  result.code = text.Finish() + table;
  result.looks = text.looks();
  return result;
}

}  // namespace switchyard::device::metal
