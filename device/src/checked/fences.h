// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// atomic_thread_fence between threadgroups of a dispatch. A thread that fences
// and then writes an atomic releases its past at that word; one that reads the
// atomic and then fences acquires what was released there.

#ifndef SWITCHYARD_DEVICE_SRC_CHECKED_FENCES_H_
#define SWITCHYARD_DEVICE_SRC_CHECKED_FENCES_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "switchyard/device/pipeline.h"

namespace switchyard::device::kernel_internal {

using ThreadSet = std::bitset<kMaxThreadsPerThreadgroup>;

struct Releases;
// The first `count` of them.
struct Acquired {
  const Releases* releases;
  size_t count;
};

// The accesses of a threadgroup that a fence was after: all before `phase`, and
// in it those of `threads`.
struct Release {
  uint32_t phase = 0;  // 0: there was no fence
  ThreadSet threads;
  bool all_threads = false;
  std::vector<Acquired> acquired;
};
// The releases at a word, in their order.
struct Releases {
  std::vector<Release> list;
  std::unordered_map<size_t, std::vector<size_t>> by_threadgroup;
};

// The releases of the dispatch that runs.
class Fences {
 public:
  void Clear() {
    at_.clear();
    releases_.clear();
  }
  // Null if there are none.
  Releases* At(uintptr_t word) const {
    const auto found = at_.empty() ? at_.end() : at_.find(word);
    return found == at_.end() ? nullptr : found->second;
  }
  // Reads there acquire nothing from before.
  void Forget(uintptr_t word) {
    if (!at_.empty()) at_.erase(word);
  }
  Releases& Add(uintptr_t word) {
    Releases*& releases = at_[word];
    if (releases == nullptr) releases = &releases_.emplace_back();
    return *releases;
  }

 private:
  std::list<Releases> releases_;  // stay where they are
  std::unordered_map<uintptr_t, Releases*> at_;
};

// The releases of a threadgroup, and what it has acquired.
class ThreadgroupFences {
 public:
  void Begin(size_t threadgroup) {
    *this = ThreadgroupFences();
    threadgroup_ = threadgroup;
  }
  // `kind` is of AccessKind: kAcquires, kReleases.
  void Fence(uint32_t kind, size_t thread, uint32_t phase);
  // An atomic access to the word, one of `count` threads.
  void Atomic(Fences& fences, uintptr_t word, uint32_t kind, size_t thread,
              size_t count);
  // All threads have met, or those of a simdgroup: what one knows, all do.
  void Barrier();
  void Meet(size_t simdgroup);
  // Whether the accesses of `phase` of the other threadgroup are over for
  // `thread`: of all its threads, or of the one.
  bool Orders(size_t thread, size_t threadgroup, uint32_t phase,
              size_t by_thread, bool by_others) const;

 private:
  // Releases that some threads know of.
  struct Known {
    Acquired what;
    ThreadSet threads;
  };
  static void Add(std::vector<Known>& known, const Acquired& what,
                  const ThreadSet& threads);

  size_t threadgroup_ = 0;
  Release own_;              // since the last barrier, each thread's for itself
  Release all_;              // before it, for any thread
  std::vector<Known> seen_;  // read by these, which no fence has followed
  std::vector<Known> acquired_;  // and a fence has
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_FENCES_H_
