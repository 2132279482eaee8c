// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTING_CREW_H_
#define SWITCHYARD_TESTING_CREW_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace switchyard::testing_support {

// A thread of an engine, with the arguments that it passes to TeamExecutor.
struct EngineThread {
  size_t thread, num_threads;
  void (*barrier)(void* context);
  void* context;
};

// Runs a function on `num_threads` threads. Each thread gets a barrier at
// which all threads wait for each other.
class EngineThreads {
 public:
  explicit EngineThreads(size_t num_threads) : num_threads_(num_threads) {}

  EngineThread Member(size_t thread) {
    return {thread, num_threads_,
            [](void* crew) { static_cast<EngineThreads*>(crew)->Wait(); },
            this};
  }
  // Runs call(member) on each thread.
  template <class Call>
  void Run(const Call& call) {
    std::vector<std::thread> threads;
    for (size_t i = 1; i < num_threads_; ++i) {
      threads.emplace_back([&, i] { call(Member(i)); });
    }
    call(Member(0));
    for (std::thread& thread : threads) thread.join();
  }

 private:
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const size_t round = round_;
    if (++waiting_ == num_threads_) {
      waiting_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return round_ != round; });
    }
  }

  const size_t num_threads_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  size_t waiting_ = 0, round_ = 0;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_CREW_H_
