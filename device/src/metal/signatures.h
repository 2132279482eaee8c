// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Signatures of kernels: their parameters and [[attributes]].

#ifndef SWITCHYARD_DEVICE_SRC_METAL_SIGNATURES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_SIGNATURES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "device/src/metal/constants.h"
#include "device/src/metal/lexer.h"
#include "device/src/metal/translate.h"

namespace switchyard::device::metal {

// name(first ... last - 1) between [[ and ]].
struct Attribute {
  uint32_t name;
  uint32_t first, last;  // equal if it has no arguments
};

// Whether token i is the first [ of an attribute list.
bool IsAttributeList(const Tokens& tokens, uint32_t i);
// The attributes of all lists within tokens first to last - 1.
std::vector<Attribute> Attributes(const Tokens& tokens, uint32_t first,
                                  uint32_t last);
// Whether it is C++'s or Clang's.
bool IsOfClang(const Tokens& tokens, const Attribute& attribute);

// The pieces of first to last - 1 between commas.
struct Piece {
  uint32_t first, last;
};
std::vector<Piece> SplitAtCommas(const Tokens& tokens, uint32_t first,
                                 uint32_t last);

// The name that a declarator declares: the last one before its [], = or
// attributes; kNone if there is none.
uint32_t DeclaredName(const Tokens& tokens, uint32_t first, uint32_t last);

bool IsOneOf(std::string_view word,
             std::initializer_list<std::string_view> words);
bool IsAddressSpace(std::string_view word);

// The text of a string literal or several in a row, quotes and escapes apart.
std::string StringValue(const Tokens& tokens, uint32_t first, uint32_t last);
// The text as a literal.
std::string Quote(std::string_view text);

// The name of a type that Metal has and Switchyard has not; null if token i is
// no such type.
const char* UnsupportedType(const Tokens& tokens, uint32_t i);
// The name of a function that is no kernel: "vertex function" and the like.
const char* UnsupportedFunction(std::string_view attribute);

struct KernelParameters {
  std::vector<TranslatedParameter> list;
  // If it can't be run: why, and the token to blame.
  std::string unsupported;
  uint32_t token = kNone;
};
// Reads tokens first to last - 1.
KernelParameters ReadParameters(const Tokens& tokens,
                                const Constants& constants, uint32_t first,
                                uint32_t last);

// "kBuffer".
const char* InputName(switchyard_metal::Input input);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_SIGNATURES_H_
