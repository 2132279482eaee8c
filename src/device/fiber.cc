// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// longjmp() to another stack is what the checked one of glibc refuses.
#undef _FORTIFY_SOURCE

#include "src/device/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SWITCHYARD_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define SWITCHYARD_TSAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SWITCHYARD_ASAN
#endif
#ifdef __SANITIZE_THREAD__
#define SWITCHYARD_TSAN
#endif

#ifdef SWITCHYARD_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SWITCHYARD_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace switchyard::device {
namespace {

size_t PageSize() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

// Pages that are not touched cost nothing.
Fiber::Fiber(size_t stack_size) : size_(stack_size) {
  void* const mapped =
      mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  unsigned char* const begin = static_cast<unsigned char*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) & (size_ - 1);
  memory_ = begin + before;
  if (before != 0) munmap(begin, before);
  munmap(memory_ + size_, size_ - before);
  if (mprotect(memory_, PageSize(), PROT_NONE) != 0) {
    munmap(memory_, size_);
    throw std::bad_alloc();
  }
#ifdef SWITCHYARD_TSAN
  inner_tsan_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef SWITCHYARD_TSAN
  __tsan_destroy_fiber(inner_tsan_);
#endif
  munmap(memory_, size_);
}

// makecontext() passes ints: the address comes in two halves.
void Fiber::Entry(unsigned high, unsigned low) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(
      static_cast<uintptr_t>(uint64_t{high} << 32 | low));
#ifdef SWITCHYARD_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &fiber.outer_stack_,
                                  &fiber.outer_stack_size_);
#endif
  for (;;) {
    fiber.function_();
    fiber.running_ = false;
    fiber.SwitchTo(false);
  }
}

void Fiber::Resume(const std::function<void()>& function) {
  if (!running_) {
    function_ = function;
    running_ = true;
  }
  SwitchTo(true);
}

void Fiber::Suspend() { SwitchTo(false); }

// Stacks at multiples of a large power of two would all begin in the same few
// lines of the cache.
size_t Fiber::Colour() const {
  return reinterpret_cast<uintptr_t>(memory_) / size_ % 64 * 192;
}

void Fiber::Enter() {
  getcontext(&inner_);
  inner_.uc_stack.ss_sp = memory_ + PageSize();
  inner_.uc_stack.ss_size = size_ - PageSize() - Colour();
  inner_.uc_link = nullptr;
  const uint64_t self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inner_, reinterpret_cast<void (*)()>(Entry), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  entered_ = true;
}

#if defined(SWITCHYARD_ASAN) || defined(SWITCHYARD_TSAN)

void Fiber::SwitchTo(bool inside) {
  if (!entered_) Enter();
#ifdef SWITCHYARD_TSAN
  if (inside) outer_tsan_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inside ? inner_tsan_ : outer_tsan_, 0);
#endif
#ifdef SWITCHYARD_ASAN
  __sanitizer_start_switch_fiber(
      inside ? &outer_fake_stack_ : &inner_fake_stack_,
      inside ? memory_ + PageSize() : outer_stack_,
      inside ? size_ - PageSize() : outer_stack_size_);
#endif
  swapcontext(inside ? &outer_ : &inner_, inside ? &inner_ : &outer_);
#ifdef SWITCHYARD_ASAN
  __sanitizer_finish_switch_fiber(
      inside ? outer_fake_stack_ : inner_fake_stack_,
      inside ? nullptr : &outer_stack_, inside ? nullptr : &outer_stack_size_);
#endif
}

// Who resumed this one goes on with the next one itself.
void Fiber::HandOver(Fiber& /*next*/) { Suspend(); }

#else

// Contexts save the signal mask, a system call each time: once, to get on to
// the stack.
void Fiber::SwitchTo(bool inside) {
  if (inside) back_ = &outer_jump_;
  if (_setjmp(inside ? outer_jump_ : inner_jump_) != 0) return;
  if (!entered_) {
    Enter();
    setcontext(&inner_);
  }
  _longjmp(inside ? inner_jump_ : *back_, 1);
}

void Fiber::HandOver(Fiber& next) {
  next.back_ = back_;
  if (_setjmp(inner_jump_) == 0) _longjmp(next.inner_jump_, 1);
}

#endif

}  // namespace switchyard::device
