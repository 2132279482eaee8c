// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The end of the translated text: the table of kernels and constants that the
// module exports.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_TABLE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/src/metal/translate.h"

namespace switchyard::device::metal {

struct TableKernel {
  TranslatedKernel kernel;
  std::string pointer;      // to its function: "ns::swy_kernel_3"
  std::string max_threads;  // an expression, empty if not given
};

struct TableConstant {
  std::string scope;  // "ns::"
  std::string name;
  uint32_t index;
  std::string type;
};

struct Table {
  std::vector<TableKernel> kernels;
  std::vector<TableConstant> constants;
  // Functions that assign the constants that depend on function constants, in
  // order.
  std::vector<std::string> set_ups;
};

std::string WriteTable(const Table& table);

// The input that a parameter with this attribute has; kUnsupported for any
// other attribute.
switchyard_metal::Input FindInput(std::string_view attribute);

// Metal's name of a type: "uint" for uint32_t.
std::string NameMetalType(std::string type);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_TABLE_H_
