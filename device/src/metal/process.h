// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace switchyard::device::metal {

struct Finished {
  int status;          // of exit(), or 128 + the signal that ended it
  std::string errors;  // the text on stderr
  bool timed_out;      // it was killed at the time limit
};

// 0: no limit.
struct Limits {
  unsigned seconds = 0;
  uint64_t bytes = 0;  // limit of its memory, and of each written file
};

// Runs a program to its end, without a shell. Its stdin is empty, its stdout
// goes to the file. Throws std::runtime_error if it can't be started.
Finished RunProcess(const std::vector<std::string>& arguments,
                    const std::string& output, const Limits& limits = {});

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_
