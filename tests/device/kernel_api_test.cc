// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels written thread by thread: positions, variables, threads that return,
// errors of accessors; on a pool's threads and in checked mode alike.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "tests/device/kernel_test.h"

namespace switchyard::testing_support {
namespace {

using DeviceKernelApi = KernelTest;

// Each thread notes where it is, and its place in the grid is its own.
const auto kPlaces = [](auto& tg) {
  const auto all = buffer<uint32_t>(tg, 0);
  tg.for_each_thread([&](auto t) {
    const Size p = t.thread_position_in_grid();
    const Size in = t.thread_position_in_threadgroup();
    const Size& per = tg.threads_per_threadgroup;
    const Size& grid = tg.threads_per_grid;
    const size_t at = (p.depth * grid.height + p.height) * grid.width + p.width;
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
      ASSERT_EQ(Run(MakeKernel("places", kPlaces),
                    [&](Encoder& e) {
                      e.setBuffer(out, 0, 0);
                      e.dispatchThreads(grid, per);
                    }),
                "");
      const std::vector<uint32_t> got = Contents<uint32_t>(out);
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

// Copies and assignments of variables keep each thread's own.
const auto kVariables = [](auto& tg) {
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
};

TEST_P(DeviceKernelApi, VariablesOfThreads) {
  const auto out = Threadgroup<int32_t, int32_t>({0}, 1024, 1024, kVariables);
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
                  [&](Encoder& e) {
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

// `const T` cannot be written, and an element is not to be kept.
template <class T>
using ElementOf = decltype(std::declval<const CheckedPointer<T>&>()[size_t{0}]);
static_assert(std::is_same_v<ElementOf<const float>, float>);
static_assert(std::is_assignable_v<ElementOf<float>, float>);
static_assert(!std::is_assignable_v<ElementOf<const float>, float>);
static_assert(std::is_convertible_v<ElementOf<float>, float>);
static_assert(!std::is_convertible_v<ElementOf<float>&, float>);
static_assert(
    std::is_convertible_v<CheckedPointer<float>, CheckedPointer<const float>>);
static_assert(
    !std::is_convertible_v<CheckedPointer<const float>, CheckedPointer<float>>);

}  // namespace
}  // namespace switchyard::testing_support
