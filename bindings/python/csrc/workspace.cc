// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "workspace.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

namespace switchyard {
namespace python {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::atomic<size_t> kept_bytes{size_t{256} << 20};

// The memory that a thread keeps between two calls. A call takes the memory
// while it runs, so that a nested call (from a hook, for example) gets other
// memory.
struct Kept {
  Bytes bytes;
  size_t size = 0;
};
thread_local Kept kept[2];

}  // namespace

size_t KeptBytes() { return kept_bytes.load(std::memory_order_relaxed); }
void SetKeptBytes(size_t bytes) {
  kept_bytes.store(bytes, std::memory_order_relaxed);
  for (Kept& k : kept) {
    if (k.size > bytes) k = Kept();
  }
}

void FreeBytes::operator()(void* data) const { std::free(data); }

Workspace::Workspace(Kind kind, size_t count)
    : kind_(kind),
      count_(count),
      bytes_(std::move(kept[kind].bytes)),
      size_(std::exchange(kept[kind].size, 0)) {
  if (bytes_ != nullptr && count <= size_ / sizeof(int32_t)) return;
  if (count > PTRDIFF_MAX / sizeof(int32_t)) throw std::bad_alloc();
  bytes_.reset();
  size_ = (count * sizeof(int32_t) + kHugePage) / kHugePage * kHugePage;
  bytes_.reset(std::aligned_alloc(kHugePage, size_));
  if (bytes_ == nullptr) throw std::bad_alloc();
  // Ignores an error: if the system refuses huge pages, the call only takes
  // longer.
  (void)madvise(bytes_.get(), size_, MADV_HUGEPAGE);
}

Workspace::~Workspace() {
  if (bytes_ != nullptr && size_ <= KeptBytes()) {
    kept[kind_].bytes = std::move(bytes_);
    kept[kind_].size = size_;
  }
}

}  // namespace python
}  // namespace switchyard
