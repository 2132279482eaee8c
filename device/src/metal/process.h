// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace switchyard::device::metal {

struct Finished {
  int status;          // its exit status, or 128 + the signal that ended it
  std::string errors;  // the text that it wrote to stderr
  bool timed_out;      // true if it was killed at the time limit
};

// The limits of a process; 0 means no limit.
struct Limits {
  unsigned seconds = 0;
  // Limit for its memory, and for each file that it writes.
  uint64_t bytes = 0;
};

// Runs a program to its end, without a shell. Its stdin is empty, and its
// stdout goes to the file `output`. Throws std::runtime_error if it can't be
// started.
Finished RunProcess(const std::vector<std::string>& arguments,
                    const std::string& output, const Limits& limits = {});

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_PROCESS_H_
