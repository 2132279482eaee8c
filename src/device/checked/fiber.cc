// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/checked/fiber.h"

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

// As much as a thread has: a variable of every thread takes 4 KB and more.
// Pages that are not touched cost nothing.
constexpr size_t kStackSize = size_t{8} << 20;

size_t PageSize() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

Fiber::Fiber() {
  void* const memory =
      mmap(nullptr, PageSize() + kStackSize, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<unsigned char*>(memory);
  if (mprotect(memory_, PageSize(), PROT_NONE) != 0) {
    munmap(memory_, PageSize() + kStackSize);
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
  munmap(memory_, PageSize() + kStackSize);
}

// makecontext() passes ints: the address comes in two halves.
void Fiber::Entry(unsigned high, unsigned low) {
  Fiber& fiber = *reinterpret_cast<Fiber*>(
      static_cast<uintptr_t>(uint64_t{high} << 32 | low));
#ifdef SWITCHYARD_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &fiber.outer_stack_,
                                  &fiber.outer_stack_size_);
#endif
  fiber.function_();
  fiber.running_ = false;
  fiber.SwitchTo(false, true);
}

void Fiber::Resume(const std::function<void()>& function) {
  if (!running_) {
    function_ = function;
    getcontext(&inner_);
    inner_.uc_stack.ss_sp = memory_ + PageSize();
    inner_.uc_stack.ss_size = kStackSize;
    inner_.uc_link = nullptr;
    const uint64_t self = reinterpret_cast<uintptr_t>(this);
    makecontext(&inner_, reinterpret_cast<void (*)()>(Entry), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
    running_ = true;
  }
  SwitchTo(true, false);
}

void Fiber::Suspend() { SwitchTo(false, false); }

// `last`: the function has returned, and this stack is not come back to.
void Fiber::SwitchTo(bool inside, bool last) {
  (void)last;
#ifdef SWITCHYARD_TSAN
  if (inside) outer_tsan_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inside ? inner_tsan_ : outer_tsan_, 0);
#endif
#ifdef SWITCHYARD_ASAN
  void** const fake_stack = inside ? &outer_fake_stack_ : &inner_fake_stack_;
  __sanitizer_start_switch_fiber(last ? nullptr : fake_stack,
                                 inside ? memory_ + PageSize() : outer_stack_,
                                 inside ? kStackSize : outer_stack_size_);
#endif
  swapcontext(inside ? &outer_ : &inner_, inside ? &inner_ : &outer_);
#ifdef SWITCHYARD_ASAN
  __sanitizer_finish_switch_fiber(
      inside ? outer_fake_stack_ : inner_fake_stack_,
      inside ? nullptr : &outer_stack_, inside ? nullptr : &outer_stack_size_);
#endif
}

}  // namespace switchyard::device
