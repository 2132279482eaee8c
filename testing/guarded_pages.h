// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTING_GUARDED_PAGES_H_
#define SWITCHYARD_TESTING_GUARDED_PAGES_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

namespace switchyard::testing_support {

// Memory that ends at an inaccessible page. Freed memory is kept for reuse,
// because mmap and munmap took half of the time that the tests spend in the
// kernel: 30 of 58 s.
class GuardedPages {
 public:
  // Returns `bytes` bytes, a multiple of the page size, that end at the
  // inaccessible page.
  static char* Take(size_t bytes) {
    const size_t size = Mapped(bytes);
    {
      const std::lock_guard<std::mutex> lock(Mutex());
      std::vector<char*>& free = Free()[size];
      if (!free.empty()) {
        char* const end = free.back();
        free.pop_back();
        return end - bytes;
      }
    }
    void* const map = mmap(nullptr, size + PageSize(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) std::abort();
    char* const end = static_cast<char*>(map) + size;
    if (mprotect(end, PageSize(), PROT_NONE) != 0) std::abort();
    return end - bytes;
  }
  static void GiveBack(char* pages, size_t bytes) {
    const size_t size = Mapped(bytes);
    char* const end = pages + bytes;
    if (size <= kMostKept) {
      const std::lock_guard<std::mutex> lock(Mutex());
      Free()[size].push_back(end);
    } else {
      munmap(end - size, size + PageSize());
    }
  }
  static size_t PageSize() {
    static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
  }

 private:
  static constexpr size_t kMostKept = size_t{16} << 20;
  // Rounds up to a power of two, so that the lists of kept memory have few
  // sizes.
  static size_t Mapped(size_t bytes) {
    size_t size = PageSize();
    while (size < bytes && size < kMostKept) size *= 2;
    return std::max(size, bytes);
  }
  // The ends of the kept mappings, by size. Never destroyed, because static
  // objects may give memory back when the program exits.
  static std::map<size_t, std::vector<char*>>& Free() {
    static auto* const free = new std::map<size_t, std::vector<char*>>;
    return *free;
  }
  static std::mutex& Mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_GUARDED_PAGES_H_
