// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The functions that Clang calls before each access of code that is compiled
// with -fsanitize=thread. They hand accesses to the library; nothing of
// ThreadSanitizer itself is in a module.

#ifndef SWITCHYARD_METAL_ACCESSES_H_
#define SWITCHYARD_METAL_ACCESSES_H_

#include "switchyard_abi.h"

// Inlined code has the lines of the shader that calls it.
#pragma clang attribute push(__attribute__((nodebug)), \
                             apply_to = hasType(functionType))

#define SWITCHYARD_ENTRY                                           \
  extern "C" __attribute__((visibility("hidden"), used, noinline)) \
  SWITCHYARD_NOT_CHECKED

namespace switchyard_metal {

// Stacks of running threads lie in blocks of that size, one in each.
constexpr u32 kStackBlockBits = 17;

// To a thread's own stack most accesses go, and nobody else's do.
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

#define SWITCHYARD_ACCESSES(bytes)                                             \
  SWITCHYARD_ENTRY void __tsan_read##bytes(void* address) {                    \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kReads);                      \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_write##bytes(void* address) {                   \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kWrites);                     \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_unaligned_read##bytes(void* address) {          \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kReads);                      \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_unaligned_write##bytes(void* address) {         \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kWrites);                     \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_read_write##bytes(void* address) {              \
    SWITCHYARD_ACCESS(                                                         \
        bytes, ::switchyard_metal::kReads | ::switchyard_metal::kWrites);      \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_unaligned_read_write##bytes(void* address) {    \
    SWITCHYARD_ACCESS(                                                         \
        bytes, ::switchyard_metal::kReads | ::switchyard_metal::kWrites);      \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_volatile_read##bytes(void* address) {           \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kReads);                      \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_volatile_write##bytes(void* address) {          \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kWrites);                     \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_unaligned_volatile_read##bytes(void* address) { \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kReads);                      \
  }                                                                            \
  SWITCHYARD_ENTRY void __tsan_unaligned_volatile_write##bytes(                \
      void* address) {                                                         \
    SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kWrites);                     \
  }
SWITCHYARD_ACCESSES(1)
SWITCHYARD_ACCESSES(2)
SWITCHYARD_ACCESSES(4)
SWITCHYARD_ACCESSES(8)
SWITCHYARD_ACCESSES(16)
#undef SWITCHYARD_ACCESSES

SWITCHYARD_ENTRY void __tsan_read_range(void* address,
                                        switchyard_metal::size bytes) {
  SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kReads);
}
SWITCHYARD_ENTRY void __tsan_write_range(void* address,
                                         switchyard_metal::size bytes) {
  SWITCHYARD_ACCESS(bytes, ::switchyard_metal::kWrites);
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

// Copies of structs. Clang 14 calls the C library's names, for an interceptor
// to see; later ones have names of their own. The module's references meet
// these, which must not become calls of themselves. In a namespace, since no
// shader is to see them.
namespace switchyard_metal {

#define SWITCHYARD_COPY(name)                                       \
  SWITCHYARD_ENTRY __attribute__((no_builtin)) void* name(          \
      void* to, const void* from, size bytes) {                     \
    if (bytes == 0) return to;                                      \
    const void* address = from;                                     \
    SWITCHYARD_ACCESS(bytes, kReads);                               \
    address = to;                                                   \
    SWITCHYARD_ACCESS(bytes, kWrites);                              \
    auto* const out = static_cast<unsigned char*>(to);              \
    const auto* const in = static_cast<const unsigned char*>(from); \
    if (out <= in) {                                                \
      for (size i = 0; i < bytes; ++i) out[i] = in[i];              \
    } else {                                                        \
      for (size i = bytes; i > 0; --i) out[i - 1] = in[i - 1];      \
    }                                                               \
    return to;                                                      \
  }
SWITCHYARD_COPY(memcpy)
SWITCHYARD_COPY(memmove)
SWITCHYARD_COPY(__tsan_memcpy)
SWITCHYARD_COPY(__tsan_memmove)
#undef SWITCHYARD_COPY

#define SWITCHYARD_FILL_BYTES(name)                                            \
  SWITCHYARD_ENTRY __attribute__((no_builtin)) void* name(void* to, int value, \
                                                          size bytes) {        \
    if (bytes == 0) return to;                                                 \
    const void* const address = to;                                            \
    SWITCHYARD_ACCESS(bytes, kWrites);                                         \
    auto* const out = static_cast<unsigned char*>(to);                         \
    for (size i = 0; i < bytes; ++i) {                                         \
      out[i] = static_cast<unsigned char>(value);                              \
    }                                                                          \
    return to;                                                                 \
  }
SWITCHYARD_FILL_BYTES(memset)
SWITCHYARD_FILL_BYTES(__tsan_memset)
#undef SWITCHYARD_FILL_BYTES

}  // namespace switchyard_metal

#undef SWITCHYARD_ACCESS
#undef SWITCHYARD_ENTRY

#pragma clang attribute pop

#endif  // SWITCHYARD_METAL_ACCESSES_H_
