// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/core/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>

#ifdef SWITCHYARD_FIBER_CONTEXTS
#include <ucontext.h>
#endif
#ifdef SWITCHYARD_ASAN
#include <sanitizer/asan_interface.h>
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
  tsan_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef SWITCHYARD_TSAN
  __tsan_destroy_fiber(tsan_);
#endif
#ifdef SWITCHYARD_ASAN
  // Functions that never returned leave marks, which Clang 14's runtime finds
  // in the next mapping at this address.
  __asan_unpoison_memory_region(memory_, size_);
#endif
  munmap(memory_, size_);
}

void Fiber::Run(void* self) {
  Fiber& fiber = *static_cast<Fiber*>(self);
  for (;;) {
    fiber.function_();
    fiber.running_ = false;
    switchyard_fiber_switch(&fiber.inner_, fiber.outer_);
  }
}

void Fiber::Resume(const std::function<void()>& function) {
  if (!running_) {
    function_ = function;
    running_ = true;
  }
  if (inner_ == nullptr) inner_ = Start(&Fiber::Run, this);
  switchyard_fiber_switch(&outer_, inner_);
}

void Fiber::Suspend() { switchyard_fiber_switch(&inner_, outer_); }

#ifdef SWITCHYARD_FIBER_CONTEXTS

namespace {

// A stack that was left, of which this is the top, or one that is to start,
// where it lies above the stack.
struct Context {
  ucontext_t registers;
  void (*function)(void*);
  void* argument;
  Context* before;  // the stack that was left for this one
  // Of the sanitizers. Where a stack lies is known when it has been left.
  [[maybe_unused]] void* fake_stack;
  [[maybe_unused]] const void* stack;
  [[maybe_unused]] size_t stack_size;
  [[maybe_unused]] void* tsan;
};

void Arrive([[maybe_unused]] Context* context) {
#ifdef SWITCHYARD_ASAN
  __sanitizer_finish_switch_fiber(context->fake_stack, &context->before->stack,
                                  &context->before->stack_size);
#endif
}

// makecontext() passes ints: the address comes in two halves.
void Enter(unsigned high, unsigned low) {
  Context* const context = reinterpret_cast<Context*>(
      static_cast<uintptr_t>(uint64_t{high} << 32 | low));
  Arrive(context);
  context->function(context->argument);
}

}  // namespace

extern "C" void switchyard_fiber_switch(void** from, void* to) {
  Context self = {};
  Context* const next = static_cast<Context*>(to);
  next->before = &self;
  *from = &self;
#ifdef SWITCHYARD_TSAN
  self.tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(next->tsan, 0);
#endif
#ifdef SWITCHYARD_ASAN
  __sanitizer_start_switch_fiber(&self.fake_stack, next->stack,
                                 next->stack_size);
#endif
  swapcontext(&self.registers, &next->registers);
  Arrive(&self);
}

void* Fiber::Start(void (*function)(void*), void* argument) {
#ifdef SWITCHYARD_ASAN
  __asan_unpoison_memory_region(memory_, size_);
#endif
  Context* const context = reinterpret_cast<Context*>(memory_ + size_) - 1;
  *context = {};
  getcontext(&context->registers);
  context->function = function;
  context->argument = argument;
  context->stack = memory_ + PageSize();
  context->stack_size = size_ - PageSize() - sizeof(Context);
  context->tsan = tsan_;
  context->registers.uc_stack.ss_sp = memory_ + PageSize();
  context->registers.uc_stack.ss_size = context->stack_size;
  context->registers.uc_link = nullptr;
  const uint64_t at = reinterpret_cast<uintptr_t>(context);
  makecontext(&context->registers, reinterpret_cast<void (*)()>(Enter), 2,
              static_cast<unsigned>(at >> 32), static_cast<unsigned>(at));
  return context;
}

#else

// switchyard_fiber_switch(from, to): leaves what a function has to preserve on
// this stack, whose pointer goes to *from, and takes it from the stack `to`.
// Control words are the thread's, and stay. The jump at the end is by an
// address of its own, for there is no call that a return could be predicted by.
//
// switchyard_fiber_start: where a new stack goes on, with a function and its
// argument in two of those registers.
extern "C" [[gnu::visibility("hidden")]] void switchyard_fiber_start();
#if defined(__x86_64__)
asm(R"(
  .text
  .p2align 4
  .globl switchyard_fiber_switch
  .hidden switchyard_fiber_switch
  .type switchyard_fiber_switch, @function
switchyard_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
  .size switchyard_fiber_switch, .-switchyard_fiber_switch
  .p2align 4
  .globl switchyard_fiber_start
  .hidden switchyard_fiber_start
  .type switchyard_fiber_start, @function
switchyard_fiber_start:
  movq %r12, %rdi
  jmpq *%r13
  .size switchyard_fiber_start, .-switchyard_fiber_start
)");
constexpr size_t kSaved = 8;  // r15, r14, r13, r12, rbx, rbp, rip; and a return
constexpr size_t kFunction = 2, kArgument = 3, kPlace = 6;
#else
asm(R"(
  .text
  .p2align 4
  .globl switchyard_fiber_switch
  .hidden switchyard_fiber_switch
  .type switchyard_fiber_switch, %function
switchyard_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  br x30
  .size switchyard_fiber_switch, .-switchyard_fiber_switch
  .p2align 4
  .globl switchyard_fiber_start
  .hidden switchyard_fiber_start
  .type switchyard_fiber_start, %function
switchyard_fiber_start:
  mov x0, x19
  mov x30, xzr
  br x20
  .size switchyard_fiber_start, .-switchyard_fiber_start
)");
constexpr size_t kSaved = 20;  // x19 to x30, d8 to d15
constexpr size_t kFunction = 1, kArgument = 0, kPlace = 11;
#endif

// The new stack looks as if a function on it had switched away. Stacks at
// multiples of a large power of two would all begin in the same few lines of
// the cache.
void* Fiber::Start(void (*function)(void*), void* argument) {
  const size_t colour = reinterpret_cast<uintptr_t>(memory_) / size_ % 64 * 192;
  auto* const end = reinterpret_cast<uint64_t*>(memory_ + size_ - colour);
  uint64_t* const saved = end - 2 - kSaved;
  std::fill(saved, end, 0);
  saved[kFunction] = reinterpret_cast<uintptr_t>(function);
  saved[kArgument] = reinterpret_cast<uintptr_t>(argument);
  saved[kPlace] = reinterpret_cast<uintptr_t>(&switchyard_fiber_start);
  return saved;
}

#endif

}  // namespace switchyard::device
