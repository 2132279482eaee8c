// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A fiber runs a function on a separate stack and can suspend it. Checked
// mode runs threadgroups and threads on fibers, which take turns at barriers.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_FIBER_H_
#define SWITCHYARD_DEVICE_SRC_CORE_FIBER_H_

#include <cstddef>
#include <functional>

// Sanitizers must be told of each switch between stacks. Builds with a
// sanitizer switch stacks with the C library's swapcontext(), because
// sanitizers support it.
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

// Suspends the current stack, stores its position in *from, and continues the
// stack at position `to`. An earlier switch on this OS thread stored that
// position, or Start() returned it.
extern "C" [[gnu::visibility("hidden")]] void switchyard_fiber_switch(
    void** from, void* to);

class Fiber {
 public:
  // The stack is a block of `stack_size` bytes, a power of two, and is
  // aligned to that size. Its first page is a guard page. Throws
  // std::bad_alloc.
  explicit Fiber(size_t stack_size);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Returns a position for switchyard_fiber_switch(), which then calls
  // function(argument) on this stack. The function must neither return nor
  // throw; use Resume() for functions that return. Objects that are still on
  // the stack from an earlier use are not destroyed.
  void* Start(void (*function)(void*), void* argument);

  // True if the function of Resume() has started and not returned.
  bool running() const { return running_; }
  // Starts `function`, which must not throw, or continues the suspended one.
  // Returns to the calling thread when the function returns or calls
  // Suspend().
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
