// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Threadgroup memory and atomics of kernels.

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/kernel_test.h"

namespace switchyard::testing_support {
namespace {

using DeviceKernelMemory = KernelTest;

// A tree in threadgroup memory, with a loop that all threads agree to leave.
const auto kTreeSum = [](auto& tg) {
  const auto n = params<uint32_t>(tg, 2);
  const auto in =
      buffer<const float>(tg, 0) + tg.threadgroup_position_in_grid.width * n;
  const auto out = buffer<float>(tg, 1);
  const auto scratch = threadgroup_memory<float>(tg, 3);
  const auto flag = threadgroup_array<int32_t, 1>(tg);
  const auto other = threadgroup_array<double, 3>(tg);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    scratch[i] = in[i];
    if (i == 0) flag[0] = static_cast<int32_t>(n / 2);
    if (i == 1) other[2] = 0.5;
  });
  tg.threadgroup_barrier(mem_flags::mem_threadgroup);
  auto half = tg.per_thread(0);
  tg.for_each_thread([&](auto t) { half[t] = flag[0]; });
  while (tg.uniform(half) != 0) {
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      const size_t h = static_cast<size_t>(half[t]);
      if (i < h) scratch[i] += scratch[i + h];
      half[t] /= 2;
    });
    tg.threadgroup_barrier();
  }
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup != 0) return;
    out[tg.threadgroup_position_in_grid.width] =
        scratch[0] + static_cast<float>(double{other[2]});
  });
};

TEST_P(DeviceKernelMemory, ThreadgroupMemoryAndBarriers) {
  constexpr uint32_t kThreads = 128, kRows = 200;
  std::vector<float> in(kThreads * kRows);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 97);
  const auto out = Make(std::vector<float>(kRows));
  ASSERT_EQ(Run(MakeKernel("tree_sum", kTreeSum),
                [&](Encoder& e) {
                  e.setBuffer(Make(in), 0, 0);
                  e.setBuffer(out, 0, 1);
                  e.setBytes(&kThreads, sizeof(kThreads), 2);
                  e.setThreadgroupMemoryLength(1, 1);
                  e.setThreadgroupMemoryLength(kThreads * 4, 3);
                  e.dispatchThreadgroups(Size(kRows, 1, 1),
                                         Size(kThreads, 1, 1));
                }),
            "");
  for (size_t row = 0; row < kRows; ++row) {
    float sum = 0.5f;
    for (size_t i = 0; i < kThreads; ++i) sum += in[row * kThreads + i];
    EXPECT_EQ(Contents<float>(out)[row], sum) << row;
  }
}

// The memory behind a region that was set, and float scratch as integers.
const auto kCarve = [](auto& tg) {
  const auto memory = threadgroup_memory<float>(tg, 0);
  const auto ids = pointer_cast<int32_t>(memory + 4);
  const auto end = pointer_cast<const uint8_t>(ids + 2) - 1;
  const auto out = buffer<int32_t>(tg, 1);
  tg.for_each_thread([&](auto) {
    memory[3] = 1.0f;
    ids[0] = 7;
    ids[1] = 0x12345678;
    const float one = *(memory + 3);
    out[0] = ids[0] + static_cast<int32_t>(one);
    out[1] = *end;  // the last byte: little-endian
  });
};

TEST_P(DeviceKernelMemory, PointersIntoScratch) {
  const auto out = Make(std::vector<int32_t>(2));
  ASSERT_EQ(Run(MakeKernel("carve", kCarve),
                [&](Encoder& e) {
                  e.setBuffer(out, 0, 1);
                  e.setThreadgroupMemoryLength(24, 0);
                  DispatchOne(e);
                }),
            "");
  EXPECT_EQ(Contents<int32_t>(out), (std::vector<int32_t>{8, 0x12}));
}

// All threadgroups count in the same words.
template <class T>
const auto kAtomics = [](auto& tg) {
  const auto a = atomic_buffer<T>(tg, 0);
  const auto taken = atomic_buffer<uint32_t>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const T i = static_cast<T>(t.thread_position_in_grid().width);
    atomic_fetch_add_explicit(&a[0], T(1), memory_order_relaxed);
    atomic_fetch_sub_explicit(&a[1], T(2), memory_order_relaxed);
    atomic_fetch_max_explicit(&a[2], i, memory_order_relaxed);
    atomic_fetch_min_explicit(&a[3], i, memory_order_relaxed);
    T expected = atomic_load_explicit(&a[4], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &a[4], &expected, expected + T(3), memory_order_relaxed,
        memory_order_relaxed)) {
    }
    if (atomic_exchange_explicit(&a[5], i, memory_order_relaxed) == i) {
      atomic_store_explicit(&a[6], T(1), memory_order_relaxed);
    }
    const uint32_t bit = uint32_t{1} << t.thread_index_in_simdgroup;
    atomic_fetch_or_explicit(&taken[0], bit, memory_order_relaxed);
    atomic_fetch_and_explicit(&taken[1], ~bit, memory_order_relaxed);
    atomic_fetch_xor_explicit(&taken[2], bit, memory_order_relaxed);
  });
};

class DeviceKernelAtomics : public DeviceKernelMemory {
 protected:
  template <class T>
  void Test() {
    constexpr size_t kThreads = 32 * 101;
    const auto values =
        Make<T>({0, T(2 * kThreads + 5), 0, 99, 1, T(1 << 20), 0});
    const auto bits = Make<uint32_t>({0, UINT32_MAX, 0});
    ASSERT_EQ(Run(MakeKernel("atomics", kAtomics<T>),
                  [&](Encoder& e) {
                    e.setBuffer(values, 0, 0);
                    e.setBuffer(bits, 0, 1);
                    e.dispatchThreads(Size(kThreads, 1, 1), Size(32, 1, 1));
                  }),
              "");
    const std::vector<T> got = Contents<T>(values);
    EXPECT_EQ(got[0], T(kThreads));
    EXPECT_EQ(got[1], T(5));
    EXPECT_EQ(got[2], T(kThreads - 1));
    EXPECT_EQ(got[3], T(0));
    EXPECT_EQ(got[4], T(1 + 3 * kThreads));
    EXPECT_LT(got[5], T(kThreads));
    EXPECT_EQ(got[6], T(0));
    EXPECT_EQ(Contents<uint32_t>(bits),
              (std::vector<uint32_t>{UINT32_MAX, 0, UINT32_MAX}));
  }
};

// Across threadgroups that run in parallel.
TEST_P(DeviceKernelAtomics, Int32) { Test<int32_t>(); }
TEST_P(DeviceKernelAtomics, Uint32) { Test<uint32_t>(); }
TEST_P(DeviceKernelAtomics, Float) { Test<float>(); }

const auto kThreadgroupAtomics = [](auto& tg) {
  const auto counts = atomic_pointer(threadgroup_array<int32_t, 2>(tg));
  const auto out = buffer<int32_t>(tg, 1);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup < 2) {
      atomic_store_explicit(&counts[t.thread_index_in_threadgroup], 10,
                            memory_order_relaxed);
    }
  });
  tg.threadgroup_barrier();
  tg.for_each_thread([&](auto t) {
    atomic_fetch_add_explicit(&counts[t.thread_index_in_threadgroup % 2], 1,
                              memory_order_relaxed);
  });
  tg.threadgroup_barrier();
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    if (i < 2) out[i] = atomic_load_explicit(&counts[i], memory_order_relaxed);
  });
};

TEST_P(DeviceKernelMemory, AtomicsInThreadgroupMemory) {
  EXPECT_EQ((Threadgroup<int32_t, int32_t>({0}, 2, 65, kThreadgroupAtomics)),
            (std::vector<int32_t>{43, 42}));
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelMemory, testing::ValuesIn(kModes),
                         ModeName);
INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelAtomics, testing::ValuesIn(kModes),
                         ModeName);

}  // namespace
}  // namespace switchyard::testing_support
