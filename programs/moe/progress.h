// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_PROGRESS_H_
#define SWITCHYARD_PROGRAMS_MOE_PROGRESS_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

namespace moe_layer {

// Shows on stderr how far a long step has come: a bar that moves if stderr is a
// terminal, and one line at the end.
class Progress {
 public:
  Progress(std::string label, size_t total);
  ~Progress();  // closes the line if Finish was not reached
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // From any thread.
  void Add(size_t amount) noexcept;
  void Finish(const std::string& result);

 private:
  void Draw(size_t percent) noexcept;

  const std::string label_;
  const size_t total_;
  const bool animated_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<size_t> done_{0};
  bool finished_ = false;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_PROGRESS_H_
