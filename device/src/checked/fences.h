// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// atomic_thread_fence between threadgroups of a dispatch. A thread that
// fences and then writes an atomic releases its earlier accesses at that
// word. A thread that reads the atomic and then fences acquires these
// releases.

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
// The first `count` of a word's releases.
struct Acquired {
  const Releases* releases;
  size_t count;
};

// The accesses of a threadgroup that a fence has released: all accesses
// before `phase`, and the accesses of `threads` in it.
struct Release {
  uint32_t phase = 0;  // 0: no fence
  ThreadSet threads;
  bool all_threads = false;
  std::vector<Acquired> acquired;
};
// The releases at a word, in order.
struct Releases {
  std::vector<Release> list;
  std::unordered_map<size_t, std::vector<size_t>> by_threadgroup;
};

// The releases of the running dispatch.
class Fences {
 public:
  void Clear() {
    at_.clear();
    releases_.clear();
  }
  // Returns null if the word has no releases.
  Releases* At(uintptr_t word) const {
    const auto found = at_.empty() ? at_.end() : at_.find(word);
    return found == at_.end() ? nullptr : found->second;
  }
  // Later reads of the word acquire none of its earlier releases.
  void Forget(uintptr_t word) {
    if (!at_.empty()) at_.erase(word);
  }
  Releases& Add(uintptr_t word) {
    Releases*& releases = at_[word];
    if (releases == nullptr) releases = &releases_.emplace_back();
    return *releases;
  }

 private:
  // A list, because pointers to them must stay valid.
  std::list<Releases> releases_;
  std::unordered_map<uintptr_t, Releases*> at_;
};

// The releases of a threadgroup, and the releases that it has acquired.
class ThreadgroupFences {
 public:
  void Begin(size_t threadgroup) {
    *this = ThreadgroupFences();
    threadgroup_ = threadgroup;
  }
  // `kind` is kAcquires, kReleases or both.
  void Fence(uint32_t kind, size_t thread, uint32_t phase);
  // Notes an atomic access to the word by `thread`; the threadgroup has
  // `count` threads.
  void Atomic(Fences& fences, uintptr_t word, uint32_t kind, size_t thread,
              size_t count);
  // All threads, or all of a simdgroup, have met: from now on each of them
  // knows every release that one of them knew.
  void Barrier();
  void Meet(size_t simdgroup);
  // True if fences order all accesses of the other threadgroup's `phase`
  // before `thread`: the accesses of all its threads, or only of `by_thread`.
  bool Orders(size_t thread, size_t threadgroup, uint32_t phase,
              size_t by_thread, bool by_others) const;

 private:
  // Releases, and the threads that know of them.
  struct Known {
    Acquired what;
    ThreadSet threads;
  };
  static void Add(std::vector<Known>& known, const Acquired& what,
                  const ThreadSet& threads);

  size_t threadgroup_ = 0;
  Release own_;  // since the last barrier, separately for each thread
  Release all_;  // before the last barrier, for any thread
  std::vector<Known> seen_;      // seen by reads, with no fence since
  std::vector<Known> acquired_;  // seen by reads, then acquired by a fence
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_FENCES_H_
