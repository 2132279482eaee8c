// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The ranges of namespaces' and classes' declarations, and the functions that
// are the same once address spaces are gone.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "device/src/metal/edits.h"
#include "device/src/metal/lexer.h"

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
  uint32_t BodyEnd(const Tokens& tokens) const { return tokens.Match(body); }
};

// The one that begins at `begin`, within tokens before `limit`. Never empty.
Declaration ReadDeclaration(const Tokens& tokens, uint32_t begin,
                            uint32_t limit);

class Duplicates {
 public:
  Duplicates(const Tokens& tokens, const Edits& edits)
      : tokens_(tokens), edits_(edits) {}

  enum class Found {
    kNew,
    kSame,       // of an earlier one, which differs in address spaces alone
    kDifferent,  // the same declaration with another body: it stays
    kReplaces,   // that, and for the thread's own memory: it takes its place
  };
  // `scope` tells namespaces and classes apart. `earlier` gets the tokens of
  // the one that is replaced.
  Found Add(const std::string& scope, const Declaration& declaration,
            std::pair<uint32_t, uint32_t>* earlier);

 private:
  struct Seen {
    uint64_t original;  // hash of the declaration, address spaces included
    uint64_t body;
    std::pair<uint32_t, uint32_t> tokens;  // from the first, to behind the last
    bool is_thread;  // of all address spaces it names that one only
  };

  const Tokens& tokens_;
  const Edits& edits_;
  std::unordered_map<std::string, Seen> seen_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_DECLARATIONS_H_
