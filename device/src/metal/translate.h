// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Translates preprocessed Metal to C++, which Clang can compile.

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
  uint32_t index = 0;  // set only for buffers and threadgroup memory
  std::string text;    // as declared: "device const float * x"
  std::string when;    // the condition in [[function_constant(..)]]
};

struct TranslatedKernel {
  std::string name;  // its host_name, or else the function's name
  std::string file;
  uint32_t line = 0;
  std::vector<TranslatedParameter> parameters;
};

struct Unsupported {
  std::string what;
  std::string file;
  uint32_t line = 0, column = 0;
  std::string kernel;  // the function that was left out; empty if none was
};

struct Translation {
  std::string code;
  // The kernels, in the order of the module's table.
  std::vector<TranslatedKernel> kernels;
  // Names of kernels that were left out because the caller did not ask for
  // them.
  std::vector<std::string> not_asked_for;
  // The parts of the shader that were left out or changed:
  // * A kernel, a vertex function or another function that was left out.
  //   `kernel` has its name.
  // * A place where the code differs from the shader. `kernel` is empty.
  std::vector<Unsupported> unsupported;
  // An error "file:line:column: error: ..." if the shader can't be translated
  // to C++; otherwise empty.
  std::string error;
  // The names of the shader's files, as line markers give them.
  std::vector<std::string> files;
  // How often the translation has read a token: a measure of its cost.
  uint64_t looks = 0;
};

// Translates the output of clang++ -E with its line markers. Every token
// stays on its line, so that Clang's messages name the shader's lines. The
// shim is a system header to the preprocessor, so its text is not changed.
// Errors in the shader are left to Clang. The time is linear in the size of
// the text. `kernels` names the kernels to translate; if it is empty, all are
// translated.
Translation Translate(std::string_view preprocessed,
                      const std::vector<std::string>& kernels = {});

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_TRANSLATE_H_
