// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The integers that shaders name: [[buffer(kInput)]] is one of an enum, often.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_CONSTANTS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_CONSTANTS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "device/src/metal/lexer.h"

namespace switchyard::device::metal {

class Constants {
 public:
  // `value` may be nothing: then the name is known for no number.
  void Add(std::string_view name, std::optional<uint32_t> value);
  // The enumerators between { and its match.
  void AddEnumerators(const Tokens& tokens, uint32_t open);

  // The value of literals and names in tokens first to last - 1; nothing if
  // there is anything else, or it is negative or above 65535.
  std::optional<uint32_t> Evaluate(const Tokens& tokens, uint32_t first,
                                   uint32_t last) const;

 private:
  std::unordered_map<std::string_view, std::optional<uint32_t>> values_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_CONSTANTS_H_
