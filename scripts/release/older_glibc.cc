// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Released programs start with glibc 2.34. They have GCC's static libraries
// within, which were compiled for 2.36 and expect of it what is defined here.
// The definitions are for the program alone: exported, they would take the
// place of glibc's in all that it loads.

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// glibc 2.36: the C++ library's random_device.
extern "C" __attribute__((visibility("hidden"))) uint32_t
arc4random() noexcept {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* found;
};

// Takes the object that has the address: where its table of frames is.
int LookIn(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  bool has_address = false;
  void* frames = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search->address - begin < segment.p_memsz)
      has_address = true;
    if (segment.p_type == PT_GNU_EH_FRAME)
      frames = reinterpret_cast<void*>(begin);
  }
  if (!has_address) return 0;
  search->found->dlfo_eh_frame = frames;
  return frames == nullptr ? -1 : 1;
}

}  // namespace

// glibc 2.35: the unwinder's way from a return address to its frame. It reads
// only the table.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(address), result};
  return dl_iterate_phdr(LookIn, &search) == 1 ? 0 : -1;
}
