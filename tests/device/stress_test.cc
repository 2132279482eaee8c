// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// 10,000 command buffers from 8 threads over 2 queues: nothing lost, nothing
// reordered within a queue, and no memory kept.

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kThreads = 8;
constexpr size_t kQueues = 2;

struct Id {
  int32_t thread = 0, serial = 0;  // of the thread's in this queue
  bool operator==(const Id& o) const {
    return thread == o.thread && serial == o.serial;
  }
};

// How places in the queue are taken.
enum class Order {
  kCommit,    // by commit(), from all threads at once
  kRecorded,  // by commit(), one thread at a time, who writes it down
  kEnqueued,  // by enqueue(), written down, and committed in any order
};

class DeviceStress : public DeviceTest,
                     public testing::WithParamInterface<Order> {
 protected:
  struct PerQueue {
    std::shared_ptr<CommandQueue> queue;
    std::mutex order;
    std::vector<Id> expected;  // with places recorded
    // Written by one kernel or handler of the queue at a time: no mutex, so
    // that ThreadSanitizer sees it if that is not so.
    std::vector<Id> kernels, handlers;
    size_t errors = 0;
  };

  DeviceStress() {
    for (PerQueue& q : queues_) q.queue = device_->newCommandQueue();
    note_ = Pipeline([](const ThreadgroupContext& context) {
      const Id id = context.params<Id>(0);
      PerQueue& q = *context.params<PerQueue*>(1);
      ++context.buffer<int32_t>(2).data[0];
      q.kernels.push_back(id);
      // Some fail, after all others' pattern.
      if (id.serial % 100 == 99) throw std::runtime_error("as agreed");
    });
  }

  void Thread(int32_t thread, int32_t buffers) {
    std::vector<std::shared_ptr<CommandBuffer>> own;
    int32_t serials[kQueues] = {};
    for (int32_t i = 0; i < buffers; ++i) {
      const size_t which = static_cast<size_t>(i / 3 + thread) % kQueues;
      PerQueue& q = queues_[which];
      const Id id = {thread, serials[which]++};
      const auto buffer = q.queue->commandBuffer();
      Encode(*buffer, q, id);
      Commit(*buffer, q, id);
      own.push_back(buffer);
      if (i % 7 == 3) buffer->waitUntilCompleted();
      if (i % 31 == 30) own[own.size() / 2]->waitUntilCompleted();
      if (own.size() == 40) own.erase(own.begin(), own.begin() + 30);
    }
  }
  void Encode(CommandBuffer& buffer, PerQueue& q, Id id) {
    auto* const value = new int32_t(id.serial);
    ++live_;
    const auto shared = device_->newBufferWithBytesNoCopy(
        static_cast<void*>(value), sizeof(*value), ResourceStorageModeShared,
        [this, id](void* pointer, size_t) {
          const auto* const last = static_cast<const int32_t*>(pointer);
          if (*last != id.serial + 2) ++wrong_values_;
          delete last;
          --live_;
        });
    PerQueue* const where = &q;
    const auto encoder = buffer.computeCommandEncoder();
    encoder->setComputePipelineState(note_);
    encoder->setBytes(&id, sizeof(id), 0);
    encoder->setBytes(&where, sizeof(where), 1);
    encoder->setBuffer(shared, 0, 2);
    DispatchOne(*encoder);
    encoder->endEncoding();
    buffer.addCompletedHandler([shared, where, id](CommandBuffer* completed) {
      ++*static_cast<int32_t*>(shared->contents());
      where->handlers.push_back(id);
      if (completed->status() == CommandBufferStatusError) {
        ++where->errors;
      }
    });
  }
  void Commit(CommandBuffer& buffer, PerQueue& q, Id id) {
    if (GetParam() == Order::kCommit) {
      buffer.commit();
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(q.order);
      q.expected.push_back(id);
      if (GetParam() == Order::kEnqueued) {
        buffer.enqueue();
      } else {
        buffer.commit();
      }
    }
    if (GetParam() == Order::kEnqueued) buffer.commit();
  }

  void RunThreads(size_t buffers) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, buffers] {
        Thread(static_cast<int32_t>(t),
               static_cast<int32_t>(buffers / kThreads));
      });
    }
    for (std::thread& thread : threads) thread.join();
    // Buffers that nobody waited for are done when this one is.
    for (PerQueue& q : queues_) {
      const auto last = q.queue->commandBuffer();
      CommitAndWait(*last);
    }
  }
  // Takes the records, and gives their memory back.
  void Check(size_t buffers) {
    size_t total = 0;
    for (PerQueue& q : queues_) {
      total += q.kernels.size();
      EXPECT_TRUE(q.handlers == q.kernels);
      if (GetParam() != Order::kCommit) {
        EXPECT_TRUE(q.kernels == q.expected);
      }
      int32_t next[kThreads] = {};
      size_t errors = 0;
      for (const Id& id : q.kernels) {
        ASSERT_EQ(id.serial, next[id.thread]) << "thread " << id.thread;
        ++next[id.thread];
        if (id.serial % 100 == 99) ++errors;
      }
      EXPECT_EQ(q.errors, errors);
      EXPECT_GT(errors, 0u);
      q.errors = 0;
      for (std::vector<Id>* ids : {&q.kernels, &q.handlers, &q.expected}) {
        std::vector<Id>().swap(*ids);
      }
    }
    EXPECT_EQ(total, buffers);
    EXPECT_EQ(live_, 0);
    EXPECT_EQ(wrong_values_, 0);
  }

  PerQueue queues_[kQueues];
  std::shared_ptr<ComputePipelineState> note_;
  std::atomic<int> live_{0}, wrong_values_{0};
};
std::string OrderName(const testing::TestParamInfo<Order>& order) {
  constexpr const char* kNames[] = {"Commit", "Recorded", "Enqueued"};
  return kNames[static_cast<size_t>(order.param)];
}
INSTANTIATE_TEST_SUITE_P(Orders, DeviceStress,
                         testing::Values(Order::kCommit, Order::kRecorded,
                                         Order::kEnqueued),
                         OrderName);

size_t HeapInUse() {
#ifdef SWITCHYARD_SANITIZED
  return 0;  // a sanitizer has its own allocator, which does not count
#else
  return mallinfo2().uordblks;
#endif
}

TEST_P(DeviceStress, NothingLostNothingReorderedNothingKept) {
  constexpr size_t kBuffers = 10000;
  constexpr size_t kWarmUp = 2000;
  RunThreads(kWarmUp);
  Check(kWarmUp);
  const size_t before = HeapInUse();
  RunThreads(kBuffers);
  Check(kBuffers);
  // 26 bytes a command buffer would be noticed; each takes some hundreds.
  EXPECT_LT(HeapInUse(), before + (size_t{256} << 10));
}

}  // namespace
}  // namespace switchyard::testing_support
