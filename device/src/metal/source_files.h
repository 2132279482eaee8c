// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The files that a shader is made of. Its text names them, in #include and
// #line, so a name may be that of a device, a FIFO or a disk's image: reading
// those takes memory without limit, or never ends.

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
    kAbsent,  // or not to be read by this user
    kFolder,
    kNoFile,  // a device, a FIFO, a socket
    kTooLarge,
  };
  State state = State::kAbsent;
  std::string text;   // empty unless kRead
  std::string wrong;  // empty if kRead: "is not a regular file"
};

// Reads a regular file of at most kMaxSourceBytes. No other is waited for.
SourceFile ReadSource(const std::string& path);

// Throws std::runtime_error, a line that names the place, if the text of `path`
// or a file that it includes, in turn, includes anything that ReadSource() does
// not read, but for what is absent: that is Clang's to tell, which knows
// whether the line is looked at. Names are looked for as Clang does, in the
// folder of the file and in `folders`. A name that a macro makes is not seen.
// Messages call the text `name`.
void RequireReadableIncludes(const std::string& text, const std::string& path,
                             const std::string& name,
                             const std::vector<std::string>& folders);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_SOURCE_FILES_H_
