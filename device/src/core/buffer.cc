// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/buffer.h"

namespace switchyard::device {

Buffer::Buffer(void* contents, size_t length, bool read_only) noexcept
    : contents_(contents), length_(length), read_only_(read_only) {}

Buffer::~Buffer() {
  if (deallocator_ == nullptr) return;
  try {
    deallocator_(contents_, length_);
  } catch (...) {
    // A destructor cannot report the deallocator's exception.
  }
}

}  // namespace switchyard::device
