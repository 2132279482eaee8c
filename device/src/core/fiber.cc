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

// Maps twice the size, to find an aligned block in it, and unmaps the rest.
// This is cheap, because pages that are not touched cost no memory.
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
  // Functions that never returned leave bytes on the stack that ASan regards
  // as poisoned. The ASan runtime of Clang 14 would report them in the next
  // mapping at this address.
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

// The state of a suspended stack. It is a local variable of the function that
// suspended the stack, or lies at the highest address of a stack that has not
// started.
struct Context {
  ucontext_t registers;
  void (*function)(void*);
  void* argument;
  Context* before;  // the stack that entered this one and was suspended
  // The sanitizers need these members. The bounds of a stack are known after
  // the first switch away from it.
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

// Takes the address in two halves, because makecontext() passes only ints.
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

// switchyard_fiber_switch(from, to) pushes the callee-saved registers on this
// stack and stores the stack pointer in *from. Then it restores the registers
// from the stack `to`. The floating-point control words stay, because they
// belong to the thread. The function ends with an indirect jump instead of a
// return: the CPU predicts a return from the matching call, and there was no
// such call.
//
// A new stack starts in switchyard_fiber_start, with the function and its
// argument in two of the callee-saved registers.
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
// The words that a switch leaves on a stack: r15, r14, r13, r12, rbx, rbp,
// rip, and a return address of 0.
constexpr size_t kSaved = 8;
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

// Makes the new stack look as if a function on it had called
// switchyard_fiber_switch. The offset `colour` differs between stacks: stacks
// at multiples of a large power of two would otherwise all compete for the
// same few cache lines.
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
