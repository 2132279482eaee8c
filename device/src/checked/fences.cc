// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/checked/fences.h"

#include <unordered_set>
#include <utility>

#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/kernel_threads.h"

namespace switchyard::device::kernel_internal {

void ThreadgroupFences::Add(std::vector<Known>& known, const Acquired& what,
                            const ThreadSet& threads) {
  for (Known& k : known) {
    if (k.what.releases != what.releases) continue;
    // Threads that read the word later know more of its releases. So only
    // threads that know the same number of releases share an entry.
    if (k.what.count == what.count) {
      k.threads |= threads;
      return;
    }
    if (k.threads == threads && k.what.count < what.count) {
      k.what.count = what.count;
      return;
    }
  }
  known.push_back({what, threads});
}

void ThreadgroupFences::Fence(uint32_t kind, size_t thread, uint32_t phase) {
  ThreadSet self;
  self.set(thread);
  if ((kind & kReleases) != 0) {
    if (own_.phase != phase) own_ = Release();
    own_.phase = phase;
    own_.threads.set(thread);
  }
  if ((kind & kAcquires) == 0) return;
  for (const Known& seen : seen_) {
    if (seen.threads[thread]) Add(acquired_, seen.what, self);
  }
}

void ThreadgroupFences::Atomic(Fences& fences, uintptr_t word, uint32_t kind,
                               size_t thread, size_t count) {
  if ((kind & kReads) != 0) {
    const Releases* const releases = fences.At(word);
    ThreadSet self;
    self.set(thread);
    if (releases != nullptr) {
      Add(seen_, {releases, releases->list.size()}, self);
    }
  } else {
    fences.Forget(word);
  }
  const bool has_fenced = own_.phase != 0 || all_.phase != 0;
  if ((kind & kWrites) == 0 || !has_fenced) return;
  Release release = all_;
  if (own_.phase != 0 && own_.threads[thread]) {
    if (own_.phase != all_.phase) release = Release();
    release.phase = own_.phase;
    release.threads.set(thread);
  }
  if (release.phase == 0) return;
  release.all_threads = release.threads.count() >= count;
  for (const Known& known : acquired_) {
    if (known.threads[thread]) release.acquired.push_back(known.what);
  }
  Releases& releases = fences.Add(word);
  releases.by_threadgroup[threadgroup_].push_back(releases.list.size());
  releases.list.push_back(std::move(release));
}

void ThreadgroupFences::Barrier() {
  if (own_.phase != 0) {
    if (own_.phase == all_.phase) own_.threads |= all_.threads;
    all_ = own_;
    own_ = Release();
  }
  for (std::vector<Known>* const known : {&seen_, &acquired_}) {
    std::vector<Known> merged;
    for (const Known& k : *known) Add(merged, k.what, ThreadSet().set());
    *known = std::move(merged);
  }
}

void ThreadgroupFences::Meet(size_t simdgroup) {
  ThreadSet lanes(UINT32_MAX);
  lanes <<= simdgroup * kSimdWidth;
  for (std::vector<Known>* const known : {&seen_, &acquired_}) {
    for (Known& k : *known) {
      if ((k.threads & lanes).any()) k.threads |= lanes;
    }
  }
}

bool ThreadgroupFences::Orders(size_t thread, size_t threadgroup,
                               uint32_t phase, size_t by_thread,
                               bool by_others) const {
  std::vector<Acquired> left;
  std::unordered_set<const Releases*> visited;
  for (const Known& known : acquired_) {
    if (known.threads[thread]) left.push_back(known.what);
  }
  // An acquired release also passes on the releases that its threadgroup had
  // acquired before it. The loop follows this chain to its end.
  while (!left.empty()) {
    const Acquired acquired = left.back();
    left.pop_back();
    const auto& by = acquired.releases->by_threadgroup;
    const auto found = by.find(threadgroup);
    if (found != by.end()) {
      for (const size_t i : found->second) {
        if (i >= acquired.count) break;
        const Release& release = acquired.releases->list[i];
        if (phase < release.phase ||
            (phase == release.phase &&
             (by_others ? release.all_threads : release.threads[by_thread]))) {
          return true;
        }
      }
    }
    if (!visited.insert(acquired.releases).second) continue;
    for (size_t i = 0; i < acquired.count; ++i) {
      for (const Acquired& more : acquired.releases->list[i].acquired) {
        if (visited.count(more.releases) == 0) left.push_back(more);
      }
    }
  }
  return false;
}

}  // namespace switchyard::device::kernel_internal
