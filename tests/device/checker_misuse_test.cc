// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Mistakes that a port makes before it races: a meeting is called by one
// thread, everybody has returned, errors are caught; and padding, which is not
// wrong.

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/checked_kernels.h"

namespace switchyard::testing_support {
namespace {

constexpr int kKinds = 7;

// A meeting point of a kind inside for_each_thread(), or behind it.
struct MeetsAt {
  int kind;
  bool inside;

  template <class Tg, class Values>
  void Meet(Tg& tg, Values& v) const {
    if (kind == 0) tg.threadgroup_barrier();
    if (kind == 1) tg.simdgroup_barrier();
    if (kind == 2) (void)simd_sum(v);
    if (kind == 3) (void)simd_shuffle_xor(v, 1);
    if (kind == 4) (void)tg.uniform(v);
    if (kind == 5) (void)threadgroup_array<float, 2>(tg);
    if (kind == 6) tg.for_each_thread([](auto) {});
  }
  template <class Tg>
  void operator()(Tg& tg) const {
    auto v = tg.per_thread(1.0f);
    const auto out = buffer<float>(tg, 0);
    tg.for_each_thread([&](auto t) {
      if (inside) Meet(tg, v);
      out[t.thread_position_in_grid().width] = v[t];
    });
    if (!inside) Meet(tg, v);
    tg.for_each_thread(
        [&](auto t) { out[t.thread_position_in_grid().width] = v[t]; });
  }
};

TEST(DeviceCheckerMisuse, ThreadsMeetOutside) {
  const char* const names[kKinds] = {
      "threadgroup_barrier", "simdgroup_barrier", "a simd function",
      "a simd function",     "uniform",           "threadgroup_array",
      "for_each_thread"};
  for (const uint64_t seed : {0u, 5u}) {
    CheckedQueue queue(seed);
    const auto out = queue.Floats(64);
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto run = [&](bool inside) {
        return queue.Run("meets", MeetsAt{kind, inside}, {out}, 2, 32);
      };
      const std::string error = run(true);
      const std::string says =
          std::string(": ") + names[kind] +
          " is called inside for_each_thread: all threads meet there, so the "
          "stretch has to end before it";
      if (seed == 0) {
        EXPECT_EQ(error, "meets: threadgroup (0, 0, 0), thread 0" + says);
      }
      EXPECT_NE(error.find(says), std::string::npos) << error;
      EXPECT_EQ(run(false), "") << names[kind];
    }
  }
}

// A loop until all are done, whose threads return when they are.
const auto kAllReturn = [](auto& tg) {
  const auto out = buffer<float>(tg, 0);
  auto rounds = tg.per_thread(0);
  auto done = tg.per_thread(false);
  while (!tg.uniform(done)) {
    tg.for_each_thread([&](auto t) {
      if (++rounds[t] == 3) {
        out[t.thread_position_in_grid().width] = 3.0f;
        t.exit();
      }
    });
  }
  tg.for_each_thread([&](auto) { throw std::logic_error("nobody is left"); });
};

TEST(DeviceCheckerMisuse, TheKernelEndsWhenAllHaveReturned) {
  for (const bool check : {false, true}) {
    CheckedQueue queue(check ? NewDevice(false, {true, 0}) : CreateDevice({}));
    const auto out = queue.Floats(128);
    EXPECT_EQ(queue.Run("returns", kAllReturn, {out}, 4, 32), "");
    EXPECT_EQ(Contents<float>(out), std::vector<float>(128, 3.0f));
  }
}

const auto kUniformNaN = [](auto& tg) {
  buffer<float>(tg, 0)[0] =
      tg.uniform(tg.per_thread(std::numeric_limits<float>::quiet_NaN()));
};

TEST(DeviceCheckerMisuse, NaNIsAValueToAgreeOn) {
  CheckedQueue queue;
  EXPECT_EQ(queue.Run("nan", kUniformNaN, {queue.Floats(1)}, 1, 64), "");
}

// Out of bounds, and kept quiet about.
struct Catches {
  bool clean;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto out = buffer<float>(tg, 0);
    tg.for_each_thread([&](auto t) {
      if (clean && t.thread_index_in_threadgroup >= 32) return;
      try {
        out[t.thread_index_in_threadgroup] = 1.0f;
      } catch (...) {
      }
    });
  }
};

TEST(DeviceCheckerMisuse, WhatAKernelCatchesIsFoundAllTheSame) {
  CheckedQueue queue;
  const auto run = [&](bool clean) {
    return queue.Run("catches", Catches{clean}, {queue.Floats(32)}, 1, 64);
  };
  EXPECT_EQ(run(false),
            "catches: threadgroup (0, 0, 0), thread 32: writes buffer 0[32], "
            "which has 32 elements");
  EXPECT_EQ(run(true), "");
}

struct Padded {
  float f;
  double d;
  int32_t i;
};
const auto kReadsPadded = [](auto& tg) {
  const auto from = buffer<const Padded>(tg, 0);
  const auto to = buffer<float>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const Padded p = from[t.thread_index_in_threadgroup];
    to[t.thread_index_in_threadgroup] = p.f;
  });
};

// The host writes the fields; what is between them stays as it was.
TEST(DeviceCheckerMisuse, PaddingNeedNotBeWritten) {
  CheckedQueue queue;
  const auto from = queue.device->newBuffer(2 * sizeof(Padded));
  const auto to = queue.Floats(2);
  const auto run = [&] {
    return queue.Run("padded", kReadsPadded, {from, to}, 1, 2);
  };
  Padded* const rows = static_cast<Padded*>(from->contents());
  rows[0].f = 1.5f;
  rows[0].d = 2.0;
  rows[0].i = 3;
  EXPECT_EQ(run(),
            "padded: threadgroup (0, 0, 0), thread 1: reads buffer 0[1], which "
            "nothing has written since newBuffer()");
  rows[1].f = 2.5f;
  rows[1].d = 2.0;
  rows[1].i = 3;
  EXPECT_EQ(run(), "");
  EXPECT_EQ(Contents<float>(to), (std::vector<float>{1.5f, 2.5f}));
}

}  // namespace
}  // namespace switchyard::testing_support
