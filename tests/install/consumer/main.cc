// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A project that uses the library. Runs a kernel on each kind of executor in
// the library.

#include <cstdio>
#include <memory>
#include <vector>

#include "switchyard/activate.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"

namespace {

bool Run(switchyard::Executor& executor) {
  constexpr size_t kRows = 64;
  constexpr size_t kCols = 768;
  const std::vector<float> gate(kRows * kCols, 0.0f);
  const std::vector<float> up(kRows * kCols, 3.0f);
  std::vector<float> out(kRows * kCols, -1.0f);
  const switchyard::Status status = switchyard::Activate(
      {{gate.data(), kRows, kCols}, {up.data(), kRows, kCols}},
      {{out.data(), kRows, kCols}}, {}, executor);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message());
    return false;
  }
  for (const float x : out) {
    if (x != 0.0f) return false;  // silu(0) * 3
  }
  return true;
}

}  // namespace

int main() {
  if (!Run(switchyard::SerialExecutor())) return 1;
  const std::unique_ptr<switchyard::Executor> tbb =
      switchyard::MakeTbbExecutor();
  if (tbb != nullptr && !Run(*tbb)) return 1;
  std::printf("%s, %s\n", switchyard::ActiveIsa().name,
              tbb != nullptr ? "with TBB" : "without TBB");
}
