// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes released programs start with glibc 2.34. The programs contain GCC's
// static libraries, which were compiled for glibc 2.36 and call the functions
// below. The definitions are hidden. If they were exported, they would
// replace glibc's in every library that the program loads.

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// glibc has this function since 2.36. The C++ library's random_device calls
// it.
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

// If `object` contains the address, finds the table of frames of `object`.
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

// glibc has this function since 2.35. The unwinder calls it to find the frame
// for a return address. It only reads the table of frames.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(address), result};
  return dl_iterate_phdr(LookIn, &search) == 1 ? 0 : -1;
}
