// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of the kernels and constants that a module exports. It is the end
// of the translated text.

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
  std::string pointer;  // to the function: "ns::swy_kernel_3"
  // An expression; empty if the shader gives no maximum.
  std::string max_threads;
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
  // Names of functions, in the order in which they must be called. Each
  // function sets a constant that depends on function constants.
  std::vector<std::string> set_ups;
};

std::string WriteTable(const Table& table);

// Returns the input of the kernel that the attribute selects, or kUnsupported
// if the attribute selects no input.
switchyard_metal::Input FindInput(std::string_view attribute);

// Returns Metal's name of a C++ type, such as "uint" for uint32_t.
std::string NameMetalType(std::string type);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_TABLE_H_
