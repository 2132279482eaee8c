// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A function on a stack of its own, which can stop in the middle: threadgroups
// and threads that take turns between their barriers.

#ifndef SWITCHYARD_SRC_DEVICE_FIBER_H_
#define SWITCHYARD_SRC_DEVICE_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace switchyard::device {

class Fiber {
 public:
  // The stack lies in a block of `stack_size`, a power of two, at a multiple of
  // it, whose first page is a guard. Throws std::bad_alloc.
  explicit Fiber(size_t stack_size);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  bool running() const { return running_; }  // started, and not returned
  // Starts function, which must not throw, or goes on with the one that is
  // running. Returns when it has returned or called Suspend(), always to the
  // thread that called.
  void Resume(const std::function<void()>& function);
  void Suspend();
  // Suspends this one, which runs, and goes on with `next`, which has stopped,
  // on the thread that called: Suspend() there returns to who resumed this one.
  // Half the time of two switches.
  void HandOver(Fiber& next);
  // Forgets the function that is running: nothing on its stack is destroyed.
  void Abandon() { running_ = entered_ = false; }

 private:
  static void Entry(unsigned high, unsigned low);
  void SwitchTo(bool inside);
  void Enter();
  size_t Colour() const;

  const size_t size_;
  unsigned char* memory_ = nullptr;  // a guard page, then the stack
  ucontext_t inner_;
  // For switching by contexts, or by jumps.
  [[maybe_unused]] ucontext_t outer_;
  [[maybe_unused]] jmp_buf inner_jump_;
  [[maybe_unused]] jmp_buf outer_jump_;
  [[maybe_unused]] jmp_buf* back_ = nullptr;  // whose outer_jump_
  std::function<void()> function_;
  bool running_ = false;
  bool entered_ = false;  // on its stack, if only to wait for a function
  // Of the sanitizers.
  [[maybe_unused]] void* inner_fake_stack_ = nullptr;
  [[maybe_unused]] void* outer_fake_stack_ = nullptr;
  [[maybe_unused]] const void* outer_stack_ = nullptr;
  [[maybe_unused]] size_t outer_stack_size_ = 0;
  [[maybe_unused]] void* inner_tsan_ = nullptr;
  [[maybe_unused]] void* outer_tsan_ = nullptr;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_SRC_DEVICE_FIBER_H_
