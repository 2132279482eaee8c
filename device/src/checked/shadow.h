// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Cells for device memory: each records the last accesses to a word.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_SHADOW_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_SHADOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/src/checked/races.h"
#include "switchyard/device/kernel_memory.h"

namespace switchyard::device::kernel_internal {

// Finds cells by address, so that all buffers over the same memory share
// them. The system allocates their pages at the first access.
class Shadow {
 public:
  Shadow() = default;
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow() { Clear(); }

  // Makes cells for `length` bytes. May move the cells of other memory.
  // Throws std::bad_alloc.
  void Cover(const void* data, size_t length);
  // The address that the cell of address 0 would have. Adding the number of a
  // word (of a half in HalvesBase()) times sizeof(Cell) gives its cell. The
  // memory must be covered.
  uintptr_t Base(const void* data) const;
  uintptr_t HalvesBase(const void* data) const;
  size_t Trails(const void* data) const;  // see WordCells
  // Calls function(cells, address) for each covered word of the range, in
  // order.
  template <class Function>
  void ForEachWord(const void* data, size_t length, const Function& function) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(data) / 4;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + length + 3) / 4;
    for (const Region& r : regions_) {
      for (uintptr_t w = begin < r.begin ? r.begin : begin;
           w < end && w < r.end; ++w) {
        const size_t i = w - r.begin;
        function(WordCells{r.cells + i, r.halves() + 2 * i, r.trails()}, 4 * w);
      }
    }
  }
  void Clear();
  // The size of all words' cells, as if all were touched. Excludes the cells
  // of halves and the trails, because few of these are touched.
  size_t bytes() const { return bytes_; }

 private:
  struct Region {
    uintptr_t begin, end;  // in words
    Cell* cells;           // of the words, then of the halves, then the trails

    size_t size() const { return (end - begin) * sizeof(Cell); }
    size_t trails() const { return 3 * size(); }
    size_t mapped_size() const { return 4 * trails(); }
    Cell* halves() const { return cells + (end - begin); }
  };
  const Region& Of(const void* data) const;
  std::vector<Region> regions_;  // in order of addresses, not overlapping
  size_t bytes_ = 0;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_SHADOW_H_
