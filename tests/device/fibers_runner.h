// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A runner of kernels that are scripts, as far as checked mode is told of one.

#ifndef SWITCHYARD_TESTS_DEVICE_FIBERS_RUNNER_H_
#define SWITCHYARD_TESTS_DEVICE_FIBERS_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/device/checked_fibers.h"
#include "tests/device/checked_kernels.h"

namespace switchyard::testing_support {

using device::kernel_internal::kAtomically;
using device::kernel_internal::kReads;
using device::kernel_internal::kWrites;
using device::kernel_internal::View;

constexpr uint32_t kNone = 0, kDevice = 1, kLocal = 2;
constexpr uint32_t kAll = UINT32_MAX;

// Code at address 1000 * line + column.
struct Lines : Places {
  Place PlaceOf(const void* where) const override {
    const uint32_t at =
        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(where));
    return {"k.metal", at / 1000, at % 1000};
  }
};
const void* At(uint32_t line, uint32_t column = 1) {
  return reinterpret_cast<const void*>(uintptr_t{line} * 1000 + column);
}

// A threadgroup of 64 threads that does as it is told, with 64 words of
// threadgroup memory and a buffer.
struct Script {
  CheckedFibers& fibers;
  const View& scratch;
  const View& buffer;

  void Do(size_t thread, const View& view, size_t offset, size_t size,
          uint32_t kind, const void* where) const {
    fibers.SwitchTo(thread);
    fibers.Access(view, static_cast<ptrdiff_t>(offset), size, kind, where);
    if (offset + size > view.length) return;
    if ((kind & kWrites) != 0) view.data[offset] = ++*next;
  }
  // To scratch, in words.
  void Write(size_t thread, size_t word, uint32_t line) const {
    Do(thread, scratch, 4 * word, 4, kWrites, At(line));
  }
  void Read(size_t thread, size_t word, uint32_t line) const {
    Do(thread, scratch, 4 * word, 4, kReads, At(line));
  }
  unsigned char* const next;
};

struct Runner {
  DeviceOptions options;
  Lines lines;
  bool places = true;
  std::vector<Finding> findings;

  Runner() { options.check_kernels = true; }
  // The texts of what is found.
  std::vector<std::string> Run(const std::function<void(const Script&)>& script,
                               size_t threadgroups = 1) {
    KernelFunction kernel;
    kernel.name = "k";
    kernel.threadgroup = [](const ThreadgroupContext&) {};
    kernel.checked = [&](const ThreadgroupContext& context) {
      using namespace device::kernel_internal;  // NOLINT
      DeclaredArrays arrays;
      unsigned char next = 0;
      CheckedFibers& fibers = CheckedFibers::Of(context);
      fibers.Begin(64, places ? &lines : nullptr);
      const View& scratch = ArrayView(context, 256, &arrays);
      fibers.Describe(scratch, "tile", 4);
      script({fibers, scratch, BufferView(context, 0, 4, false), &next});
    };
    CheckedQueue q(CreateDevice(options));
    const auto commands = Encoded(*q.queue, [&](Encoder& e) {
      q.SetKernel(e, kernel);
      q.SetBuffers(e, {q.Floats(64)});
      e.dispatchThreadgroups(Size(threadgroups, 1, 1), Size(64, 1, 1));
    });
    commands->commit();
    commands->waitUntilCompleted();
    findings = commands->findings();
    EXPECT_EQ(commands->error(), findings.empty() ? "" : findings[0].text);
    std::vector<std::string> texts;
    for (const Finding& finding : findings) texts.push_back(finding.text);
    return texts;
  }
};
using Strings = std::vector<std::string>;
inline const Strings kNothing;

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_FIBERS_RUNNER_H_
