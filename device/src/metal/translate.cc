// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/translate.h"

#include <algorithm>
#include <limits>

#include "device/src/metal/edits.h"
#include "device/src/metal/lexer.h"
#include "device/src/metal/signatures.h"
#include "device/src/metal/table.h"
#include "device/src/metal/walker.h"

namespace switchyard::device::metal {
namespace {

bool IsConst(const Tokens& tokens, uint32_t i) {
  return tokens.Is(i, "const") || tokens.Is(i, "constexpr");
}

// device, thread and threadgroup go; constant is const, unless that is there.
void EraseAddressSpace(const Tokens& tokens, Edits& edits, uint32_t i) {
  if (!tokens.Is(i, "constant") || IsConst(tokens, i - 1) ||
      IsConst(tokens, i + 1)) {
    edits.Blank(i);
  } else {
    edits.Become(i, "const");
  }
}

// Returns its last token.
uint32_t EraseAttributes(const Tokens& tokens, Edits& edits, uint32_t i) {
  const uint32_t end = tokens.Match(i);
  for (const Attribute& a : Attributes(tokens, i, end + 1)) {
    if (IsOfClang(tokens, a)) return end;
  }
  edits.Blank(i, end + 1);
  return end;
}

// coherent(system) device int*: here all memory is.
void EraseCoherent(const Tokens& tokens, Edits& edits, uint32_t i) {
  if (tokens.Is(i + 1, "(") && tokens.Opens(i + 1) &&
      tokens.Match(i + 1) == i + 3) {
    edits.Blank(i, i + 4);
  } else if (tokens.IsIdentifier(i + 1) &&
             (IsAddressSpace(tokens.Text(i + 1)) ||
              IsAddressSpace(tokens.Text(i - 1)))) {
    edits.Blank(i);
  }
}

// __asm("air.wait_simdgroup_events"): by their C++ names, the shim has them
// (switchyard_async_copy.h), and each for all address spaces.
void EraseLabel(const Tokens& tokens, Edits& edits, uint32_t i) {
  if (!tokens.Is(i + 1, "(") || !tokens.Opens(i + 1)) return;
  const std::string_view label = tokens.Text(i + 2);
  for (const std::string_view known :
       {"\"air.simdgroup_async_copy_1d.", "\"air.simdgroup_async_copy_2d.",
        "\"air.wait_simdgroup_events\""}) {
    if (label.substr(0, known.size()) != known) continue;
    edits.Blank(i, tokens.Match(i + 1) + 1);
  }
}

// `typedef half half8 __attribute__((ext_vector_type(8)))`: to Clang half is no
// type that vectors are made of, here.
void ReplaceVectorType(const Tokens& tokens, Edits& edits, uint32_t i) {
  if (!tokens.Is(i + 1, "(") || !tokens.Opens(i + 1)) return;
  if (!tokens.Is(i + 3, "ext_vector_type") &&
      !tokens.Is(i + 3, "__ext_vector_type__")) {
    return;
  }
  const uint32_t end = tokens.Match(i + 1) + 1;
  if (!tokens.Is(i + 4, "(") || !tokens.Opens(i + 4)) return;
  constexpr uint32_t kMost = 8;  // tokens to the type, to either side
  const auto is_type = [&](uint32_t at) {
    return tokens.Is(at, "half") || tokens.Is(at, "bfloat");
  };
  uint32_t type = kNone;
  for (uint32_t k = 1; k <= kMost && k <= i && type == kNone; ++k) {
    if (tokens.Is(i - k, ";") || tokens.Is(i - k, "}")) break;
    if (is_type(i - k)) type = i - k;
  }
  for (uint32_t at = end; at < end + kMost && type == kNone; ++at) {
    if (at >= tokens.size() || tokens.Is(at, ";")) break;
    if (is_type(at)) type = at;
  }
  if (type == kNone) return;
  edits.InsertBefore(type, "::metal::vec<");
  edits.InsertBehind(type,
                     ", (" + edits.Text(i + 5, tokens.Match(i + 4)) + ")>");
  edits.Blank(i, end);
}

// is_function_constant_defined(ns::x) is ns::swy_defined_x.
void ReplaceIsDefined(const Tokens& tokens, Edits& edits, uint32_t i) {
  if (!tokens.Is(i + 1, "(") || !tokens.Opens(i + 1)) return;
  const uint32_t close = tokens.Match(i + 1);
  if (!tokens.IsIdentifier(close - 1)) return;
  if (tokens.Is(i - 1, "::")) {
    edits.Blank(i - 1);
    if (tokens.Is(i - 2, "metal")) edits.Blank(i - 2);
  }
  edits.Blank(i);
  edits.Blank(i + 1);
  edits.Blank(close);
  edits.InsertBefore(close - 1, "swy_defined_");
}

// "1.5bf" is a bfloat, by a suffix that Clang 14 takes of nobody.
void ReplaceBfloatLiteral(const Tokens& tokens, Edits& edits, uint32_t i) {
  const std::string_view text = tokens.Text(i);
  if (text.size() < 3 || text.substr(0, 2) == "0x" ||
      text.substr(0, 2) == "0X") {
    return;
  }
  const std::string_view suffix = text.substr(text.size() - 2);
  if (suffix != "bf" && suffix != "BF") return;
  std::string number(text.substr(0, text.size() - 2));
  if (number.find_first_of(".eE") == number.npos) number += '.';
  edits.Become(i, number + 'f');
  edits.InsertBefore(i, "bfloat(");
  edits.InsertBehind(i, ")");
}

// The edits that need no knowledge of declarations.
void EraseWords(const Tokens& tokens, Edits& edits) {
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    if (IsAttributeList(tokens, i)) {
      i = EraseAttributes(tokens, edits, i);
      continue;
    }
    if (tokens.list[i].kind == Token::Kind::kNumber) {
      ReplaceBfloatLiteral(tokens, edits, i);
      continue;
    }
    if (!tokens.IsIdentifier(i) || tokens.Is(i - 1, ".") ||
        tokens.Is(i - 1, "->")) {
      continue;
    }
    if (IsAddressSpace(tokens.Text(i))) {
      EraseAddressSpace(tokens, edits, i);
    } else if (tokens.Is(i, "kernel") || tokens.Is(i, "visible")) {
      // A specifier, unless it is somebody's name.
      if (tokens.IsIdentifier(i + 1) || IsAttributeList(tokens, i + 1)) {
        edits.Blank(i);
      }
    } else if (tokens.Is(i, "coherent")) {
      EraseCoherent(tokens, edits, i);
    } else if (tokens.Is(i, "__asm") || tokens.Is(i, "__asm__")) {
      EraseLabel(tokens, edits, i);
    } else if (tokens.Is(i, "__attribute__")) {
      ReplaceVectorType(tokens, edits, i);
    } else if (tokens.Is(i, "is_function_constant_defined")) {
      ReplaceIsDefined(tokens, edits, i);
    }
  }
}

// The preprocessor leaves macros in pragmas as they are, which Clang then does
// not know. How often to unroll a loop is a hint: without a number, it goes.
void EraseUnrollCounts(const Tokens& tokens, Edits& edits) {
  for (const Pragma& pragma : tokens.pragmas) {
    const std::string_view text =
        tokens.text.substr(pragma.begin, pragma.end - pragma.begin);
    const size_t open = text.find('(');
    if (open == text.npos || text.find("unroll") > open) continue;
    for (size_t i = open; i < text.size(); ++i) {
      const char c = text[i];
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')) {
        continue;
      }
      const bool is_loop = text.find("loop") < open;
      const std::string_view word = text.substr(i, 4);
      if (is_loop && (word == "full" || word == "enab" || word == "disa")) {
        break;
      }
      edits.BlankBytes(pragma.begin + static_cast<uint32_t>(is_loop ? 0 : open),
                       pragma.end);
      break;
    }
  }
}

// The preprocessor leaves pragmas. Any other directive is a macro's: `H
// include` where H stands for #. That is none, but Clang would take it for one
// when it reads the text again, and look for the file.
std::string MadeDirective(const Tokens& tokens) {
  for (const Pragma& pragma : tokens.pragmas) {
    std::string_view word =
        tokens.text.substr(pragma.begin + 1, pragma.end - pragma.begin - 1);
    word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
    if (word.substr(0, 6) == "pragma" || word.substr(0, 5) == "ident") continue;
    return tokens.files[pragma.file] + ":" + std::to_string(pragma.line) +
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
  const Tokens tokens = Lex(preprocessed);
  result.files.assign(tokens.user_files.begin(), tokens.user_files.end());
  result.error = MadeDirective(tokens);
  Edits edits(tokens);
  EraseWords(tokens, edits);
  EraseUnrollCounts(tokens, edits);
  // Clang says where a text is not even balanced.
  if (!tokens.balanced) {
    result.code = edits.Finish();
    result.looks = tokens.looks;
    return result;
  }
  MarkConditionals(tokens, edits);
  ResolveSwizzles(tokens, edits);
  Walker walker(tokens, edits, kernels, result);
  walker.Run();
  result.code = edits.Finish() + Write(walker.table());
  result.looks = tokens.looks;
  return result;
}

}  // namespace switchyard::device::metal
