// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "common/program.h"

namespace moe_layer {

using example::InputError;

void RequireMemory(double bytes, const std::string& what) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return;  // unknown: allocate and see
  const double memory =
      static_cast<double>(pages) * static_cast<double>(page_size);
  if (bytes > memory) {
    throw InputError(what + ": needs " + BytesText(bytes) +
                     " of memory, this machine has " + BytesText(memory));
  }
}

double PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

std::string BytesText(double bytes) {
  const double kib = bytes / 1024;
  char text[32];
  if (kib < 1024) {
    std::snprintf(text, sizeof(text), "%.1f KiB", kib);
  } else if (kib < 1024 * 1024) {
    std::snprintf(text, sizeof(text), "%.1f MiB", kib / 1024);
  } else {
    std::snprintf(text, sizeof(text), "%.2f GiB", kib / (1024 * 1024));
  }
  return text;
}

}  // namespace moe_layer
