// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tracks which threads must not wait for a queue's thread to end, and counts
// the detached queue threads.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_QUEUE_THREAD_H_
#define SWITCHYARD_DEVICE_SRC_CORE_QUEUE_THREAD_H_

namespace switchyard::device {

// While an AtWork exists, the thread does work of some queue: kernels,
// handlers or deallocators. It must not wait for a queue's thread to end,
// because that thread may be at work too and wait for this queue's thread.
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

// If a thread at work drops the last reference to a queue, it must not wait
// for the queue's thread. That thread becomes an orphan: it is detached and
// ends by itself. exit() waits for orphans, because otherwise static objects
// would be destroyed while work uses them. (Static objects created after the
// first orphan are destroyed before that wait.)
class Orphans {
 public:
  // Call this before the thread can end.
  static void Add();
  // The thread calls this last.
  static void Remove();
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_QUEUE_THREAD_H_
