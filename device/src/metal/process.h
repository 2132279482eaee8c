// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace switchyard::device::metal {

struct Finished {
  int status;          // of exit(), 128 + the signal that ended it
  std::string errors;  // what it wrote to stderr
  bool timed_out;      // and was ended
};

// 0: none.
struct Limits {
  unsigned seconds = 0;
  uint64_t bytes = 0;  // of its memory, and of what it writes
};

// Runs a program to its end; no shell is in between. Its stdin is empty, its
// stdout goes to the file. Throws std::runtime_error if it can't be started.
Finished RunProcess(const std::vector<std::string>& arguments,
                    const std::string& output, const Limits& limits = {});

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_
