// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads the resources of this process, as Linux counts them.

#ifndef SWITCHYARD_TESTS_FAULTS_PROCESS_H_
#define SWITCHYARD_TESTS_FAULTS_PROCESS_H_

#include <malloc.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace switchyard::testing_support {

struct ProcessState {
  size_t heap_kib;  // used bytes of malloc: exact, unlike RSS
  size_t rss_kib;
  size_t fds;
  size_t threads;
};

inline size_t Entries(const char* folder) {
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(folder)) {
    ++entries;
  }
  return entries;
}

// First lets malloc return its free memory to the system, then reads the
// state.
inline ProcessState ReadProcessState() {
  malloc_trim(0);
  const struct mallinfo2 heap = mallinfo2();
  ProcessState state = {(heap.uordblks + heap.hblkhd) / 1024, 0,
                        Entries("/proc/self/fd"), Entries("/proc/self/task")};
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0)
      state.rss_kib = std::stoul(line.substr(6));
  }
  return state;
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_FAULTS_PROCESS_H_
