// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/program.h"

namespace moe_layer {
namespace {

using example::InputError;

// Closes on every way out; a mapping outlives its descriptor.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

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

}  // namespace moe_layer
