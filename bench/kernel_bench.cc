// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A user's own kernels, thread by thread: what checked mode costs, one thread
// against one thread.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/asks.h"
#include "bench/contest.h"
#include "bench/inputs.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"

namespace switchyard {
namespace bench {
namespace {

using device::buffer;
using device::params;
using device::Size;
using device::threadgroup_array;

// out[i] = 2.5 x[i] + out[i], an element per thread.
struct Streaming {
  static constexpr const char* kName = "streaming";
  static constexpr uint32_t kColumns = 1 << 18;
  static constexpr size_t kIn = kColumns, kOut = kColumns, kThreads = kColumns;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const auto x = buffer<const float>(tg, 0);
    const auto out = buffer<float>(tg, 2);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_position_in_grid().width;
      if (i >= n) return;
      out[i] = 2.5f * x[i] + out[i];
    });
  }
};

// A weighted sum of 8 rows, a column per thread.
struct Weighted {
  static constexpr const char* kName = "weighted sum, k=8";
  static constexpr uint32_t kColumns = 2048;
  static constexpr size_t kIn = 8 * kColumns, kOut = kColumns,
                          kThreads = kColumns;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const auto x = buffer<const float>(tg, 0);
    const auto weights = buffer<const float>(tg, 1);
    const auto out = buffer<float>(tg, 2);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_position_in_grid().width;
      if (i >= n) return;
      float sum = 0.0f;
      for (size_t s = 0; s < 8; ++s) sum += weights[s] * x[s * n + i];
      out[i] = sum;
    });
  }
};

// Sums of squares of 64 rows, a threadgroup each.
struct Reduction {
  static constexpr const char* kName = "row reduction";
  static constexpr uint32_t kColumns = 2048;
  static constexpr size_t kIn = 64 * kColumns, kOut = 64, kThreads = 64 * 256;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const size_t row = tg.threadgroup_position_in_grid.width;
    const auto x = buffer<const float>(tg, 0) + row * n;
    const auto out = buffer<float>(tg, 2);
    const auto part = threadgroup_array<float, 8>(tg);
    auto sum = tg.per_thread(0.0f);
    tg.for_each_thread([&](auto t) {
      for (size_t i = t.thread_index_in_threadgroup; i < n; i += 256) {
        sum[t] += x[i] * x[i];
      }
    });
    const auto total = simd_sum(sum);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_simdgroup != 0) return;
      part[t.simdgroup_index_in_threadgroup] = total[t];
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup != 0) return;
      float all = 0.0f;
      for (size_t s = 0; s < 8; ++s) all += part[s];
      out[row] = all;
    });
  }
};

// A queue on one thread and the kernel's buffers.
template <class Kernel>
struct Runner {
  using Buffer = std::shared_ptr<device::Buffer>;
  std::shared_ptr<device::CommandQueue> queue;
  std::shared_ptr<device::ComputePipelineState> pipeline;
  Buffer x, weights, out;

  explicit Runner(bool checked) {
    device::DeviceOptions options;
    options.executor =
        std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
    options.check_kernels = checked;
    const auto device = device::CreateDevice(options);
    queue = device->newCommandQueue();
    pipeline = device->newComputePipelineState(
        device::MakeKernel(Kernel::kName, Kernel{}));
    const auto floats = [&](size_t count) {
      const Buffer made = device->newBuffer(count * sizeof(float));
      float* const values = static_cast<float*>(made->contents());
      for (size_t i = 0; i < count; ++i)
        values[i] = testing_support::Uniform(13, i, 1.0f);
      return made;
    };
    x = floats(Kernel::kIn);
    weights = floats(8);
    out = floats(Kernel::kOut);
  }
  void Run() const {
    const auto commands = queue->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(x, 0, 0);
    encoder->setBuffer(weights, 0, 1);
    encoder->setBuffer(out, 0, 2);
    const uint32_t n = Kernel::kColumns;
    encoder->setBytes(&n, sizeof(n), 3);
    encoder->dispatchThreads(Size(Kernel::kThreads, 1, 1), Size(256, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    const std::string error = commands->error();
    if (!error.empty()) throw std::runtime_error(error);
  }
};

template <class Kernel>
void Add() {
  Register("kernel", Kernel::kName, [] {
    Contest contest;
    contest.unit = "element";
    contest.units = static_cast<double>(Kernel::kIn);
    for (const bool checked : {false, true}) {
      const auto runner = std::make_shared<Runner<Kernel>>(checked);
      AddRival(contest, Kind::kOurs, checked ? "checked" : "unchecked", {},
               [runner](size_t) { runner->Run(); });
    }
    return contest;
  });
}

template <class Kernel>
void Ask(Table& table) {
  table.AtMost(
      20.0,
      table.Ns("kernel", Kernel::kName, "checked") /
          table.Ns("kernel", Kernel::kName, "unchecked"),
      std::string("checked mode, ") + Kernel::kName + ", times unchecked");
}

template <class... Kernels>
Registration AddAll() {
  return Registration([] { (Add<Kernels>(), ...); },
                      [](Table& table) { (Ask<Kernels>(table), ...); });
}
const Registration registration = AddAll<Streaming, Weighted, Reduction>();

}  // namespace
}  // namespace bench
}  // namespace switchyard
