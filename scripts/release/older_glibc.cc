// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes released programs start with glibc 2.34. The programs contain GCC's
// static libraries, which were compiled for glibc 2.36 and call the functions
// below. The definitions are hidden, because exported definitions would replace
// glibc's functions in every library that the program loads.

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// Replaces a function that glibc 2.36 introduced. The C++ library's
// random_device calls it.
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

// If `object` contains the address, finds the object's table of stack frames.
// Returns 0 to continue with the next object, 1 if it has found a table, or -1.
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

// Replaces a function that glibc 2.35 introduced. The unwinder calls it to find
// the stack frame of a return address, and reads only dlfo_eh_frame, the table
// of frames, from the result.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(address), result};
  return dl_iterate_phdr(LookIn, &search) == 1 ? 0 : -1;
}
