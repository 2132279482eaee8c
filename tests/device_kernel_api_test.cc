// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels written thread by thread: positions, simd functions, variables,
// atomics, threadgroup memory, threads that return; on a pool's threads and in
// checked mode alike.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device.h"
#include "switchyard/kernel.h"
#include "tests/device_work.h"

namespace switchyard {
namespace testing_support {
namespace {

using device::Buffer;
using device::ComputeCommandEncoder;
using device::KernelFunction;
using device::MakeKernel;
using device::Size;
// What a ported kernel says.
using device::atomic_buffer;
using device::atomic_pointer;
using device::buffer;
using device::mem_flags;
using device::params;
using device::pointer_cast;
using device::threadgroup_array;
using device::threadgroup_memory;

// Unchecked on three threads, checked, checked in a shuffled order.
class DeviceKernelApi : public DeviceTest,
                        public testing::WithParamInterface<Mode> {
 protected:
  DeviceKernelApi() : DeviceTest(GetParam()) {}

  // At the end of an error.
  static std::string Seed() {
    const uint64_t seed = GetParam().schedule_seed;
    return seed == 0 ? std::string()
                     : " (schedule_seed " + std::to_string(seed) + ")";
  }

  using Encode = std::function<void(ComputeCommandEncoder&)>;

  // The error, empty if it completed.
  std::string Run(const KernelFunction& kernel, const Encode& encode) {
    const auto commands = queue_->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(device_->newComputePipelineState(kernel));
    encode(*encoder);
    encoder->endEncoding();
    CommitAndWait(*commands);
    return commands->error();
  }
  template <class T>
  std::shared_ptr<Buffer> Make(const std::vector<T>& values) {
    return device_->newBuffer(values.data(), values.size() * sizeof(T));
  }
  template <class T>
  static std::vector<T> Read(const std::shared_ptr<Buffer>& from) {
    std::vector<T> values(from->length() / sizeof(T));
    std::memcpy(values.data(), from->contents(), values.size() * sizeof(T));
    return values;
  }
  // One threadgroup of `threads`, that reads buffer 0 and writes buffer 1.
  template <class In, class Out, class Kernel>
  std::vector<Out> Threadgroup(const std::vector<In>& in, size_t outputs,
                               size_t threads, const Kernel& kernel) {
    const auto out = Make(std::vector<Out>(outputs, Out(77)));
    EXPECT_EQ(Run(MakeKernel("test", kernel),
                  [&](ComputeCommandEncoder& e) {
                    e.setBuffer(Make(in), 0, 0);
                    e.setBuffer(out, 0, 1);
                    e.dispatchThreadgroups(Size(1, 1, 1), Size(threads, 1, 1));
                  }),
              "");
    return Read<Out>(out);
  }
};

// Full simdgroups, partial ones, and both in one threadgroup.
constexpr size_t kCounts[] = {1, 2, 7, 31, 32, 33, 50, 64, 100, 1023, 1024};

size_t Lanes(size_t thread, size_t threads) {
  return std::min<size_t>(32, threads - thread / 32 * 32);
}

// Each thread notes where it is, and its place in the grid is its own.
struct Places {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto all = buffer<uint32_t>(tg, 0);
    tg.for_each_thread([&](auto t) {
      const Size p = t.thread_position_in_grid();
      const Size in = t.thread_position_in_threadgroup();
      const Size& per = tg.threads_per_threadgroup;
      const Size& grid = tg.threads_per_grid;
      const size_t at =
          (p.depth * grid.height + p.height) * grid.width + p.width;
      const auto out = all + 6 * at;
      out[0] += 1u;
      out[1] = static_cast<uint32_t>(t.thread_index_in_threadgroup);
      out[2] = static_cast<uint32_t>(
          (in.depth * per.height + in.height) * per.width + in.width);
      out[3] = static_cast<uint32_t>(t.thread_index_in_simdgroup);
      out[4] = static_cast<uint32_t>(t.simdgroup_index_in_threadgroup);
      out[5] = static_cast<uint32_t>(tg.simdgroups_per_threadgroup());
      const Size& group = tg.threadgroup_position_in_grid;
      const Size& full = tg.dispatch_threads_per_threadgroup;
      if (group.width * full.width + in.width != p.width ||
          group.height * full.height + in.height != p.height ||
          group.depth * full.depth + in.depth != p.depth ||
          tg.threadgroups_per_grid.width !=
              (grid.width + full.width - 1) / full.width) {
        out[0] = 1000u;
      }
    });
  }
};

TEST_P(DeviceKernelApi, PositionsInOneToThreeDimensions) {
  const Size per_threadgroup[] = {Size(1, 1, 1), Size(40, 1, 1), Size(8, 5, 1),
                                  Size(3, 4, 5), Size(1, 1, 64)};
  const Size grids[] = {Size(1, 1, 1), Size(100, 1, 1), Size(17, 9, 1),
                        Size(7, 6, 11)};
  for (const Size& per : per_threadgroup) {
    for (const Size& grid : grids) {
      const size_t threads = grid.width * grid.height * grid.depth;
      const auto out = Make(std::vector<uint32_t>(6 * threads));
      ASSERT_EQ(Run(MakeKernel("places", Places{}),
                    [&](ComputeCommandEncoder& e) {
                      e.setBuffer(out, 0, 0);
                      e.dispatchThreads(grid, per);
                    }),
                "");
      const std::vector<uint32_t> got = Read<uint32_t>(out);
      for (size_t i = 0; i < threads; ++i) {
        const uint32_t* const t = got.data() + 6 * i;
        const size_t x = i % grid.width, y = i / grid.width % grid.height,
                     z = i / grid.width / grid.height;
        const auto part = [](size_t at, size_t width, size_t all) {
          return std::min(width, all - at / width * width);
        };
        const Size size(part(x, per.width, grid.width),
                        part(y, per.height, grid.height),
                        part(z, per.depth, grid.depth));
        const size_t index =
            (z % per.depth * size.height + y % per.height) * size.width +
            x % per.width;
        ASSERT_EQ(t[0], 1u) << i;
        ASSERT_EQ(t[1], index) << i;
        ASSERT_EQ(t[2], index) << i;
        ASSERT_EQ(t[3], index % 32) << i;
        ASSERT_EQ(t[4], index / 32) << i;
        ASSERT_EQ(t[5], (size.width * size.height * size.depth + 31) / 32);
      }
    }
  }
}

struct SumMaxMin {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto in = buffer<const float>(tg, 0);
    const auto out = buffer<float>(tg, 1);
    auto v = tg.per_thread(0.0f);
    tg.for_each_thread(
        [&](auto t) { v[t] = in[t.thread_index_in_threadgroup]; });
    const auto sum = simd_sum(v);
    const auto max = simd_max(v);
    const auto min = simd_min(v);
    tg.for_each_thread([&](auto t) {
      const auto to = out + 3 * t.thread_index_in_threadgroup;
      to[0] = sum[t];
      to[1] = max[t];
      to[2] = min[t];
    });
  }
};

TEST_P(DeviceKernelApi, SimdSumMaxMinOfFloats) {
  for (const size_t threads : kCounts) {
    std::vector<float> in(threads);
    for (size_t i = 0; i < threads; ++i) {
      in[i] = static_cast<float>(i * 7919 % 1000) * 0.37f - 150.0f;
    }
    const std::vector<float> out =
        Threadgroup<float, float>(in, 3 * threads, threads, SumMaxMin{});
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

TEST_P(DeviceKernelApi, SimdMaxMinPreferNumbersToNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> rows[] = {
      {nan, 2, 1}, {2, nan, 1}, {2, 1, nan}, {nan, nan, -inf}, {nan, 3, nan}};
  const float expected[][2] = {{2, 1}, {2, 1}, {2, 1}, {-inf, -inf}, {3, 3}};
  for (size_t i = 0; i < 5; ++i) {
    const auto out = Threadgroup<float, float>(rows[i], 9, 3, SumMaxMin{});
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], expected[i][0]) << i;
    EXPECT_EQ(out[2], expected[i][1]) << i;
  }
  const auto out = Threadgroup<float, float>({nan, nan}, 6, 2, SumMaxMin{});
  EXPECT_TRUE(std::isnan(out[1]) && std::isnan(out[2]));
}

template <class T>
struct IntegerFolds {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto in = buffer<const T>(tg, 0);
    const auto out = buffer<T>(tg, 1);
    auto v = tg.per_thread(T());
    tg.for_each_thread(
        [&](auto t) { v[t] = in[t.thread_index_in_threadgroup]; });
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
  }
};

TEST_P(DeviceKernelApi, SimdFunctionsOfIntegers) {
  EXPECT_EQ((Threadgroup<int32_t, int32_t>({-5, 3, INT32_MIN, 8, 1}, 4, 5,
                                           IntegerFolds<int32_t>{})),
            (std::vector<int32_t>{INT32_MIN + 7, 8, INT32_MIN, 1}));
  EXPECT_EQ((Threadgroup<uint32_t, uint32_t>({5, 3, UINT32_MAX, 8, 2}, 4, 5,
                                             IntegerFolds<uint32_t>{})),
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

TEST_P(DeviceKernelApi, SimdBroadcastShuffleBallot) {
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

// Threads from `n` on return at once; the others fold without them.
struct Returns {
  uint32_t n;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto out = buffer<int32_t>(tg, 1);
    auto one = tg.per_thread(1);
    auto index = tg.per_thread(0);
    tg.for_each_thread([&](auto t) {
      index[t] = static_cast<int32_t>(t.thread_index_in_threadgroup);
      if (t.thread_index_in_threadgroup >= n) return t.exit();
    });
    const auto count = simd_sum(one);
    const auto last = simd_max(index);
    const auto bits = simd_ballot(one);
    auto crossed = simd_shuffle_xor(index, 1);
    tg.for_each_thread([&](auto t) {
      const auto to = out + 4 * t.thread_index_in_threadgroup;
      to[0] = count[t];
      to[1] = last[t];
      to[2] = __builtin_popcountll(bits[t]);
      to[3] = crossed[t];
      t.exit();
      t.exit();  // once is enough
    });
    tg.for_each_thread([&](auto) { out[0] = -1; });
    const int32_t nobody = tg.uniform(one);
    if (nobody != 0) out[0] = -2;
  }
};

TEST_P(DeviceKernelApi, ThreadsThatReturn) {
  for (const size_t threads : {1u, 31u, 64u, 100u}) {
    for (const uint32_t n : {0u, 1u, 2u, 33u, 64u, 99u, 200u}) {
      const auto out =
          Threadgroup<int32_t, int32_t>({0}, 4 * threads, threads, Returns{n});
      for (size_t i = 0; i < threads; ++i) {
        if (i >= n) {
          for (size_t j = 0; j < 4; ++j) ASSERT_EQ(out[4 * i + j], 77);
          continue;
        }
        const size_t left = std::min<size_t>(n, threads);
        const size_t lanes = Lanes(i, left), first = i / 32 * 32;
        ASSERT_EQ(out[4 * i], static_cast<int32_t>(lanes));
        ASSERT_EQ(out[4 * i + 1], static_cast<int32_t>(first + lanes - 1));
        ASSERT_EQ(out[4 * i + 2], static_cast<int32_t>(lanes));
        ASSERT_EQ(out[4 * i + 3],
                  static_cast<int32_t>((i ^ 1) < left ? i ^ 1 : 0));
      }
    }
  }
}

// A tree in threadgroup memory, with a loop that all threads agree to leave.
struct TreeSum {
  template <class Tg>
  void operator()(Tg& tg) const {
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
  }
};

TEST_P(DeviceKernelApi, ThreadgroupMemoryAndBarriers) {
  constexpr uint32_t kThreads = 128, kRows = 200;
  std::vector<float> in(kThreads * kRows);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 97);
  const auto out = Make(std::vector<float>(kRows));
  ASSERT_EQ(Run(MakeKernel("tree_sum", TreeSum{}),
                [&](ComputeCommandEncoder& e) {
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
    EXPECT_EQ(Read<float>(out)[row], sum) << row;
  }
}

// The memory behind a region that was set, and float scratch as integers.
struct Carve {
  template <class Tg>
  void operator()(Tg& tg) const {
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
  }
};

TEST_P(DeviceKernelApi, PointersIntoScratch) {
  const auto out = Make(std::vector<int32_t>(2));
  ASSERT_EQ(Run(MakeKernel("carve", Carve{}),
                [&](ComputeCommandEncoder& e) {
                  e.setBuffer(out, 0, 1);
                  e.setThreadgroupMemoryLength(24, 0);
                  e.dispatchThreadgroups(Size(1, 1, 1), Size(1, 1, 1));
                }),
            "");
  EXPECT_EQ(Read<int32_t>(out), (std::vector<int32_t>{8, 0x12}));
}

// All threadgroups count in the same words.
template <class T>
struct Atomics {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto a = atomic_buffer<T>(tg, 0);
    const auto taken = atomic_buffer<uint32_t>(tg, 1);
    tg.for_each_thread([&](auto t) {
      const T i = static_cast<T>(t.thread_position_in_grid().width);
      a.fetch_add(0, T(1));
      a.fetch_sub(1, T(2));
      a.fetch_max(2, i);
      a.fetch_min(3, i);
      T expected = a.load(4);
      while (!a.compare_exchange(4, expected, expected + T(3))) {
      }
      if (a.exchange(5, i) == i) a.store(6, T(1));
      const uint32_t bit = uint32_t{1} << t.thread_index_in_simdgroup;
      taken.fetch_or(0, bit);
      taken.fetch_and(1, ~bit);
      taken.fetch_xor(2, bit);
    });
  }
};

class DeviceKernelAtomics : public DeviceKernelApi {
 protected:
  template <class T>
  void Test() {
    constexpr size_t kThreads = 32 * 101;
    const auto values =
        Make<T>({0, T(2 * kThreads + 5), 0, 99, 1, T(1 << 20), 0});
    const auto bits = Make<uint32_t>({0, UINT32_MAX, 0});
    ASSERT_EQ(Run(MakeKernel("atomics", Atomics<T>{}),
                  [&](ComputeCommandEncoder& e) {
                    e.setBuffer(values, 0, 0);
                    e.setBuffer(bits, 0, 1);
                    e.dispatchThreads(Size(kThreads, 1, 1), Size(32, 1, 1));
                  }),
              "");
    const std::vector<T> got = Read<T>(values);
    EXPECT_EQ(got[0], T(kThreads));
    EXPECT_EQ(got[1], T(5));
    EXPECT_EQ(got[2], T(kThreads - 1));
    EXPECT_EQ(got[3], T(0));
    EXPECT_EQ(got[4], T(1 + 3 * kThreads));
    EXPECT_LT(got[5], T(kThreads));
    EXPECT_EQ(got[6], T(0));
    EXPECT_EQ(Read<uint32_t>(bits),
              (std::vector<uint32_t>{UINT32_MAX, 0, UINT32_MAX}));
  }
};

// Across threadgroups that run in parallel.
TEST_P(DeviceKernelAtomics, Int32) { Test<int32_t>(); }
TEST_P(DeviceKernelAtomics, Uint32) { Test<uint32_t>(); }
TEST_P(DeviceKernelAtomics, Float) { Test<float>(); }

struct ThreadgroupAtomics {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto counts = atomic_pointer(threadgroup_array<int32_t, 2>(tg));
    const auto out = buffer<int32_t>(tg, 1);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup < 2) {
        counts.store(t.thread_index_in_threadgroup, 10);
      }
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      counts.fetch_add(t.thread_index_in_threadgroup % 2, 1);
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      if (i < 2) out[i] = counts.load(i);
    });
  }
};

TEST_P(DeviceKernelApi, AtomicsInThreadgroupMemory) {
  EXPECT_EQ((Threadgroup<int32_t, int32_t>({0}, 2, 65, ThreadgroupAtomics{})),
            (std::vector<int32_t>{43, 42}));
}

// Copies and assignments of variables keep each thread's own.
struct Variables {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto out = buffer<int32_t>(tg, 1);
    auto a = tg.per_thread(1);
    tg.for_each_thread([&](auto t) {
      a[t] += static_cast<int32_t>(t.thread_index_in_threadgroup);
    });
    auto b = a;
    tg.for_each_thread([&](auto t) { a[t] *= 10; });
    auto c = tg.per_thread(0);
    c = b;
    tg.for_each_thread([&](auto t) {
      const auto& ten = a;
      out[t.thread_index_in_threadgroup] = ten[t] + b[t] + c[t];
    });
  }
};

TEST_P(DeviceKernelApi, VariablesOfThreads) {
  const auto out = Threadgroup<int32_t, int32_t>({0}, 1024, 1024, Variables{});
  for (int32_t i = 0; i < 1024; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], 12 * (i + 1));
  }
}

TEST_P(DeviceKernelApi, GenericLambdas) {
  const int32_t from_host = 5;
  const auto out =
      Threadgroup<int32_t, int32_t>({3, 4}, 2, 2, [from_host](auto& tg) {
        const auto in = buffer<const int32_t>(tg, 0);
        const auto to = buffer<int32_t>(tg, 1);
        tg.for_each_thread([&](auto t) {
          const size_t i = t.thread_index_in_threadgroup;
          to[i] = in[i] + from_host;
        });
      });
  EXPECT_EQ(out, (std::vector<int32_t>{8, 9}));
}

struct Wide {
  double values[3];
};

TEST_P(DeviceKernelApi, ErrorsOfAccessors) {
  const auto fails = [this](const std::string& error, const auto& body,
                            const void* read_only = nullptr) {
    const auto eight = device_->newBuffer("7 bytes", 8);
    EXPECT_EQ(Run(MakeKernel("mine", body),
                  [&](ComputeCommandEncoder& e) {
                    e.setBuffer(eight, 0, 0);
                    e.setBuffer(eight, 3, 1);
                    e.setThreadgroupMemoryLength(32768 - 64, 0);
                    if (read_only != nullptr) {
                      e.setBuffer(
                          device_->newBufferWithBytesNoCopy(read_only, 8), 0,
                          0);
                    }
                    e.dispatchThreadgroups(Size(2, 1, 1), Size(4, 1, 1));
                  }),
              error.empty() ? error : error + Seed());
  };
  fails("mine: buffer 2 is not bound",
        [](auto& tg) { buffer<const float>(tg, 2); });
  fails("mine: buffer 31 is not bound",
        [](auto& tg) { atomic_buffer<int32_t>(tg, 31); });
  fails("mine: buffer 1: its address is not a multiple of 4",
        [](auto& tg) { buffer<float>(tg, 1); });
  fails("mine: buffer 0 (params) needs 24 bytes, 8 are bound: 16 too few",
        [](auto& tg) { params<Wide>(tg, 0); });
  fails("mine: threadgroup memory 1 has no length set",
        [](auto& tg) { threadgroup_memory<float>(tg, 1); });
  fails("mine: threadgroup_array: 80 bytes after 32704, the most is 32768",
        [](auto& tg) { threadgroup_array<float, 20>(tg); });
  fails("mine: threadgroup_array: more than 32 of them", [](auto& tg) {
    for (int i = 0; i < 33; ++i) threadgroup_array<char, 1>(tg)[0] = 1;
  });
  const int32_t read_only[2] = {};
  fails(
      "mine: buffer 0 is written, and is read-only",
      [](auto& tg) { buffer<float>(tg, 0); }, read_only);
  fails(
      "", [](auto& tg) { buffer<const float>(tg, 0); }, read_only);
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelApi, testing::ValuesIn(kModes),
                         ModeName);
INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelAtomics, testing::ValuesIn(kModes),
                         ModeName);

// `const T` cannot be written, and an element is not to be kept.
template <class T>
using ElementOf =
    decltype(std::declval<const device::CheckedPointer<T>&>()[size_t{0}]);
static_assert(std::is_same_v<ElementOf<const float>, float>);
static_assert(std::is_assignable_v<ElementOf<float>, float>);
static_assert(!std::is_assignable_v<ElementOf<const float>, float>);
static_assert(std::is_convertible_v<ElementOf<float>, float>);
static_assert(!std::is_convertible_v<ElementOf<float>&, float>);
static_assert(std::is_convertible_v<device::CheckedPointer<float>,
                                    device::CheckedPointer<const float>>);
static_assert(!std::is_convertible_v<device::CheckedPointer<const float>,
                                     device::CheckedPointer<float>>);

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
