// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The rule by which all executors here cut a loop into pieces, for an executor
// of your own as well. Results never depend on it.

#ifndef SWITCHYARD_PIECES_H_
#define SWITCHYARD_PIECES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "switchyard/executor.h"

namespace switchyard {

// The pieces of a loop over `count` indices, in order and equally long up to
// one index.
//
// `grain` indices take as long as a fork. Two threads gain on one from two
// grains on. The fork is paid once: pieces go down to half a grain, until each
// thread has one. From four grains a thread on it has four, or of four grains
// as many as there are, and threads claim them: with one each they wait for the
// slowest, 1.3 of the time for a prompt on sixteen threads.
class Pieces {
 public:
  Pieces(size_t count, size_t grain, size_t threads) noexcept {
    threads = std::max<size_t>(1, threads);
    const size_t grains = count / std::max<size_t>(1, grain);
    if (grains < 2 || threads == 1) {
      number_ = std::min<size_t>(1, count);
    } else if (grains < threads) {
      number_ = std::min({threads, 2 * grains, count});
    } else {
      const size_t each = grains / threads;
      number_ = threads * (each < 4 ? 1 : std::max<size_t>(4, each / 4));
    }
    workers_ = std::min(threads, number_);
    length_ = count / std::max<size_t>(1, number_);
    longer_ = count - length_ * number_;
  }

  size_t number() const noexcept { return number_; }
  // The threads that get a piece.
  size_t workers() const noexcept { return workers_; }
  // Piece i has the indices [Begin(i), Begin(i + 1)).
  size_t Begin(size_t i) const noexcept {
    return length_ * i + std::min(i, longer_);
  }

 private:
  size_t number_, workers_, length_, longer_;
};

// A loop that threads run together. Each of `workers` threads, or one thread
// for several of them, calls Run() once: it runs a piece of its own, the same
// one in loops of the same size, so that a row stays in a core's cache, and
// then pieces that nobody has claimed.
class SharedLoop {
 public:
  SharedLoop(size_t count, size_t grain, size_t threads, Executor::Body body,
             void* context) noexcept
      : pieces_(count, grain, threads), body_(body), context_(context) {}

  const Pieces& pieces() const noexcept { return pieces_; }

  // `first` is below `workers`, which may be fewer than pieces().workers().
  // The body is called on behalf of `worker`.
  void Run(size_t first, size_t workers, size_t worker) {
    const size_t number = pieces_.number();
    for (size_t i = first; i < number;) {
      body_(context_, worker, pieces_.Begin(i), pieces_.Begin(i + 1));
      if (number <= workers) return;
      i = workers + claimed_.fetch_add(1, std::memory_order_relaxed);
    }
  }

 private:
  const Pieces pieces_;
  const Executor::Body body_;
  void* const context_;
  std::atomic<size_t> claimed_{0};
};

}  // namespace switchyard

#endif  // SWITCHYARD_PIECES_H_
