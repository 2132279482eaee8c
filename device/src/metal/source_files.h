// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads the files of a shader safely. The shader's text names files in
// #include and #line. Such a file may be a device, a FIFO or a disk image.
// Reading it would take memory without limit, or would never end.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_SOURCE_FILES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_SOURCE_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace switchyard::device::metal {

// The size of the largest file that is read. The largest shader in the tests
// has 0.24 MB with all files that it includes, a 70th of this size. To compile
// a file, Clang needs memory of up to 30 times the file's size.
constexpr size_t kMaxSourceBytes = size_t{16} << 20;

struct SourceFile {
  enum class State {
    kRead,
    kAbsent,  // does not exist, or this user may not read it
    kFolder,
    kNoFile,  // is a device, a FIFO or a socket
    kTooLarge,
  };
  State state = State::kAbsent;
  std::string text;   // the file's contents; empty unless kRead
  std::string wrong;  // "is not a regular file"; empty if kRead
};

// Reads a regular file of at most kMaxSourceBytes. Never waits, even if
// `path` names another kind of file, such as a FIFO.
SourceFile ReadSource(const std::string& path);

// Throws std::runtime_error if the text of `path` includes a file that
// ReadSource() refuses, directly or through other files. The error's text is
// one line with the place of the #include. It calls the file at `path` by the
// name `name`. Absent files are left to Clang, which knows whether the #include
// is active. Files are looked for where Clang looks: in the including file's
// folder and in `folders`. Ignores an #include of a macro.
void RequireReadableIncludes(const std::string& text, const std::string& path,
                             const std::string& name,
                             const std::vector<std::string>& folders);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_SOURCE_FILES_H_
