// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Rewrites Clang's messages so that they make sense to the author of a
// shader.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_

#include <functional>
#include <string>

namespace switchyard::device::metal {

// A function that returns the text of a file named in a message, or an empty
// text if the file can't be read.
using TextOf = std::function<std::string(const std::string& file)>;

// Clang's messages show lines of the translated text. This function shows the
// lines of the shader's file instead, and moves columns and carets to fit
// them. It replaces the shim's types by the types of Metal that they
// implement. It drops notes in the shim's files, because these list the
// shim's functions one by one.
std::string MakeReadable(const std::string& messages, const std::string& shim,
                         const TextOf& text_of);

// Rewrites the linker's output. Returns a line for each function that is used
// but not defined, with the place of its use. If the output is about
// something else, returns all of it unchanged.
std::string ReadableOfLinker(const std::string& messages);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_
