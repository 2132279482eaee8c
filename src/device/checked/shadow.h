// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Cells for device memory: who touched which word last.

#ifndef SWITCHYARD_SRC_DEVICE_CHECKED_SHADOW_H_
#define SWITCHYARD_SRC_DEVICE_CHECKED_SHADOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/device/kernel_memory.h"

namespace switchyard::device::kernel_internal {

// By address, so that all buffers over the same memory share cells. Memory for
// them comes from the system when they are touched.
class Shadow {
 public:
  Shadow() = default;
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow() { Clear(); }

  // Makes cells for `length` bytes. Those of other memory may move. Throws
  // std::bad_alloc.
  void Cover(const void* data, size_t length);
  // Where the cell of address 0 would be, for memory that is covered.
  uintptr_t Base(const void* data) const;
  // The cells there are in the range, one after the other.
  template <class Function>
  void ForEachCell(const void* data, size_t length, const Function& function) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(data) / 4;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + length + 3) / 4;
    for (const Region& r : regions_) {
      for (uintptr_t w = begin < r.begin ? r.begin : begin;
           w < end && w < r.end; ++w) {
        function(r.cells[w - r.begin]);
      }
    }
  }
  void Clear();
  size_t bytes() const { return bytes_; }  // if all were touched

 private:
  struct Region {
    uintptr_t begin, end;  // in words
    Cell* cells;
  };
  std::vector<Region> regions_;  // in order of addresses, apart
  size_t bytes_ = 0;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_SRC_DEVICE_CHECKED_SHADOW_H_
