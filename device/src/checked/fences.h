// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Models atomic_thread_fence between threadgroups of a dispatch. If a thread
// executes a fence and then writes an atomic word, the word gets a release of
// the thread's accesses before the fence. If another thread reads the word and
// then executes a fence, it acquires the word's releases.

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
// The first `count` releases of a word.
struct Acquired {
  const Releases* releases;
  size_t count;
};

// The accesses that a fence has released: all accesses of a threadgroup before
// phase `phase`, and the accesses of `threads` in that phase.
struct Release {
  uint32_t phase = 0;  // 0 if there was no fence
  ThreadSet threads;
  bool all_threads = false;
  std::vector<Acquired> acquired;
};
// The releases at one word, from first to last.
struct Releases {
  std::vector<Release> list;
  std::unordered_map<size_t, std::vector<size_t>> by_threadgroup;
};

// All releases of the running dispatch, by word.
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
  // Forgets the word's releases, so that later reads of the word do not
  // acquire them.
  void Forget(uintptr_t word) {
    if (!at_.empty()) at_.erase(word);
  }
  Releases& Add(uintptr_t word) {
    Releases*& releases = at_[word];
    if (releases == nullptr) releases = &releases_.emplace_back();
    return *releases;
  }

 private:
  // This is a list, because pointers to its elements must stay valid.
  std::list<Releases> releases_;
  std::unordered_map<uintptr_t, Releases*> at_;
};

// The releases that a threadgroup has made, and the releases that it has
// acquired.
class ThreadgroupFences {
 public:
  void Begin(size_t threadgroup) {
    *this = ThreadgroupFences();
    threadgroup_ = threadgroup;
  }
  // Notes a fence by `thread`. `kind` is kAcquires, kReleases or both.
  void Fence(uint32_t kind, size_t thread, uint32_t phase);
  // Notes an atomic access to the word by `thread`. `count` is the number of
  // threads in the threadgroup.
  void Atomic(Fences& fences, uintptr_t word, uint32_t kind, size_t thread,
              size_t count);
  // Call Barrier() when all threads of the threadgroup have met, and Meet()
  // when all lanes of a simdgroup have met. Afterwards, each of the threads
  // that met knows every release that one of them knew.
  void Barrier();
  void Meet(size_t simdgroup);
  // True if fences order the next access of `thread` after the accesses of
  // threadgroup `threadgroup` in phase `phase`. If `by_others` is true, this
  // must hold for all threads of that threadgroup, otherwise only for thread
  // `by_thread`.
  bool Orders(size_t thread, size_t threadgroup, uint32_t phase,
              size_t by_thread, bool by_others) const;

 private:
  // Releases, and the threads that know them.
  struct Known {
    Acquired what;
    ThreadSet threads;
  };
  static void Add(std::vector<Known>& known, const Acquired& what,
                  const ThreadSet& threads);

  size_t threadgroup_ = 0;
  Release own_;  // fences since the last barrier, made by own_.threads
  Release all_;  // fences before the last barrier; they count for every thread
  // Releases at words that threads have read. A thread's next fence acquires
  // the releases that the thread has read.
  std::vector<Known> seen_;
  // Releases that threads have read and then acquired by a fence.
  std::vector<Known> acquired_;
};

}  // namespace switchyard::device::kernel_internal

#endif  // SWITCHYARD_DEVICE_SRC_CHECKED_FENCES_H_
