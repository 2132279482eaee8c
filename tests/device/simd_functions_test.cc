// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The simd functions of kernels: full simdgroups, partial ones, NaN, integers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/kernel_test.h"

namespace switchyard::testing_support {
namespace {

using DeviceSimdFunctions = KernelTest;

const auto kSumMaxMin = [](auto& tg) {
  const auto in = buffer<const float>(tg, 0);
  const auto out = buffer<float>(tg, 1);
  auto v = tg.per_thread(0.0f);
  tg.for_each_thread([&](auto t) { v[t] = in[t.thread_index_in_threadgroup]; });
  const auto sum = simd_sum(v);
  const auto max = simd_max(v);
  const auto min = simd_min(v);
  tg.for_each_thread([&](auto t) {
    const auto to = out + 3 * t.thread_index_in_threadgroup;
    to[0] = sum[t];
    to[1] = max[t];
    to[2] = min[t];
  });
};

TEST_P(DeviceSimdFunctions, SimdSumMaxMinOfFloats) {
  for (const size_t threads : kCounts) {
    std::vector<float> in(threads);
    for (size_t i = 0; i < threads; ++i) {
      in[i] = static_cast<float>(i * 7919 % 1000) * 0.37f - 150.0f;
    }
    const std::vector<float> out =
        Threadgroup<float, float>(in, 3 * threads, threads, kSumMaxMin);
    for (size_t i = 0; i < threads; ++i) {
      const float* const lanes = in.data() + i / 32 * 32;
      float sums[32] = {};
      float max = lanes[0], min = lanes[0];
      for (size_t l = 0; l < Lanes(i, threads); ++l) {
        sums[l] = lanes[l];
        max = std::max(max, lanes[l]);
        min = std::min(min, lanes[l]);
      }
      for (size_t half = 16; half != 0; half /= 2) {
        for (size_t l = 0; l < half; ++l) sums[l] += sums[l + half];
      }
      ASSERT_EQ(out[3 * i], sums[0]) << threads << " " << i;
      ASSERT_EQ(out[3 * i + 1], max) << threads << " " << i;
      ASSERT_EQ(out[3 * i + 2], min) << threads << " " << i;
    }
  }
}

TEST_P(DeviceSimdFunctions, SimdMaxMinPreferNumbersToNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> rows[] = {
      {nan, 2, 1}, {2, nan, 1}, {2, 1, nan}, {nan, nan, -inf}, {nan, 3, nan}};
  const float expected[][2] = {{2, 1}, {2, 1}, {2, 1}, {-inf, -inf}, {3, 3}};
  for (size_t i = 0; i < 5; ++i) {
    const auto out = Threadgroup<float, float>(rows[i], 9, 3, kSumMaxMin);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], expected[i][0]) << i;
    EXPECT_EQ(out[2], expected[i][1]) << i;
  }
  const auto out = Threadgroup<float, float>({nan, nan}, 6, 2, kSumMaxMin);
  EXPECT_TRUE(std::isnan(out[1]) && std::isnan(out[2]));
}

template <class T>
const auto kIntegerFolds = [](auto& tg) {
  const auto in = buffer<const T>(tg, 0);
  const auto out = buffer<T>(tg, 1);
  auto v = tg.per_thread(T());
  tg.for_each_thread([&](auto t) { v[t] = in[t.thread_index_in_threadgroup]; });
  const auto sum = simd_sum(v);
  const auto max = simd_max(v);
  const auto min = simd_min(v);
  const auto fifth = simd_broadcast(v, 4);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup != 0) return;
    out[0] = sum[t];
    out[1] = max[t];
    out[2] = min[t];
    out[3] = fifth[t];
  });
};

TEST_P(DeviceSimdFunctions, SimdFunctionsOfIntegers) {
  EXPECT_EQ((Threadgroup<int32_t, int32_t>({-5, 3, INT32_MIN, 8, 1}, 4, 5,
                                           kIntegerFolds<int32_t>)),
            (std::vector<int32_t>{INT32_MIN + 7, 8, INT32_MIN, 1}));
  EXPECT_EQ((Threadgroup<uint32_t, uint32_t>({5, 3, UINT32_MAX, 8, 2}, 4, 5,
                                             kIntegerFolds<uint32_t>)),
            (std::vector<uint32_t>{17, UINT32_MAX, 2, 2}));
}

struct BroadcastShuffleBallot {
  size_t lane, mask;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto in = buffer<const int32_t>(tg, 0);
    const auto out = buffer<int32_t>(tg, 1);
    auto v = tg.per_thread(0);
    auto odd = tg.per_thread(false);
    tg.for_each_thread([&](auto t) {
      v[t] = in[t.thread_index_in_threadgroup];
      odd[t] = v[t] % 2 != 0;
    });
    const auto one = simd_broadcast(v, lane);
    const auto crossed = simd_shuffle_xor(v, mask);
    const auto bits = simd_ballot(odd);
    tg.for_each_thread([&](auto t) {
      const auto to = out + 4 * t.thread_index_in_threadgroup;
      to[0] = one[t];
      to[1] = crossed[t];
      to[2] = static_cast<int32_t>(bits[t] & 0xFFFF);
      to[3] = static_cast<int32_t>(bits[t] >> 16);
    });
  }
};

TEST_P(DeviceSimdFunctions, SimdBroadcastShuffleBallot) {
  for (const size_t threads : kCounts) {
    std::vector<int32_t> in(threads);
    for (size_t i = 0; i < threads; ++i) {
      in[i] = static_cast<int32_t>((i + 1) * 2654435761u >> 7 & 0xFFFF);
    }
    for (const size_t mask : {0u, 1u, 4u, 16u, 31u}) {
      // A lane that every simdgroup has.
      const size_t lane = (Lanes(threads - 1, threads) - 1) * mask / 31;
      const auto out = Threadgroup<int32_t, int32_t>(
          in, 4 * threads, threads, BroadcastShuffleBallot{lane, mask});
      for (size_t i = 0; i < threads; ++i) {
        const size_t first = i / 32 * 32, lanes = Lanes(i, threads);
        uint64_t bits = 0;
        for (size_t l = 0; l < lanes; ++l) {
          bits |= uint64_t{in[first + l] % 2 != 0} << l;
        }
        const size_t other = (i - first) ^ mask;
        ASSERT_EQ(out[4 * i], in[first + lane]);
        ASSERT_EQ(out[4 * i + 1], other < lanes ? in[first + other] : 0);
        ASSERT_EQ(static_cast<uint64_t>(out[4 * i + 2]), bits & 0xFFFF);
        ASSERT_EQ(static_cast<uint64_t>(out[4 * i + 3]), bits >> 16);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceSimdFunctions, testing::ValuesIn(kModes),
                         ModeName);

}  // namespace
}  // namespace switchyard::testing_support
