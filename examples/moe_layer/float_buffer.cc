// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "float_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace moe_layer {

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

void FloatBuffer::Free::operator()(float* data) const noexcept {
  std::free(data);
}

}  // namespace moe_layer
