// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/checked/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace switchyard::device::kernel_internal {
namespace {

// Copies only trails that are in use, because writing an untouched page costs
// memory, while reading it does not.
void CopyTrails(const Cell* from, size_t from_trails, Cell* to,
                size_t to_trails) {
  for (size_t trail = 1; trail < 4; ++trail) {
    Cell cell;
    std::memcpy(
        &cell,
        reinterpret_cast<const unsigned char*>(from) + trail * from_trails,
        sizeof(cell));
    if (cell.write == 0 && cell.read == 0) continue;
    std::memcpy(reinterpret_cast<unsigned char*>(to) + trail * to_trails, &cell,
                sizeof(cell));
  }
}

}  // namespace

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
  void* const memory =
      mmap(nullptr, covered.mapped_size(), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  covered.cells = static_cast<Cell*>(memory);
  bytes_ += covered.size();
  for (auto r = first; r != last; ++r) {
    const size_t at = r->begin - covered.begin;
    std::memcpy(covered.cells + at, r->cells, r->size());
    for (size_t i = 0; i < r->end - r->begin; ++i) {
      const Cell& cell = r->cells[i];
      if (cell.write == kSplit) {
        for (size_t half = 2 * i; half < 2 * i + 2; ++half) {
          covered.halves()[2 * at + half] = r->halves()[half];
          CopyTrails(&r->halves()[half], r->trails(),
                     &covered.halves()[2 * at + half], covered.trails());
        }
      } else if (cell.write != 0 || cell.read != 0) {
        CopyTrails(&cell, r->trails(), &covered.cells[at + i],
                   covered.trails());
      }
    }
    munmap(r->cells, r->mapped_size());
    bytes_ -= r->size();
  }
  regions_.insert(regions_.erase(first, last), covered);
}

const Shadow::Region& Shadow::FindRegion(const void* data) const {
  const uintptr_t word = reinterpret_cast<uintptr_t>(data) / 4;
  return *std::find_if(regions_.begin(), regions_.end(),
                       [&](const Region& r) { return r.end > word; });
}
uintptr_t Shadow::Base(const void* data) const {
  const Region& r = FindRegion(data);
  return reinterpret_cast<uintptr_t>(r.cells) - r.begin * sizeof(Cell);
}
uintptr_t Shadow::HalvesBase(const void* data) const {
  const Region& r = FindRegion(data);
  return reinterpret_cast<uintptr_t>(r.halves()) - 2 * r.begin * sizeof(Cell);
}
size_t Shadow::Trails(const void* data) const {
  return FindRegion(data).trails();
}

void Shadow::Clear() {
  for (const Region& r : regions_) {
    munmap(r.cells, r.mapped_size());
  }
  regions_.clear();
  bytes_ = 0;
}

}  // namespace switchyard::device::kernel_internal
