// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/core/queue_thread.h"

#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>

namespace switchyard::device {
namespace {

struct Counted {
  // The process in which the count is valid. In a forked child, WaitAtExit()
  // does not wait, because the child inherits the count but not the threads.
  const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable none;
  size_t orphans = 0;
};

Counted& Count() {
  // The object is never destroyed, because threads may end after static
  // objects are destroyed.
  alignas(Counted) static unsigned char storage[sizeof(Counted)];
  static Counted* const counted = new (storage) Counted;
  return *counted;
}

void WaitAtExit() {
  // If a kernel or handler calls exit(), waiting for that kernel or handler
  // to end would be a deadlock.
  if (AtWork::Here() || getpid() != Count().process) return;
  std::unique_lock<std::mutex> lock(Count().mutex);
  Count().none.wait(lock, [] { return Count().orphans == 0; });
}

}  // namespace

bool& AtWork::Here() {
  thread_local bool here = false;
  return here;
}

void Orphans::Add() {
  // If atexit() has no room for another function, exit() does not wait.
  [[maybe_unused]] static const int registered = std::atexit(WaitAtExit);
  const std::lock_guard<std::mutex> lock(Count().mutex);
  ++Count().orphans;
}

void Orphans::Remove() {
  const std::lock_guard<std::mutex> lock(Count().mutex);
  if (--Count().orphans == 0) Count().none.notify_all();
}

}  // namespace switchyard::device
