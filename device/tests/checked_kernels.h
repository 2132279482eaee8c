// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs kernels in checked mode, for the tests of findings.

#ifndef SWITCHYARD_DEVICE_TESTS_CHECKED_KERNELS_H_
#define SWITCHYARD_DEVICE_TESTS_CHECKED_KERNELS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/device_test.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"

namespace switchyard::testing_support {

// kFill writes one word per thread of the grid, and kCopy copies one word per
// thread.
const auto kFill = [](auto& tg) {
  const auto out = buffer<uint32_t>(tg, 0);
  tg.for_each_thread(
      [&](auto t) { out[t.thread_position_in_grid().width] = 3; });
};
const auto kCopy = [](auto& tg) {
  const auto x = buffer<const uint32_t>(tg, 0);
  const auto out = buffer<uint32_t>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_position_in_grid().width;
    out[i] = x[i];
  });
};

// A device in checked mode with one queue.
struct CheckedQueue {
  std::shared_ptr<Device> device;
  std::shared_ptr<CommandQueue> queue;

  explicit CheckedQueue(uint64_t schedule_seed = 0)
      : CheckedQueue(NewDevice(false, {true, schedule_seed})) {}
  // Makes a queue of the given device.
  explicit CheckedQueue(std::shared_ptr<Device> d)
      : device(std::move(d)), queue(device->newCommandQueue()) {}

  // Runs a command buffer with one encoder. Returns its error, or "" if it
  // completed.
  std::string Run(const Encode& encode,
                  DispatchType type = DispatchTypeSerial) {
    const auto commands = Encoded(*queue, encode, type);
    commands->commit();
    commands->waitUntilCompleted();
    return commands->error();
  }
  // Runs a command buffer with one encoder, which calls Dispatch() with these
  // arguments. Returns the error.
  template <class Kernel>
  std::string Run(const char* name, const Kernel& kernel,
                  const std::vector<BufferPtr>& buffers, size_t threadgroups,
                  size_t threads) {
    return Run([&](Encoder& e) {
      Dispatch(e, name, kernel, buffers, threadgroups, threads);
    });
  }

  void SetKernel(Encoder& encoder, KernelFunction kernel) {
    encoder.setComputePipelineState(
        device->newComputePipelineState(std::move(kernel)));
  }
  // Dispatches one threadgroup of 256 threads per row. The buffers are bound
  // from index 0 on, and the parameters at the next index.
  template <class Params>
  void DispatchBuiltIn(Encoder& encoder, const char* name, const Params& params,
                       const std::vector<BufferPtr>& buffers, size_t rows) {
    encoder.setComputePipelineState(device->newComputePipelineState(name));
    SetBuffers(encoder, buffers);
    encoder.setBytes(&params, sizeof(params), buffers.size());
    encoder.dispatchThreadgroups(Size(1, rows, 1), Size(256, 1, 1));
  }
  // Dispatches `threadgroups` threadgroups of `threads` threads. The buffers
  // are bound from index 0 on.
  template <class Kernel>
  void Dispatch(Encoder& encoder, const char* name, const Kernel& kernel,
                const std::vector<BufferPtr>& buffers, size_t threadgroups,
                size_t threads) {
    SetKernel(encoder, MakeKernel(name, kernel));
    SetBuffers(encoder, buffers);
    encoder.dispatchThreadgroups(Size(threadgroups, 1, 1), Size(threads, 1, 1));
  }

  // Fill() and Copy() return functions that encode kFill and kCopy with
  // threadgroups of 32 threads.
  Encode Fill(const BufferPtr& out, size_t threadgroups = 2) {
    return [=](Encoder& e) {
      Dispatch(e, "fill", kFill, {out}, threadgroups, 32);
    };
  }
  Encode Copy(const BufferPtr& x, const BufferPtr& out,
              size_t threadgroups = 2) {
    return [=](Encoder& e) {
      Dispatch(e, "copy", kCopy, {x, out}, threadgroups, 32);
    };
  }

  static void SetBuffers(Encoder& encoder,
                         const std::vector<BufferPtr>& buffers) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      encoder.setBuffer(buffers[i], 0, i);
    }
  }
  template <class T>
  BufferPtr Make(const std::vector<T>& values) {
    return NewBuffer(*device, values);
  }
  BufferPtr Floats(size_t count, float value = 1.0f) {
    return Make(std::vector<float>(count, value));
  }
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_CHECKED_KERNELS_H_
