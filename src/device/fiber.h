// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A function on a stack of its own, which can stop in the middle: threadgroups
// and threads that take turns between their barriers.

#ifndef SWITCHYARD_SRC_DEVICE_FIBER_H_
#define SWITCHYARD_SRC_DEVICE_FIBER_H_

#include <cstddef>
#include <functional>

// Sanitizers have to be told of each switch, and follow the C library's.
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
#if defined(SWITCHYARD_ASAN) || defined(SWITCHYARD_TSAN) || \
    !(defined(__x86_64__) || defined(__aarch64__))
#define SWITCHYARD_FIBER_CONTEXTS
#include <ucontext.h>
#endif

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
  void Run();
  void SwitchTo(bool inside);
  void Enter();
  size_t Colour() const;

#ifdef SWITCHYARD_FIBER_CONTEXTS
  static void Entry(unsigned high, unsigned low);
  ucontext_t inner_;
  ucontext_t outer_;
#else
  static void Entry(Fiber* fiber);
  // Stack pointers. What a switch touches lies in one line of the cache.
  void* inner_ = nullptr;
  void* outer_ = nullptr;
  void** back_ = nullptr;  // the outer_ of the fiber that was resumed
#endif
  bool running_ = false;
  bool entered_ = false;  // on its stack, if only to wait for a function
  unsigned char* memory_ = nullptr;  // a guard page, then the stack
  const size_t size_;
  std::function<void()> function_;
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
