// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Declarations in namespaces and classes: their parts, duplicates that differ
// only by address space, which C++ lacks, and integer constants.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "device/src/metal/text.h"

namespace switchyard::device::metal {

// Token indices; kNone for a missing part.
struct Declaration {
  uint32_t begin = 0;
  uint32_t end = 0;             // behind the ; or }
  uint32_t head = 0;            // behind template <...>
  uint32_t parameters = kNone;  // the < of the innermost template <...>
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

// Reads the declaration that begins at `begin` and ends before `limit`. The
// result has at least one token.
Declaration ReadDeclaration(const Text& text, uint32_t begin, uint32_t limit);

class Duplicates {
 public:
  explicit Duplicates(const Text& text) : text_(text) {}

  enum class Found {
    kNew,
    kSame,       // differs from an earlier one in address spaces only
    kDifferent,  // has another body as well: the earlier one stays
    kReplaces,   // as above, and in thread memory: replaces the earlier one
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
    bool is_thread;  // names no address space but `thread`
  };

  const Text& text_;
  std::unordered_map<std::string, Seen> seen_;
};

// Integer constants of the shader. Attributes use them: [[buffer(kInput)]]
// often names an enumerator.
class Constants {
 public:
  // Without a value, Evaluate() fails for the name.
  void Add(std::string_view name, std::optional<uint32_t> value);
  // Adds the enumerators between { and its match.
  void AddEnumerators(const Text& text, uint32_t open);

  // Returns the value of the expression in tokens first to last - 1, or
  // nothing: for tokens other than operators, literals and known names, a
  // negative value, or a value above 65535.
  std::optional<uint32_t> Evaluate(const Text& text, uint32_t first,
                                   uint32_t last) const;

 private:
  std::unordered_map<std::string_view, std::optional<uint32_t>> values_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
