// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/checked/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace switchyard::device::kernel_internal {

void Shadow::Cover(const void* data, size_t length) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  Region covered = {address / 4, (address + length + 3) / 4, nullptr};
  regions_.reserve(regions_.size() + 1);
  const auto first =
      std::find_if(regions_.begin(), regions_.end(),
                   [&](const Region& r) { return r.end > covered.begin; });
  auto last = first;
  while (last != regions_.end() && last->begin < covered.end) ++last;
  if (last - first == 1 && first->begin <= covered.begin &&
      first->end >= covered.end) {
    return;
  }
  if (first != last) {
    covered.begin = std::min(covered.begin, first->begin);
    covered.end = std::max(covered.end, (last - 1)->end);
  }
  const size_t size = (covered.end - covered.begin) * sizeof(Cell);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  covered.cells = static_cast<Cell*>(memory);
  bytes_ += size;
  for (auto r = first; r != last; ++r) {
    const size_t old = (r->end - r->begin) * sizeof(Cell);
    std::memcpy(covered.cells + (r->begin - covered.begin), r->cells, old);
    munmap(r->cells, old);
    bytes_ -= old;
  }
  regions_.insert(regions_.erase(first, last), covered);
}

uintptr_t Shadow::Base(const void* data) const {
  const uintptr_t word = reinterpret_cast<uintptr_t>(data) / 4;
  const auto r = std::find_if(regions_.begin(), regions_.end(),
                              [&](const Region& x) { return x.end > word; });
  return reinterpret_cast<uintptr_t>(r->cells) - r->begin * sizeof(Cell);
}

void Shadow::Clear() {
  for (const Region& r : regions_) {
    munmap(r.cells, (r.end - r.begin) * sizeof(Cell));
  }
  regions_.clear();
  bytes_ = 0;
}

}  // namespace switchyard::device::kernel_internal
