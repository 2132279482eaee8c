// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The cells for device memory. Each cell records the last accesses to a word.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_SHADOW_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_SHADOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/src/checked/races.h"
#include "switchyard/device/kernel_memory.h"

namespace switchyard::device::kernel_internal {

// Finds cells by the address of the memory, so all buffers over the same
// memory share its cells. The system allocates the cells' pages when they are
// first accessed.
class Shadow {
 public:
  Shadow() = default;
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow() { Clear(); }

  // Makes cells for `length` bytes. May move the cells of other memory.
  // Throws std::bad_alloc.
  void Cover(const void* data, size_t length);
  // The cell of word i lies at Base() + i * sizeof(Cell), the cell of half i
  // at HalvesBase() + i * sizeof(Cell). Word i is the memory at address 4 * i,
  // half i the memory at 2 * i. The memory at `data` must be covered.
  uintptr_t Base(const void* data) const;
  uintptr_t HalvesBase(const void* data) const;
  size_t Trails(const void* data) const;  // WordCells::trails
  // Calls function(cells, address) for each covered word of the range, from
  // the lowest address to the highest.
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
  // Returns the size in bytes of the cells of all covered words. The cells of
  // halves and the trails are not counted, because few of them are touched.
  size_t bytes() const { return bytes_; }

 private:
  struct Region {
    // The numbers of the region's first word and of the word behind its last
    // one.
    uintptr_t begin, end;
    Cell* cells;  // cells of the words, then of the halves, then the trails

    size_t size() const { return (end - begin) * sizeof(Cell); }
    size_t trails() const { return 3 * size(); }
    size_t mapped_size() const { return 4 * trails(); }
    Cell* halves() const { return cells + (end - begin); }
  };
  const Region& FindRegion(const void* data) const;
  std::vector<Region> regions_;  // sorted by address, without overlaps
  size_t bytes_ = 0;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_SHADOW_H_
