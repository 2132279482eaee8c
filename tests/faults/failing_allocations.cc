// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/faults/failing_allocations.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

// glibc has these functions, but malloc.h does not declare them.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace switchyard::testing_support {
namespace {

std::atomic<bool> g_counting{false};
std::atomic<uint64_t> g_asked{0};
std::atomic<uint64_t> g_first{0};
std::atomic<Failing> g_which{Failing::kOne};

// True while this thread is in dlopen(), which TBB calls. During that time no
// memory is refused, because dlopen() of glibc 2.36 crashes without memory.
thread_local bool t_loads = false;

bool Fails() noexcept {
  if (t_loads || !g_counting.load(std::memory_order_relaxed)) return false;
  const uint64_t n = g_asked.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t first = g_first.load(std::memory_order_relaxed);
  if (first == 0 || n < first) return false;
  return n == first || g_which.load(std::memory_order_relaxed) != Failing::kOne;
}
void* NoMemory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

}  // namespace

void StartFailing(uint64_t n, Failing which) noexcept {
  g_asked = 0;
  g_first = n;
  g_which = which;
  g_counting = true;
}
uint64_t StopFailing() noexcept {
  g_counting = false;
  return g_asked;
}

extern "C" {

void* malloc(size_t size) { return Fails() ? NoMemory() : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return Fails() ? NoMemory() : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return Fails() ? NoMemory() : __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  return Fails() ? NoMemory() : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  void* const memory = memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}

void* mmap(void* address, size_t length, int protection, int flags, int fd,
           off_t offset) {
  if ((flags & MAP_ANONYMOUS) != 0 && Fails()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}

void* dlopen(const char* file, int mode) {
  static const auto open =
      reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  t_loads = true;
  void* const handle = open(file, mode);
  t_loads = false;
  return handle;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*start)(void*), void* argument) {
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  if (Fails()) return EAGAIN;
  return create(thread, attributes, start, argument);
}

}  // extern "C"

}  // namespace switchyard::testing_support
