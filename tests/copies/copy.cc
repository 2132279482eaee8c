// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A plug-in that contains the libraries. It exports CopyIsa(), CopyCap() and
// CopyRun().

#include <cstdio>
#include <memory>
#include <vector>

#include "switchyard/activate.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"

#ifdef SWITCHYARD_WITH_DEVICE
#include "switchyard/device/device.h"
#endif

#define PLUGIN extern "C" __attribute__((visibility("default")))

// Returns the name of the i-th ISA, the best first, or null.
PLUGIN const char* CopyIsa(size_t i) {
  const auto isas = switchyard::RunnableIsas();
  return i < isas.size ? isas.data[i].name : nullptr;
}
PLUGIN bool CopyCap(const char* name) { return switchyard::CapIsa(name).ok(); }

// Returns the name of the ISA that ran a kernel, or null if the result is not
// silu(0) * 3.
PLUGIN const char* CopyRun() {
  constexpr size_t kRows = 4, kCols = 100;
  const std::vector<float> gate(kRows * kCols, 0.0f), up(kRows * kCols, 3.0f);
  std::vector<float> out(kRows * kCols, -1.0f);
  const switchyard::Status status = switchyard::Activate(
      {{gate.data(), kRows, kCols}, {up.data(), kRows, kCols}},
      {{out.data(), kRows, kCols}}, {}, switchyard::SerialExecutor());
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message());
    return nullptr;
  }
  for (const float x : out) {
    if (x != 0.0f) return nullptr;
  }
#ifdef SWITCHYARD_WITH_DEVICE
  if (switchyard::device::CreateSystemDefaultDevice() == nullptr)
    return nullptr;
#endif
  return switchyard::LastIsa()->name;
}
