// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests how checked mode runs threadgroups: the order of their threads, their
// stacks, and the floating-point mode.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "gtest/gtest.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

// Each suspended threadgroup has its own stack. If one threadgroup fails, the
// objects on the stacks of the other threadgroups are destroyed.
TEST(DeviceCheckerSchedule, SuspendedThreadgroupsAreUnwound) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CheckedQueue q(seed);
    const auto held = std::make_shared<int>(0);
    bool fails = false;
    const auto kernel = [weak = std::weak_ptr<int>(held),
                         failed = &fails](auto& tg) {
      const std::shared_ptr<int> mine = weak.lock();
      for (size_t i = 0; i < 4; ++i) {
        if (tg.threadgroup_position_in_grid.width == 9 && i == 2) {
          *failed = true;
          throw std::runtime_error("no more");
        }
        tg.threadgroup_barrier();
        EXPECT_FALSE(*failed) << "went on";
      }
    };
    EXPECT_EQ(q.Run("nine", kernel, {}, 20, 32),
              seed == 0 ? "nine: no more"
                        : "nine: no more (schedule_seed " +
                              std::to_string(seed) + ")");
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(q.Run(
                  "empty", [](auto&) {}, {}, 2, 32),
              "");
  }
}

// Returns the order of the threads that increment a counter. Sets
// *most_at_once to the largest number of threadgroups in flight at once.
std::vector<int32_t> OrderOfTickets(CheckedQueue& q, int32_t* most_at_once) {
  const BufferPtr next = q.Make(std::vector<int32_t>(2));
  const BufferPtr tickets = q.Floats(20 * 4);
  const BufferPtr most = q.Make(std::vector<int32_t>(1));
  const auto kernel = [](auto& tg) {
    const auto n = atomic_buffer<int32_t>(tg, 0);
    const auto out = buffer<int32_t>(tg, 1);
    const auto top = atomic_buffer<int32_t>(tg, 2);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup == 0) {
        const int32_t before =
            atomic_fetch_add_explicit(&n[1], 1, memory_order_relaxed);
        atomic_fetch_max_explicit(top, before + 1, memory_order_relaxed);
      }
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      out[t.thread_position_in_grid().width] =
          atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup != 0) return;
      atomic_fetch_sub_explicit(&n[1], 1, memory_order_relaxed);
    });
  };
  EXPECT_EQ(q.Run("tickets", kernel, {next, tickets, most}, 20, 4), "");
  *most_at_once = Contents<int32_t>(most)[0];
  return Contents<int32_t>(tickets);
}

TEST(DeviceCheckerSchedule, SeedsChangeTheOrder) {
  std::vector<std::vector<int32_t>> orders;
  for (const uint64_t seed : {0u, 1u, 2u}) {
    CheckedQueue q(seed);
    int32_t most = 0;
    orders.push_back(OrderOfTickets(q, &most));
    EXPECT_TRUE(seed == 0 ? most == 1 : most > 1 && most <= 8) << most;
    EXPECT_EQ(OrderOfTickets(q, &most), orders.back()) << seed;
  }
  for (int32_t i = 0; i < 80; ++i) {
    EXPECT_EQ(orders[0][static_cast<size_t>(i)], i);
  }
  // The threads in a threadgroup must be shuffled, too.
  bool in_order = true;
  for (size_t i = 0; i < 80; ++i) {
    in_order = in_order && (i % 4 == 0 || orders[1][i] > orders[1][i - 1]);
  }
  EXPECT_FALSE(in_order);
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[0], orders[2]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(DeviceCheckerSchedule, ASeedAloneDoesNothing) {
  CheckedQueue q(NewDevice(false, {false, 5}));
  const auto fails = [](auto&) { throw std::runtime_error("no"); };
  EXPECT_EQ(q.Run("mine", fails, {}, 1, 1), "mine: no");
}

// Kernels use the default floating-point mode, even if the caller's thread
// runs them.
TEST(DeviceCheckerSchedule, DefaultFloatingPointMode) {
  const ScopedFlushToZero flush_to_zero;
  for (const uint64_t seed : {0u, 1u}) {
    CheckedQueue q(seed);
    const BufferPtr x = q.Make(std::vector<uint32_t>(20, 0x00800000u));
    const auto halve = [](auto& tg) {
      const auto v = buffer<float>(tg, 0);
      tg.for_each_thread(
          [&](auto t) { v[t.thread_position_in_grid().width] *= 0.5f; });
      tg.threadgroup_barrier();
      tg.for_each_thread(
          [&](auto t) { v[t.thread_position_in_grid().width] *= 0.5f; });
    };
    // The dispatch is repeated, so that the calling thread runs some of the
    // threadgroups.
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(q.Run("halve", halve, {x}, 10, 2), "");
      for (const uint32_t bits : Contents<uint32_t>(x)) {
        ASSERT_EQ(bits, 0x00200000u);
      }
      for (int j = 0; j < 20; ++j) {
        static_cast<uint32_t*>(x->contents())[j] = 0x00800000u;
      }
    }
  }
}

TEST(DeviceCheckerSchedule, KernelsDoNotWait) {
  for (const uint64_t seed : {0u, 1u}) {
    CheckedQueue q(seed);
    const auto commands = q.queue->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    q.Dispatch(
        *encoder, "waits", [&](auto&) { commands->waitUntilCompleted(); }, {},
        1, 1);
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->error(), "waitUntilCompleted: called by a kernel");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
