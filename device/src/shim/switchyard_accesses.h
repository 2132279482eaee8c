// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The functions that Clang calls before each access in code that it compiles
// with -fsanitize=thread. Here they pass the accesses to the library. Modules
// contain no part of ThreadSanitizer itself.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ACCESSES_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ACCESSES_H_

#include "switchyard_abi.h"

#define SWITCHYARD_ENTRY                                           \
  extern "C" __attribute__((visibility("hidden"), used, noinline)) \
  SWITCHYARD_NOT_CHECKED

namespace switchyard_metal {

// The stack of each running thread lies in a block of 2^kStackBlockBits
// bytes, which is aligned to its size.
constexpr u32 kStackBlockBits = 17;

// Reports an access, unless it is to the thread's own stack. Most accesses go
// to the stack, and no other thread uses that memory.
SWITCHYARD_NOT_CHECKED inline void Access(const void* address, size bytes,
                                          u32 kind, const void* frame,
                                          const void* where) {
  const u64 difference =
      reinterpret_cast<u64>(address) ^ reinterpret_cast<u64>(frame);
  if (difference >> kStackBlockBits == 0 || runtime == nullptr) return;
  runtime->access(address, bytes, kind, where);
}

}  // namespace switchyard_metal

#define SWITCHYARD_ACCESS(bytes, kind)                                         \
  ::switchyard_metal::Access(address, bytes, kind, __builtin_frame_address(0), \
                             __builtin_return_address(0))

#define SWITCHYARD_ACCESS_OF(name, bytes, kind)        \
  SWITCHYARD_ENTRY void __tsan_##name(void* address) { \
    using namespace ::switchyard_metal;                \
    SWITCHYARD_ACCESS(bytes, kind);                    \
  }
// For accesses of up to 8 bytes, the name of the called function says whether
// the address is aligned. For accesses of 16 bytes, accesses.cc determines
// the alignment.
#define SWITCHYARD_ACCESSES(bytes, is_aligned)                               \
  SWITCHYARD_ACCESS_OF(read##bytes, bytes, kReads | is_aligned)              \
  SWITCHYARD_ACCESS_OF(write##bytes, bytes, kWrites | is_aligned)            \
  SWITCHYARD_ACCESS_OF(unaligned_read##bytes, bytes, kReads)                 \
  SWITCHYARD_ACCESS_OF(unaligned_write##bytes, bytes, kWrites)               \
  SWITCHYARD_ACCESS_OF(read_write##bytes, bytes, kReads | kWrites)           \
  SWITCHYARD_ACCESS_OF(unaligned_read_write##bytes, bytes, kReads | kWrites) \
  SWITCHYARD_ACCESS_OF(volatile_read##bytes, bytes, kReads | kVolatile)      \
  SWITCHYARD_ACCESS_OF(volatile_write##bytes, bytes, kWrites | kVolatile)    \
  SWITCHYARD_ACCESS_OF(unaligned_volatile_read##bytes, bytes,                \
                       kReads | kVolatile)                                   \
  SWITCHYARD_ACCESS_OF(unaligned_volatile_write##bytes, bytes,               \
                       kWrites | kVolatile)
SWITCHYARD_ACCESSES(1, 0)
SWITCHYARD_ACCESSES(2, kAligned)
SWITCHYARD_ACCESSES(4, kAligned)
SWITCHYARD_ACCESSES(8, kAligned)
SWITCHYARD_ACCESSES(16, 0)
#undef SWITCHYARD_ACCESSES
#undef SWITCHYARD_ACCESS_OF

SWITCHYARD_ENTRY void __tsan_read_range(void* address,
                                        switchyard_metal::size bytes) {
  if (bytes != 0) SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kReads);
}
SWITCHYARD_ENTRY void __tsan_write_range(void* address,
                                         switchyard_metal::size bytes) {
  if (bytes != 0) SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kWrites);
}

SWITCHYARD_ENTRY void __tsan_aligned(void* address,
                                     switchyard_metal::size alignment) {
  SWITCHYARD_ACCESS(alignment, ::switchyard_metal::kAligned);
}
// A call of this function stands before each integer division, because
// divisions.cc inserts it.
SWITCHYARD_ENTRY void __tsan_division(bool by_zero, bool overflows) {
  using namespace ::switchyard_metal;
  if ((!by_zero && !overflows) || runtime == nullptr) return;
  runtime->divides(by_zero, __builtin_return_address(0));
}
SWITCHYARD_ENTRY void __tsan_vptr_read(void** address) {
  SWITCHYARD_ACCESS(sizeof(void*), ::switchyard_metal::kReads);
}
SWITCHYARD_ENTRY void __tsan_vptr_update(void** address, void*) {
  SWITCHYARD_ACCESS(sizeof(void*), ::switchyard_metal::kWrites);
}
SWITCHYARD_ENTRY void __tsan_init() {}
SWITCHYARD_ENTRY void __tsan_func_entry(void*) {}
SWITCHYARD_ENTRY void __tsan_func_exit() {}
SWITCHYARD_ENTRY void __tsan_ignore_thread_begin() {}
SWITCHYARD_ENTRY void __tsan_ignore_thread_end() {}

#undef SWITCHYARD_ACCESS
#undef SWITCHYARD_ENTRY

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ACCESSES_H_
