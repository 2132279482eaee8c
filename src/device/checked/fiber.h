// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A function on a stack of its own, which can stop in the middle: threadgroups
// that take turns between their barriers.

#ifndef SWITCHYARD_SRC_DEVICE_CHECKED_FIBER_H_
#define SWITCHYARD_SRC_DEVICE_CHECKED_FIBER_H_

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace switchyard::device {

class Fiber {
 public:
  // Throws std::bad_alloc.
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  bool running() const { return running_; }  // started, and not returned
  // Starts function, which must not throw, or goes on with the one that is
  // running. Returns when it has returned or called Suspend(), always to the
  // thread that called.
  void Resume(const std::function<void()>& function);
  void Suspend();

 private:
  static void Entry(unsigned high, unsigned low);
  void SwitchTo(bool inside, bool last);

  unsigned char* memory_ = nullptr;  // a guard page, then the stack
  ucontext_t inner_;
  ucontext_t outer_;
  std::function<void()> function_;
  bool running_ = false;
  // Of the sanitizers.
  [[maybe_unused]] void* inner_fake_stack_ = nullptr;
  [[maybe_unused]] void* outer_fake_stack_ = nullptr;
  [[maybe_unused]] const void* outer_stack_ = nullptr;
  [[maybe_unused]] size_t outer_stack_size_ = 0;
  [[maybe_unused]] void* inner_tsan_ = nullptr;
  [[maybe_unused]] void* outer_tsan_ = nullptr;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_SRC_DEVICE_CHECKED_FIBER_H_
