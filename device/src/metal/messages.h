// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Rewrites Clang's messages for the author of a shader.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_

#include <functional>
#include <string>

namespace switchyard::device::metal {

// Returns the text of a file that a message names; empty if it can't be read.
using TextOf = std::function<std::string(const std::string& file)>;

// Clang's messages are about the translated text. This shows the lines of the
// shader's file instead, and moves columns and carets to fit them. Types of
// the shim become the types of Metal that they stand for. Notes in the shim's
// files, which list its functions one by one, are dropped.
std::string Readable(const std::string& messages, const std::string& shim,
                     const TextOf& text_of);

// Returns a line with the place of each function that is used and defined
// nowhere; the linker's whole output if it is about something else.
std::string ReadableOfLinker(const std::string& messages);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_
