// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads the files of a shader. Its text names them, in #include and #line, so
// a name may be that of a device, a FIFO or a disk's image: reading those
// takes memory without limit, or never ends.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_SOURCE_FILES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_SOURCE_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace switchyard::device::metal {

// The largest file that is read: 70 times the largest shader of the tests with
// all that it includes, 0.24 MB. It costs up to 30 times its size in memory.
constexpr size_t kMaxSourceBytes = size_t{16} << 20;

struct SourceFile {
  enum class State {
    kRead,
    kAbsent,  // or not readable by this user
    kFolder,
    kNoFile,  // a device, a FIFO, a socket
    kTooLarge,
  };
  State state = State::kAbsent;
  std::string text;   // empty unless kRead
  std::string wrong;  // "is not a regular file"; empty if kRead
};

// Reads a regular file of at most kMaxSourceBytes. Never waits for another
// kind of file, such as a FIFO.
SourceFile ReadSource(const std::string& path);

// Throws std::runtime_error, a line with the place, if the text of `path`
// includes a file that ReadSource() refuses, directly or through other files.
// Absent files are left to Clang, which knows whether the #include is active.
// Searches like Clang, in the file's folder and in `folders`. Does not see
// names that a macro makes. Messages call the text `name`.
void RequireReadableIncludes(const std::string& text, const std::string& path,
                             const std::string& name,
                             const std::vector<std::string>& folders);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_SOURCE_FILES_H_
