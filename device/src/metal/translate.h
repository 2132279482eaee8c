// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Preprocessed Metal in, C++ for Clang out.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_TRANSLATE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_TRANSLATE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/src/shim/switchyard_abi.h"

namespace switchyard::device::metal {

struct TranslatedParameter {
  std::string name;
  switchyard_metal::Input input = switchyard_metal::Input::kUnsupported;
  uint32_t index = 0;  // of buffers and threadgroup memory
  std::string text;    // as declared: "device const float * x"
  std::string when;    // its [[function_constant(..)]]'s
};

struct TranslatedKernel {
  std::string name;  // its host_name, or else the function's
  std::string file;
  uint32_t line = 0;
  std::vector<TranslatedParameter> parameters;
};

struct Unsupported {
  std::string what;
  std::string file;
  uint32_t line = 0, column = 0;
  std::string kernel;  // empty: concerns the whole file
};

struct Translation {
  std::string code;
  // In the order of the module's table.
  std::vector<TranslatedKernel> kernels;
  // Names of those that nobody has asked for, and that are not in it.
  std::vector<std::string> not_asked_for;
  // Kernels that are left out of it, functions and types that are left out of
  // the code, and what makes the code different from the shader: that has an
  // empty `kernel`.
  std::vector<Unsupported> unsupported;
  // "file:line:column: error: ..." if there is no C++ that does the same.
  std::string error;
  // The files of the shader, as line markers name them.
  std::vector<std::string> files;
  // How often a token was looked at: what it took, by count.
  uint64_t looks = 0;
};

// The output of clang++ -E with its line markers. Every token stays on its
// line; what comes from the shim, a system header to the preprocessor, is
// untouched. Errors of the shader are left to Clang. Linear in the length of
// the text.
// `kernels` are those that are asked for; empty: all.
Translation Translate(std::string_view preprocessed,
                      const std::vector<std::string>& kernels = {});

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_TRANSLATE_H_
