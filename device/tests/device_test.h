// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for tests of the device: a device and a queue, kernels from
// lambdas, and flags that threads wait for. The tests check the order of
// events, never the time.

#ifndef SWITCHYARD_DEVICE_TESTS_DEVICE_TEST_H_
#define SWITCHYARD_DEVICE_TESTS_DEVICE_TEST_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/tests/raw_bytes.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {

using namespace device;
using Encoder = ComputeCommandEncoder;
using BufferPtr = std::shared_ptr<Buffer>;

// Returns the values as 32-bit words. The tests' kernels read and write all
// values in this form.
template <class T>
std::vector<uint32_t> Words(const std::vector<T>& values) {
  return Recast<uint32_t>(values);
}
template <class T>
BufferPtr NewBuffer(Device& device, const std::vector<T>& values) {
  return device.newBuffer(values.data(), values.size() * sizeof(T));
}
template <class T>
std::vector<T> Contents(const BufferPtr& buffer) {
  std::vector<T> values(buffer->length() / sizeof(T));
  std::memcpy(static_cast<void*>(values.data()), buffer->contents(),
              values.size() * sizeof(T));
  return values;
}

class Flag {
 public:
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return set_; });
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = false;
  }
  bool IsSet() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return set_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Ends the program if it hangs, so that the test fails.
class Watchdog {
 public:
  Watchdog() : thread_([this] { Run(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(60),
                          [this] { return over_; })) {
      return;
    }
    std::fputs("Watchdog: the test hangs\n", stderr);
    std::abort();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// An executor that runs bodies on a new thread. Its destructor sets a flag,
// which shows that the queue's thread has ended: that thread destroys the
// executor as its last action.
class TellingExecutor final : public Executor {
 public:
  explicit TellingExecutor(std::shared_ptr<Flag> gone)
      : gone_(std::move(gone)) {}
  ~TellingExecutor() override { gone_->Set(); }
  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    std::thread([=] { body(context, 0, 0, count); }).join();
    return Status();
  }

 private:
  const std::shared_ptr<Flag> gone_;
};

// The mode of a test's device: unchecked or checked, and the schedule_seed of
// DeviceOptions.
struct Mode {
  bool check_kernels = false;
  uint64_t schedule_seed = 0;
};
constexpr Mode kModes[] = {{false, 0}, {true, 0}, {true, 1}, {true, 2}};
inline std::ostream& operator<<(std::ostream& os, const Mode& mode) {
  if (!mode.check_kernels) return os << "Unchecked";
  return os << "Checked" << mode.schedule_seed;
}

inline std::shared_ptr<Device> NewDevice(bool time_dispatches = false,
                                         Mode mode = Mode()) {
  DeviceOptions options;
  options.executor = MakeExecutor(Pool::kShuffle);
  options.time_dispatches = time_dispatches;
  options.check_kernels = mode.check_kernels;
  options.schedule_seed = mode.schedule_seed;
  return CreateDevice(options);
}

// The executor and the mode of a test's device.
struct Setup {
  Pool pool;
  Mode mode;
};
inline std::ostream& operator<<(std::ostream& os, const Setup& setup) {
  constexpr const char* kPools[] = {"Serial", "Tbb1", "Tbb2", "Tbb7",
                                    "Shuffle"};
  return os << (setup.mode.check_kernels ? "Checked" : "Unchecked")
            << setup.mode.schedule_seed << "On"
            << kPools[static_cast<size_t>(setup.pool)];
}
inline std::vector<Setup> EverySetup() {
  std::vector<Setup> all;
  for (const Pool pool : EveryPool()) {
    for (const Mode& mode : kModes) all.push_back({pool, mode});
  }
  return all;
}
inline std::shared_ptr<Device> NewDevice(const Setup& setup) {
  DeviceOptions options;
  options.executor = MakeExecutor(setup.pool);
  options.time_dispatches = true;
  options.check_kernels = setup.mode.check_kernels;
  options.schedule_seed = setup.mode.schedule_seed;
  return CreateDevice(options);
}

using Body = std::function<void(const ThreadgroupContext&)>;
using Encode = std::function<void(Encoder&)>;

// Returns a command buffer that has one encoder, which has ended.
inline std::shared_ptr<CommandBuffer> Encoded(
    CommandQueue& queue, const Encode& encode,
    DispatchType type = DispatchTypeSerial) {
  const auto buffer = queue.commandBuffer();
  const auto encoder = buffer->computeCommandEncoder(type);
  encode(*encoder);
  encoder->endEncoding();
  return buffer;
}

// Dispatches one threadgroup of one thread.
inline void DispatchOne(Encoder& encoder) {
  encoder.dispatchThreadgroups(Size(1, 1, 1), Size(1, 1, 1));
}

class DeviceTest : public testing::Test {
 protected:
  explicit DeviceTest(Mode mode = Mode()) : device_(NewDevice(false, mode)) {}

  std::shared_ptr<ComputePipelineState> Pipeline(Body body,
                                                 const char* name = "user") {
    KernelFunction kernel;
    kernel.name = name;
    kernel.threadgroup = std::move(body);
    return device_->newComputePipelineState(std::move(kernel));
  }

  // Returns a command buffer that dispatches one threadgroup and is not
  // committed.
  std::shared_ptr<CommandBuffer> Work(
      const std::shared_ptr<CommandQueue>& queue, std::function<void()> what) {
    return Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(Pipeline(
          [what = std::move(what)](const ThreadgroupContext&) { what(); }));
      DispatchOne(e);
    });
  }
  std::shared_ptr<CommandBuffer> Work(std::function<void()> what) {
    return Work(queue_, std::move(what));
  }

  static void ExpectCompleted(CommandBuffer& buffer) {
    EXPECT_EQ(buffer.status(), CommandBufferStatusCompleted);
    EXPECT_EQ(buffer.error(), "");
  }
  // Expects that the buffer's error is `error`, with or without the numbers
  // of Status::details() after it.
  static void ExpectError(CommandBuffer& buffer, const std::string& error) {
    EXPECT_EQ(buffer.status(), CommandBufferStatusError);
    if (buffer.error().rfind(error + ": ", 0) == 0) return;
    EXPECT_EQ(buffer.error(), error);
  }
  static void CommitAndWait(CommandBuffer& buffer) {
    buffer.commit();
    buffer.waitUntilCompleted();
  }
  // Runs a command buffer. Returns its error, or "" if it completed.
  std::string Run(const Encode& encode) {
    const auto buffer = Encoded(*queue_, encode);
    CommitAndWait(*buffer);
    EXPECT_EQ(buffer->status(), buffer->error().empty()
                                    ? CommandBufferStatusCompleted
                                    : CommandBufferStatusError);
    return buffer->error();
  }
  // Checks that the queue still works, by running a correct command buffer.
  void ExpectQueueRuns() {
    bool ran = false;
    const auto buffer = Work([&ran] { ran = true; });
    CommitAndWait(*buffer);
    ExpectCompleted(*buffer);
    EXPECT_TRUE(ran);
  }
  // Encodes a dispatch between two correct dispatches, and runs them. If an
  // error is expected, the second correct dispatch must not run.
  void ExpectBetweenOthers(const std::string& error, const Encode& encode) {
    SCOPED_TRACE(error);
    int before = 0, after = 0, handlers = 0;
    const auto count = [this](Encoder& e, int& runs) {
      e.setComputePipelineState(
          Pipeline([&runs](const ThreadgroupContext&) { ++runs; }));
      DispatchOne(e);
    };
    const auto buffer = Encoded(*queue_, [&](Encoder& e) {
      count(e, before);
      encode(e);
      count(e, after);
    });
    EXPECT_EQ(buffer->error(), "");
    const auto expect = [&error](CommandBuffer& completed) {
      if (error.empty()) return ExpectCompleted(completed);
      ExpectError(completed, error);
    };
    buffer->addCompletedHandler([&](CommandBuffer* completed) {
      ++handlers;
      expect(*completed);
    });
    CommitAndWait(*buffer);
    expect(*buffer);
    EXPECT_EQ(before, 1);
    EXPECT_EQ(after, error.empty() ? 1 : 0);
    EXPECT_EQ(handlers, 1);
    ExpectQueueRuns();
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<CommandQueue> queue_ = device_->newCommandQueue();
};

// The fixture for tests in which one command buffer after another writes a
// letter to a log.
class LogTest : public DeviceTest {
 protected:
  std::shared_ptr<CommandBuffer> Log(char letter) {
    return Work([this, letter] { log_ += letter; });
  }

  // Kernels of a queue run one at a time, and each sees the writes of earlier
  // kernels. No mutex guards the log, so that ThreadSanitizer can check this.
  std::string log_;
};

// The fixture for tests that misuse command buffers. The kernels count how
// often they run.
class MisuseTest : public DeviceTest {
 protected:
  // For errors before commit(): expects that nothing in the buffer has run.
  void ExpectNotRun(CommandBuffer& buffer, const std::string& error) {
    EXPECT_EQ(buffer.error(), error);
    int handlers = 0;
    buffer.addCompletedHandler([&](CommandBuffer* completed) {
      ++handlers;
      ExpectError(*completed, error);
    });
    CommitAndWait(buffer);
    ExpectError(buffer, error);
    EXPECT_EQ(runs_, 0);
    EXPECT_EQ(handlers, 1);
    ExpectQueueRuns();
  }
  // For errors after commit(): expects that the work has run and the error is
  // reported.
  void ExpectRunYetError(CommandBuffer& buffer, const std::string& error) {
    buffer.waitUntilCompleted();
    ExpectError(buffer, error);
    EXPECT_EQ(runs_, 1);
    ExpectQueueRuns();
  }

  int runs_ = 0;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_DEVICE_TEST_H_
