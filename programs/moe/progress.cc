// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace moe_layer {

Progress::Progress(std::string label, size_t total)
    : label_(std::move(label)),
      total_(total),
      animated_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {
  if (animated_) Draw(0);
}

Progress::~Progress() {
  if (animated_ && !finished_) std::fputc('\n', stderr);
}

void Progress::Add(size_t amount) noexcept {
  const size_t done = done_.fetch_add(amount) + amount;
  if (!animated_ || total_ == 0) return;
  const size_t percent = done * 100 / total_;
  if (percent != (done - amount) * 100 / total_) Draw(percent);
}

void Progress::Finish(const std::string& result) {
  finished_ = true;
  const std::chrono::duration<double> time =
      std::chrono::steady_clock::now() - start_;
  std::fprintf(stderr, "%s%s: %s in %.1f s%s\n", animated_ ? "\r" : "",
               label_.c_str(), result.c_str(), time.count(),
               animated_ ? "\033[K" : "");
}

void Progress::Draw(size_t percent) noexcept {
  char bar[] = "........................................";
  std::fill_n(bar, percent * (sizeof(bar) - 1) / 100, '#');
  std::fprintf(stderr, "\r%s  [%s] %3zu %%", label_.c_str(), bar, percent);
}

}  // namespace moe_layer
