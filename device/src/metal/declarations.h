// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Declarations of namespaces and classes: their parts, the ones that are the
// same in C++, which has no address spaces, and the integers that they name.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "device/src/metal/text.h"

namespace switchyard::device::metal {

// All of them token indices, kNone where it has no such part.
struct Declaration {
  uint32_t begin = 0;
  uint32_t end = 0;             // behind its ; or }
  uint32_t head = 0;            // behind template <...>
  uint32_t parameters = kNone;  // the < of a template's, the innermost's
  bool is_instantiation = false;
  uint32_t class_key = kNone;
  uint32_t name = kNone;  // of a function, unqualified
  uint32_t open = kNone;  // of a function's parameters
  uint32_t close = kNone;
  uint32_t initializer = kNone;  // the =, or : of a constructor
  uint32_t body = kNone;         // the { of a function or class

  bool IsTemplate() const { return parameters != kNone; }
  bool IsFunction() const { return open != kNone; }
  bool IsClass() const { return body != kNone && open == kNone; }
  uint32_t BodyEnd(const Text& text) const { return text.match(body); }
};

// Reads the declaration that begins at `begin` and ends before `limit`. It is
// never empty.
Declaration ReadDeclaration(const Text& text, uint32_t begin, uint32_t limit);

class Duplicates {
 public:
  explicit Duplicates(const Text& text) : text_(text) {}

  enum class Found {
    kNew,
    kSame,       // of an earlier one, which differs in address spaces alone
    kDifferent,  // the same declaration with another body: it stays
    kReplaces,   // that, and for the thread's own memory: it takes its place
  };
  // `scope` tells namespaces and classes apart. `earlier` gets the tokens of a
  // replaced declaration.
  Found Add(const std::string& scope, const Declaration& declaration,
            Piece* earlier);

 private:
  struct Seen {
    uint64_t original;  // hash of the declaration, address spaces included
    uint64_t body;
    Piece tokens;
    bool is_thread;  // of all address spaces it names that one only
  };

  const Text& text_;
  std::unordered_map<std::string, Seen> seen_;
};

// The integers that shaders name: [[buffer(kInput)]] is one of an enum, often.
class Constants {
 public:
  // `value` may be nothing: then the name is known for no number.
  void Add(std::string_view name, std::optional<uint32_t> value);
  // The enumerators between { and its match.
  void AddEnumerators(const Text& text, uint32_t open);

  // Returns the value of an expression of literals and names in tokens first to
  // last - 1; nothing for other tokens, a negative value or one above 65535.
  std::optional<uint32_t> Evaluate(const Text& text, uint32_t first,
                                   uint32_t last) const;

 private:
  std::unordered_map<std::string_view, std::optional<uint32_t>> values_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
