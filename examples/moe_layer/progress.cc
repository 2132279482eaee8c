// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

namespace moe_layer {
namespace {

constexpr size_t kBarWidth = 40;

}  // namespace

Progress::Progress(std::string label, size_t total)
    : label_(std::move(label)),
      total_(total),
      animated_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {
  if (animated_) {
    Draw(0);
  } else {
    std::fprintf(stderr, "%s ...\n", label_.c_str());
  }
}

Progress::~Progress() {
  if (animated_ && !finished_) std::fputc('\n', stderr);
}

void Progress::Add(size_t amount) noexcept {
  const size_t done = done_.fetch_add(amount) + amount;
  if (!animated_ || total_ == 0) return;
  const size_t percent = done * 100 / total_;
  size_t shown = shown_percent_.load();
  // Whoever moves the shown value up draws it, so each is drawn once.
  while (percent > shown) {
    if (shown_percent_.compare_exchange_weak(shown, percent)) {
      Draw(percent);
      return;
    }
  }
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
  char bar[kBarWidth + 1];
  for (size_t i = 0; i < kBarWidth; ++i) {
    bar[i] = i < percent * kBarWidth / 100 ? '#' : '.';
  }
  bar[kBarWidth] = '\0';
  std::fprintf(stderr, "\r%s  [%s] %3zu %%", label_.c_str(), bar, percent);
}

}  // namespace moe_layer
