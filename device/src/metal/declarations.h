// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads the declarations in a shader's namespaces and classes:
// * ReadDeclaration() finds the parts of one declaration.
// * Duplicates finds declarations that differ only in address spaces. C++ has
//   no address spaces, so it would refuse them as redefinitions.
// * Constants evaluates integer constants.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "device/src/metal/text.h"

namespace switchyard::device::metal {

// The parts of a declaration, as indices of tokens. A part that the
// declaration lacks is kNone.
struct Declaration {
  uint32_t begin = 0;
  uint32_t end = 0;             // the token behind the ; or }
  uint32_t head = 0;            // the token behind template <...>
  uint32_t parameters = kNone;  // the < of the innermost template <...>
  bool is_instantiation = false;
  uint32_t class_key = kNone;
  uint32_t name = kNone;  // a function's name, without its scope
  uint32_t open = kNone;  // the ( of a function's parameters
  uint32_t close = kNone;
  // The = of a variable, or the : of a constructor.
  uint32_t initializer = kNone;
  uint32_t body = kNone;  // the { of a function or class

  bool IsTemplate() const { return parameters != kNone; }
  bool IsFunction() const { return open != kNone; }
  bool IsClass() const { return body != kNone && open == kNone; }
  uint32_t BodyEnd(const Text& text) const { return text.match(body); }
};

// Reads the declaration that begins at `begin` and ends before `limit`. The
// result has at least one token.
Declaration ReadDeclaration(const Text& text, uint32_t begin, uint32_t limit);

class Duplicates {
 public:
  explicit Duplicates(const Text& text) : text_(text) {}

  enum class Found {
    kNew,
    kSame,       // it differs from an earlier one only in address spaces
    kDifferent,  // its body differs, too; the earlier one stays
    // Its body differs, and it is for thread memory, so it replaces the
    // earlier one.
    kReplaces,
  };
  // `scope` is the namespace or class that contains the declaration. If the
  // declaration replaces an earlier one, *earlier gets the earlier one's
  // tokens.
  Found Add(const std::string& scope, const Declaration& declaration,
            Piece* earlier);

 private:
  struct Seen {
    uint64_t original;  // the declaration's hash, with its address spaces
    uint64_t body;
    Piece tokens;
    bool is_thread;  // true if it names no address space other than `thread`
  };

  const Text& text_;
  std::unordered_map<std::string, Seen> seen_;
};

// The integer constants of the shader. They are needed for attributes:
// [[buffer(kInput)]] often names an enumerator.
class Constants {
 public:
  // Adds a constant. If it has no value, Evaluate() fails for its name.
  void Add(std::string_view name, std::optional<uint32_t> value);
  // Adds the enumerators between the { at `open` and the matching }.
  void AddEnumerators(const Text& text, uint32_t open);

  // Returns the value of the expression in tokens first to last - 1. Returns
  // nothing if the value is negative or above 65535, or if a token is not an
  // operator, a literal or a known name.
  std::optional<uint32_t> Evaluate(const Text& text, uint32_t first,
                                   uint32_t last) const;

 private:
  std::unordered_map<std::string_view, std::optional<uint32_t>> values_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
