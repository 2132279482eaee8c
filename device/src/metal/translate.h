// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Translates preprocessed Metal to C++ for Clang.

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
  uint32_t index = 0;  // only of buffers and threadgroup memory
  std::string text;    // as declared: "device const float * x"
  std::string when;    // the condition in [[function_constant(..)]]
};

struct TranslatedKernel {
  std::string name;  // its host_name, or the function's name
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
  // Names of kernels left out because the caller did not ask for them.
  std::vector<std::string> not_asked_for;
  // Left-out kernels, vertex functions and the like, with the name in
  // `kernel`; and places where the code differs from the shader, with an
  // empty `kernel`.
  std::vector<Unsupported> unsupported;
  // "file:line:column: error: ..." if the shader can't be translated to C++.
  std::string error;
  // The files of the shader, as line markers name them.
  std::vector<std::string> files;
  // Number of times that the translation read a token: its cost.
  uint64_t looks = 0;
};

// Translates the output of clang++ -E, line markers included. Every token
// stays on its line, so that Clang's messages name the shader's lines. The
// shim is a system header to the preprocessor, so its text stays as it is.
// Errors in the shader are left to Clang. Takes linear time.
// Translates only the kernels that `kernels` names, or all if it is empty.
Translation Translate(std::string_view preprocessed,
                      const std::vector<std::string>& kernels = {});

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_TRANSLATE_H_
