// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which threads may wait for the end of a queue's, and what becomes of those
// that nobody may wait for.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_QUEUE_THREAD_H_
#define SWITCHYARD_DEVICE_SRC_CORE_QUEUE_THREAD_H_

namespace switchyard::device {

// While one exists, the thread does work of some queue: kernels, handlers,
// deallocators. There it must not wait for the end of any queue's thread: that
// may be at work too, and wait for this one's.
class AtWork {
 public:
  AtWork() : outer_(Here()) { Here() = true; }
  ~AtWork() { Here() = outer_; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  static bool& Here();

 private:
  const bool outer_;
};

// The threads of queues whose last reference was dropped at work. Detached,
// they end by themselves; exit() waits for them, or static objects would go
// while work uses them. (Those made after the first such thread go before.)
class Orphans {
 public:
  // Before the thread can end.
  static void Add();
  // The last that the thread does.
  static void Remove();
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_QUEUE_THREAD_H_
