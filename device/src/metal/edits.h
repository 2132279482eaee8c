// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Edits of the text: tokens are blanked, so that nothing else moves, and a few
// words are inserted on the line where they belong.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_EDITS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_EDITS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/src/metal/lexer.h"

namespace switchyard::device::metal {

class Edits {
 public:
  explicit Edits(const Tokens& tokens)
      : tokens_(tokens),
        code_(tokens.text),
        written_(tokens.size(), Written::kAsItIs),
        is_gone_(tokens.size(), false) {}

  void Blank(uint32_t token);
  // Tokens first to last - 1, the pragmas between, and all that is inserted.
  void Blank(uint32_t first, uint32_t last);
  bool IsBlank(uint32_t token) const {
    return written_[token] == Written::kBlank;
  }
  // Bytes begin to end - 1 of the text, which are no token's.
  void BlankBytes(uint32_t begin, uint32_t end);
  // `word` is no longer than the token.
  void Become(uint32_t token, std::string_view word);
  // The text has one line. Later insertions are further from the token.
  void InsertBefore(uint32_t token, std::string text);
  void InsertBehind(uint32_t token, std::string text);
  // Over the blanks before the token, as far as there are enough of them.
  void PutBefore(uint32_t token, std::string_view text);
  // The token as it is written now.
  std::string_view Text(uint32_t token) const;
  // The tokens from first to last - 1 that are not blank, on one line.
  std::string Text(uint32_t first, uint32_t last) const;

  std::string Finish();

 private:
  enum class Written : uint8_t { kAsItIs, kBlank, kShorter };
  struct Insertion {
    uint32_t at;
    uint32_t token;
    int64_t order;  // among those at one place
    std::string text;
  };

  const Tokens& tokens_;
  std::string code_;
  std::vector<Written> written_;
  std::vector<bool> is_gone_;  // with what is inserted at it
  std::vector<Insertion> insertions_;
  int64_t behind_ = 0;
  int64_t before_ = int64_t{1} << 62;
};

// The passes over a text that are edits and no more.

// A swizzle where C++ sees more than a vector (v.xyz.xy, auto a = v.xy,
// f(v.xy)): a swizzle of a swizzle becomes the one of both. What a variable's
// auto or a template parameter of the shader's functions takes its type from
// becomes a vec: +v.xy. Names that the shader itself declares are members of
// its own, and left alone.
void ResolveSwizzles(const Tokens& tokens, Edits& edits);

// half is a class here, which becomes a float and is made of one. Of two such
// types C++ says that `c ? h : f` has two meanings, where Metal has one: this
// marks the parts of conditional expressions for the shim to say what type they
// have: `c ? a : b` is switchyard_metal::Either(c ? (a, Arm()) : (b, Arm())).
// Does nothing where no half or bfloat is named, and leaves out what may be
// something else than it looks like. For balanced text.
void MarkConditionals(const Tokens& tokens, Edits& edits);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_EDITS_H_
