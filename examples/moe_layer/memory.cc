// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "programs/program.h"

namespace moe_layer {
namespace {

using program::InputError;

// Closes on every way out; a mapping outlives its descriptor.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

FloatBuffer::FloatBuffer(size_t size) : size_(size) {
  if (size == 0) return;
  constexpr size_t kHugePage = size_t{2} << 20;
  if (size > (SIZE_MAX - kHugePage) / sizeof(float)) throw std::bad_alloc();
  const size_t bytes = size * sizeof(float);
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<float*>(std::aligned_alloc(alignment, rounded)));
  if (data_ == nullptr) throw std::bad_alloc();
  // Saves page faults while the weights are written and TLB misses while the
  // GEMMs read them. Advice only: a refusal changes nothing.
  if (alignment == kHugePage) madvise(data_.get(), rounded, MADV_HUGEPAGE);
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) {
    throw InputError(path + ": cannot open: " + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    throw InputError(path + ": cannot open: not a regular file");
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;  // mmap refuses an empty range
  void* mapping = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapping == MAP_FAILED) {
    throw InputError(path + ": cannot map: " + std::strerror(errno));
  }
  data_ = static_cast<const uint8_t*>(mapping);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

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
