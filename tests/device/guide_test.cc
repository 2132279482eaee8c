// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// docs/metal.md: its kernel, and what it says of the broken ones.

#include <cmath>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "switchyard/device/kernel.h"
#include "tests/device/checked_kernels.h"

namespace switchyard::testing_support {
namespace {

struct RmsNormParams {
  uint32_t n;
  float eps;
};

template <bool kBarrier>
struct RmsNorm {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<RmsNormParams>(tg, 3);
    const size_t row = tg.threadgroup_position_in_grid.width;
    const auto x = buffer<const float>(tg, 0) + row * p.n;
    const auto weight = buffer<const float>(tg, 1);
    const auto out = buffer<float>(tg, 2) + row * p.n;
    const auto part = threadgroup_array<float, 8>(tg);

    auto sum = tg.per_thread(0.0f);
    tg.for_each_thread([&](auto t) {
      for (size_t i = t.thread_index_in_threadgroup; i < p.n; i += 256) {
        sum[t] += x[i] * x[i];
      }
    });
    const auto sg_sum = simd_sum(sum);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_simdgroup == 0) {
        part[t.simdgroup_index_in_threadgroup] = sg_sum[t];
      }
    });
    if (kBarrier) tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    tg.for_each_thread([&](auto t) {
      float total = 0.0f;
      for (size_t s = 0; s < 8; ++s) total += part[s];
      const float scale =
          1.0f / std::sqrt(total / static_cast<float>(p.n) + p.eps);
      for (size_t i = t.thread_index_in_threadgroup; i < p.n; i += 256) {
        out[i] = x[i] * scale * weight[i];
      }
    });
  }
};

constexpr size_t kRows = 5, kColumns = 700;

template <class Kernel>
std::string RunNorm(CheckedQueue& q, const Kernel& kernel, size_t threads,
                    uint32_t columns = kColumns) {
  const RmsNormParams p = {columns, 1e-6f};
  const auto x = q.Floats(kRows * kColumns, 3.0f);
  const auto weight = q.Floats(kColumns, 2.0f);
  const auto out = q.device->newBuffer(kRows * kColumns * sizeof(float));
  const std::string error = q.Run([&](Encoder& e) {
    q.SetKernel(e, MakeKernel("rms_norm", kernel));
    e.setBuffer(x, 0, 0);
    e.setBuffer(weight, 0, 1);
    e.setBuffer(out, 0, 2);
    e.setBytes(&p, sizeof(p), 3);
    e.dispatchThreadgroups(Size(kRows, 1, 1), Size(threads, 1, 1));
  });
  if (error.empty()) {
    for (const float v : Contents<float>(out)) EXPECT_NEAR(v, 2.0f, 1e-5f);
  }
  return error;
}

TEST(DeviceGuide, TheKernelRuns) {
  for (const uint64_t seed : {0u, 1u, 2u, 3u}) {
    CheckedQueue q(seed);
    EXPECT_EQ(RunNorm(q, RmsNorm<true>{}, 256), "");
  }
}

TEST(DeviceGuide, TheBrokenOnesSayWhatIsWrong) {
  CheckedQueue q;
  EXPECT_EQ(RunNorm(q, RmsNorm<false>{}, 256),
            "rms_norm: threadgroup (0, 0, 0), thread 0: reads threadgroup "
            "array 0[1], which thread 32 wrote in the same phase: a "
            "threadgroup_barrier is missing");
  EXPECT_EQ(RunNorm(q, RmsNorm<true>{}, 64),
            "rms_norm: threadgroup (0, 0, 0), thread 0: reads threadgroup "
            "array 0[2], which no thread has written");
  EXPECT_EQ(RunNorm(q, RmsNorm<true>{}, 256, 701),
            "rms_norm: threadgroup (0, 0, 0), thread 188: reads buffer 1[700], "
            "which has 700 elements");
}

}  // namespace
}  // namespace switchyard::testing_support
