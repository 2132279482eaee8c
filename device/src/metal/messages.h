// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Clang's messages as a shader's author is to read them.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_

#include <functional>
#include <string>

namespace switchyard::device::metal {

// The text of a file that a message names; empty if there is none.
using TextOf = std::function<std::string(const std::string& file)>;

// Clang has read the translated text: lines are shown as they are in the file,
// columns and carets moved to where they belong there. Types of the shim's own
// become those of Metal that they stand for, and its notes (those of files in
// `shim`), which tell of its functions one by one, go.
std::string Readable(const std::string& messages, const std::string& shim,
                     const TextOf& text_of);

// The linker's complaints about functions that are declared and used, and
// defined nowhere, a line with the place each; all of them if there are none.
std::string ReadableOfLinker(const std::string& messages);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_MESSAGES_H_
