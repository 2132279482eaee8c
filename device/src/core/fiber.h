// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Functions on stacks of their own, which can stop in the middle: threadgroups
// and threads that take turns between their barriers.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_FIBER_H_
#define SWITCHYARD_DEVICE_SRC_CORE_FIBER_H_

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
#endif

namespace switchyard::device {

// Leaves the caller's stack, and stores to *from where it goes on; goes on with
// `to`, which was stored so on this thread of the host, or comes from Start().
extern "C" [[gnu::visibility("hidden")]] void switchyard_fiber_switch(
    void** from, void* to);

class Fiber {
 public:
  // The stack lies in a block of `stack_size`, a power of two, at a multiple of
  // it, whose first page is a guard. Throws std::bad_alloc.
  explicit Fiber(size_t stack_size);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // What switchyard_fiber_switch() goes on with to call function(argument) on
  // this stack, which must neither return nor throw. Nothing that was on the
  // stack before is destroyed.
  void* Start(void (*function)(void*), void* argument);

  // Instead of Start(), a function that returns:
  bool running() const { return running_; }  // started, and not returned
  // Starts function, which must not throw, or goes on with the one that is
  // running. Returns when it has returned or called Suspend(), always to the
  // thread that called.
  void Resume(const std::function<void()>& function);
  void Suspend();

 private:
  static void Run(void* self);

  void* inner_ = nullptr;
  void* outer_ = nullptr;
  bool running_ = false;
  unsigned char* memory_ = nullptr;  // a guard page, then the stack
  const size_t size_;
  std::function<void()> function_;
  [[maybe_unused]] void* tsan_ = nullptr;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_FIBER_H_
