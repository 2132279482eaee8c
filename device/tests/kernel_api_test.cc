// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests kernels in C++ that are written thread by thread: positions,
// variables, threads that return, and errors of accessors. The results must
// be the same on a pool's threads and in checked mode.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "device/tests/device_test.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"

namespace switchyard::testing_support {
namespace {

// Runs kernels written thread by thread in every mode: unchecked on three
// threads, checked, and checked in a shuffled order.
class KernelTest : public DeviceTest, public testing::WithParamInterface<Mode> {
 protected:
  KernelTest() : DeviceTest(GetParam()) {}

  // Returns " (schedule_seed N)", which ends each error of a shuffled run.
  // Returns "" if the run is not shuffled.
  static std::string Seed() {
    const uint64_t seed = GetParam().schedule_seed;
    return seed == 0 ? std::string()
                     : " (schedule_seed " + std::to_string(seed) + ")";
  }

  // Runs the kernel. Returns the error, or "" if the command buffer
  // completed.
  std::string Run(const KernelFunction& kernel, const Encode& encode) {
    return DeviceTest::Run([&](Encoder& e) {
      e.setComputePipelineState(device_->newComputePipelineState(kernel));
      encode(e);
    });
  }
  template <class T>
  BufferPtr Make(const std::vector<T>& values) {
    return NewBuffer(*device_, values);
  }
  // Runs one threadgroup of `threads` threads. The kernel reads buffer 0 and
  // writes buffer 1.
  template <class In, class Out, class Kernel>
  std::vector<Out> Threadgroup(const std::vector<In>& in, size_t outputs,
                               size_t threads, const Kernel& kernel) {
    const auto out = Make(std::vector<Out>(outputs, Out(77)));
    EXPECT_EQ(Run(MakeKernel("test", kernel),
                  [&](Encoder& e) {
                    e.setBuffer(Make(in), 0, 0);
                    e.setBuffer(out, 0, 1);
                    e.dispatchThreadgroups(Size(1, 1, 1), Size(threads, 1, 1));
                  }),
              "");
    return Contents<Out>(out);
  }
};

size_t Lanes(size_t thread, size_t threads) {
  return std::min<size_t>(32, threads - thread / 32 * 32);
}

using DeviceKernelApi = KernelTest;

// A kernel in which each thread stores its indices in the threadgroup and in
// the simdgroup. `all` has 6 words for each position in the grid.
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

// A kernel in which threads return at once if their index is `n` or more.
// Reductions must ignore these threads.
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
      t.exit();  // a second call has no effect
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

// A kernel that copies and assigns variables. Each thread must keep its
// values.
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
                         testing::PrintToStringParamName());

// These assertions check that `const T` cannot be written, and that
// references to elements cannot be stored.
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

// The next tests are about threadgroup memory and atomics.

using DeviceKernelMemory = KernelTest;

// Divides vectors of integers by 0, and the least integer by -1. The
// divisions must not end the process.
template <class T>
void DivideVectors() {
  constexpr T kLeast = std::numeric_limits<T>::min();
  const ::metal::vec<T, 4> a(T(7), kLeast, kLeast, T(9)),
      b(T(0), T(-1), T(0), T(2));
  ::metal::vec<T, 4> quotient = a, remainder = a;
  quotient /= b;
  remainder %= b;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ((a / b)[i], quotient[i]);
    EXPECT_EQ((a % b)[i], remainder[i]);
  }
  EXPECT_EQ(quotient[0], 7);
  EXPECT_EQ(quotient[1], std::is_signed_v<T> ? kLeast : 0);
  EXPECT_EQ(quotient[2], kLeast);
  EXPECT_EQ(quotient[3], 4);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(remainder[i], 0);
  EXPECT_EQ(remainder[3], 1);
}
TEST(DeviceKernelVectors, DivideByZeroAndMinusOne) {
  DivideVectors<int8_t>();
  DivideVectors<uint8_t>();
  DivideVectors<int16_t>();
  DivideVectors<int32_t>();
  DivideVectors<uint32_t>();
  DivideVectors<int64_t>();
  DivideVectors<uint64_t>();
}

// A kernel that computes sums by tree reductions in threadgroup memory. All
// threads leave the loop together.
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

// A kernel that stores floats and, after them, integers in one block of
// threadgroup memory.
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
    out[1] = *end;  // 0x12, because integers are little-endian
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

// A kernel that lets all threadgroups update the same words.
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

// The threadgroups run in parallel and update the same words.
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
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelAtomics, testing::ValuesIn(kModes),
                         testing::PrintToStringParamName());

// The next tests move, compare and subtract pointers in kernels. If a pointer
// points to a struct, checked mode checks each member separately.

struct Block {
  half scale;
  int8_t codes[6];
  float2 range;
};
SWITCHYARD_MEMBERS(Block, scale, codes, range)
struct Pair {
  uint32_t key;
  float value;
};
SWITCHYARD_MEMBERS(Pair, key, value)

using DeviceKernelPointers = KernelTest;

const auto kWalk = [](auto& tg) {
  const auto in = buffer<const int32_t>(tg, 0);
  const auto out = buffer<int32_t>(tg, 1);
  tg.for_each_thread([&](auto) {
    auto p = in;
    const auto end = in + 4;
    auto q = out;
    while (p < end) *q++ = *p++ * 10;
    q[0] = static_cast<int32_t>(p - in);
    q[1] = p == end && p >= end && p <= end && !(p != end) && !(p > end);
    q[2] = static_cast<int32_t>(in - end);
    *--q = *(p-- - 1);  // q is now out + 3
    q[4] = *p;
    q[5] = in[in[0]];  // the index is an element
    q += in[0];
    *q += in[1];
  });
};

TEST_P(DeviceKernelPointers, MoveCompareAndSubtract) {
  const auto out = Threadgroup<int32_t, int32_t>({1, 2, 3, 5}, 10, 1, kWalk);
  EXPECT_EQ(out, (std::vector<int32_t>{10, 20, 30, 5, 4 + 2, 1, -4, 5, 2, 77}));
}

const auto kMembers = [](auto& tg) {
  const auto in = buffer<const Block>(tg, 0);
  const auto out = buffer<Block>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    const auto p = out + i;
    p->scale = in[i].scale * half(2);
    for (size_t j = 0; j < 6; ++j) {
      p->codes[j] = in[i].codes[j];
      p->codes[j] += int8_t{1};
    }
    out[i].range = float2(0.0f);
    out[i].range.x = in[i].range.y;
    p->range.y += 3.0f;
    const Block whole = in[i];
    p->range.y *= whole.range.x;
    (in + i)->range.x < 2.0f ? p->range.x += 1.0f : p->range.x -= 1.0f;
  });
};

TEST_P(DeviceKernelPointers, Members) {
  std::vector<Block> in(3);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].scale = half(static_cast<int>(i) + 1);
    for (size_t j = 0; j < 6; ++j) {
      in[i].codes[j] = static_cast<int8_t>(10 * i + j);
    }
    in[i].range = float2(static_cast<float>(i + 1), 7.0f);
  }
  const auto buffer_in = Make(in), buffer_out = Make(std::vector<Block>(3));
  ASSERT_EQ(Run(MakeKernel("members", kMembers),
                [&](Encoder& e) {
                  e.setBuffer(buffer_in, 0, 0);
                  e.setBuffer(buffer_out, 0, 1);
                  e.dispatchThreadgroups(Size(1, 1, 1), Size(3, 1, 1));
                }),
            "");
  const auto out = Contents<Block>(buffer_out);
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(static_cast<float>(out[i].scale),
              2.0f * static_cast<float>(i + 1));
    for (size_t j = 0; j < 6; ++j) {
      EXPECT_EQ(out[i].codes[j], in[i].codes[j] + 1);
    }
    EXPECT_EQ(out[i].range.x, i == 0 ? 8.0f : 6.0f);
    EXPECT_EQ(out[i].range.y, 3.0f * static_cast<float>(i + 1));
  }
}

// Lets the threads access different members of the same element. This is no
// race, because an access to a member does not touch its neighbours.
const auto kOwnMember = [](auto& tg) {
  const auto out = buffer<Pair>(tg, 0);
  const auto vectors = buffer<float4>(tg, 1);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 0) {
      out[0].key = 4;
      vectors[0].x = 1.0f;
      vectors->y = vectors[0].x;
    } else {
      out->value = 5.0f;
      vectors[0].w = 2.0f;
    }
  });
};
// A kernel that reads the whole element.
const auto kWholeElement = [](auto& tg) {
  const auto out = buffer<Pair>(tg, 0);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 0) {
      out[0].key = 4;
    } else {
      const Pair pair = out[0];
      out[1] = pair;
    }
  });
};
const auto kOtherMember = [](auto& tg) {
  const auto out = buffer<Pair>(tg, 0);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 0) out[1].value = 1.0f;
    if (t.thread_index_in_threadgroup == 1) out->key = 1;
    if (t.thread_index_in_threadgroup == 2) out[0].key = (out + 1)->key;
  });
};

TEST(DeviceKernelMembersChecked, OnlyTheMemberIsTouched) {
  CheckedQueue q;
  const auto pairs = q.device->newBuffer(16), vectors = q.device->newBuffer(16);
  EXPECT_EQ(q.Run("own", kOwnMember, {pairs, vectors}, 1, 2), "");
  EXPECT_EQ(Contents<Pair>(pairs)[0].key, 4u);
  EXPECT_EQ(Contents<Pair>(pairs)[0].value, 5.0f);
  EXPECT_EQ(Contents<float>(vectors)[1], 1.0f);
  EXPECT_EQ(q.Run("whole", kWholeElement, {pairs}, 1, 2),
            "whole: threadgroup (0, 0, 0), thread 1: reads buffer 0[0], which "
            "thread 0 wrote in the same phase: a simdgroup_barrier with "
            "mem_device is missing");
}

TEST(DeviceKernelMembersChecked, ErrorsNameWhatWasTouched) {
  CheckedQueue q;
  const auto fresh = q.device->newBuffer(16);
  EXPECT_EQ(q.Run("other", kOtherMember, {fresh}, 1, 3),
            "other: threadgroup (0, 0, 0), thread 2: reads buffer 0[2], which "
            "nothing has written since newBuffer()");
  const auto zeros = q.Floats(4, 0.0f);
  EXPECT_EQ(q.Run("other", kOtherMember, {zeros}, 1, 3),
            "other: threadgroup (0, 0, 0), thread 2: writes buffer 0[0], which "
            "thread 1 wrote in the same phase: a simdgroup_barrier with "
            "mem_device is missing");
  const auto small = q.Floats(3, 0.0f);
  EXPECT_EQ(q.Run("other", kOtherMember, {small}, 1, 1),
            "other: threadgroup (0, 0, 0), thread 0: writes buffer 0[3], which "
            "has 3 elements");
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelPointers, testing::ValuesIn(kModes),
                         testing::PrintToStringParamName());

// The next tests are about simd functions and types in C++ kernels. Each
// function is tested once, in full and in partial simdgroups. Shaders have
// the same functions, and metal/shim/ tests their values one by one. The
// tests here check three things:
// * Each function does what its name says.
// * Missing lanes take no part.
// * The compiler of this build computes the same halves as the compiler of
//   the shaders.

// Runs `function` on the values, one per thread. Returns the result of each
// thread.
template <class T, class Function>
auto Each(const Function& function) {
  return [function](auto& tg) {
    const auto in = buffer<const T>(tg, 0);
    const auto out = buffer<T>(tg, 1);
    auto v = tg.per_thread(T());
    tg.for_each_thread(
        [&](auto t) { v[t] = in[t.thread_index_in_threadgroup]; });
    const auto result = function(v);
    tg.for_each_thread([&](auto t) {
      out[t.thread_index_in_threadgroup] = static_cast<T>(result[t]);
    });
  };
}

// Returns one value per thread. Some values are 0, for simd_all and simd_any.
std::vector<int32_t> Inputs(size_t threads) {
  std::vector<int32_t> in(threads);
  for (size_t i = 0; i < threads; ++i) {
    if (i % 45 == 44) continue;
    in[i] = static_cast<int32_t>(i * 2654435761u % 1000) - 300;
  }
  return in;
}

using Lanes32 = std::vector<int32_t>;
// A function that computes the expected result of a lane from the values of
// its simdgroup.
using Want = std::function<int32_t(const Lanes32& lanes, size_t lane)>;

Want Folded(int32_t (*function)(int32_t, int32_t)) {
  return [function](const Lanes32& lanes, size_t) {
    int32_t result = lanes[0];
    for (size_t i = 1; i < lanes.size(); ++i) {
      result = function(result, lanes[i]);
    }
    return result;
  };
}
Want UpTo(bool inclusive, int32_t start,
          int32_t (*function)(int32_t, int32_t)) {
  return [=](const Lanes32& lanes, size_t lane) {
    int32_t result = start;
    for (size_t i = 0; i < lane + (inclusive ? 1 : 0); ++i) {
      result = function(result, lanes[i]);
    }
    return result;
  };
}
int32_t Plus(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) +
                              static_cast<uint32_t>(b));
}
int32_t Times(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) *
                              static_cast<uint32_t>(b));
}

class DeviceSimdFunctions : public KernelTest {
 protected:
  template <class Function>
  void Expect(const std::vector<size_t>& counts, const Function& function,
              const Want& want) {
    for (const size_t threads : counts) {
      const std::vector<int32_t> in = Inputs(threads);
      const auto out = Threadgroup<int32_t, int32_t>(in, threads, threads,
                                                     Each<int32_t>(function));
      for (size_t i = 0; i < threads; ++i) {
        const size_t first = i / 32 * 32;
        const auto begin = in.begin() + static_cast<ptrdiff_t>(first);
        const Lanes32 lanes(begin,
                            begin + static_cast<ptrdiff_t>(Lanes(i, threads)));
        ASSERT_EQ(out[i], want(lanes, i - first)) << threads << " " << i;
      }
    }
  }
  const std::vector<size_t> all_{1, 31, 50, 1023};
  const std::vector<size_t> full_{64};
};

#define SIMD(function) [](const auto& v) { return function; }

TEST_P(DeviceSimdFunctions, Reduce) {
  Expect(all_, SIMD(simd_sum(v)), Folded(Plus));
  Expect(all_, SIMD(simd_product(v)), Folded(Times));
  Expect(all_, SIMD(simd_max(v)),
         Folded([](int32_t a, int32_t b) { return std::max(a, b); }));
  Expect(all_, SIMD(simd_min(v)),
         Folded([](int32_t a, int32_t b) { return std::min(a, b); }));
  Expect(all_, SIMD(simd_and(v)),
         Folded([](int32_t a, int32_t b) { return a & b; }));
  Expect(all_, SIMD(simd_or(v)),
         Folded([](int32_t a, int32_t b) { return a | b; }));
  Expect(all_, SIMD(simd_xor(v)),
         Folded([](int32_t a, int32_t b) { return a ^ b; }));
  Expect(all_, SIMD(simd_prefix_inclusive_sum(v)), UpTo(true, 0, Plus));
  Expect(all_, SIMD(simd_prefix_exclusive_sum(v)), UpTo(false, 0, Plus));
  Expect(all_, SIMD(simd_prefix_inclusive_product(v)), UpTo(true, 1, Times));
  Expect(all_, SIMD(simd_prefix_exclusive_product(v)), UpTo(false, 1, Times));
}

TEST_P(DeviceSimdFunctions, Vote) {
  const Want ballot = [](const Lanes32& lanes, size_t) {
    uint32_t bits = 0;
    for (size_t i = 0; i < lanes.size(); ++i) {
      bits |= uint32_t{lanes[i] != 0} << i;
    }
    return static_cast<int32_t>(bits);
  };
  Expect(all_, SIMD(simd_ballot(v)), ballot);
  Expect(all_, SIMD(simd_all(v)), [](const Lanes32& lanes, size_t) {
    return std::count(lanes.begin(), lanes.end(), 0) == 0 ? 1 : 0;
  });
  Expect(all_, SIMD(simd_any(v)), [](const Lanes32& lanes, size_t) {
    return std::all_of(lanes.begin(), lanes.end(),
                       [](int32_t value) { return value == 0; })
               ? 0
               : 1;
  });
}

TEST_P(DeviceSimdFunctions, Shuffle) {
  Expect(all_, SIMD(simd_shuffle(v, 0)),
         [](const Lanes32& lanes, size_t) { return lanes[0]; });
  Expect(all_, SIMD(simd_broadcast_first(v)),
         [](const Lanes32& lanes, size_t) { return lanes[0]; });
  Expect(full_, SIMD(simd_broadcast(v, 4)),
         [](const Lanes32& lanes, size_t) { return lanes[4]; });
  // If the other lane is missing, the result is 0, without an error.
  Expect(all_, SIMD(simd_shuffle_xor(v, 5)),
         [](const Lanes32& lanes, size_t lane) {
           return (lane ^ 5) < lanes.size() ? lanes[lane ^ 5] : 0;
         });
  Expect(all_, SIMD(simd_shuffle_up(v, 5)),
         [](const Lanes32& lanes, size_t lane) {
           return lanes[lane >= 5 ? lane - 5 : lane];
         });
  Expect(full_, SIMD(simd_shuffle_down(v, 5)),
         [](const Lanes32& lanes, size_t lane) {
           return lanes[lane + 5 < 32 ? lane + 5 : lane];
         });
  Expect(full_, SIMD(simd_shuffle_rotate_up(v, 5)),
         [](const Lanes32& lanes, size_t lane) {
           return lanes[(lane + 27) % 32];
         });
  Expect(
      full_, SIMD(simd_shuffle_rotate_down(v, 5)),
      [](const Lanes32& lanes, size_t lane) { return lanes[(lane + 5) % 32]; });
}

const auto kReversed = [](auto& tg) {
  const auto in = buffer<const int32_t>(tg, 0);
  const auto out = buffer<int32_t>(tg, 1);
  auto v = tg.per_thread(0);
  auto from = tg.per_thread(uint16_t{0});
  tg.for_each_thread([&](auto t) {
    v[t] = in[t.thread_index_in_threadgroup];
    from[t] = static_cast<uint16_t>(31 - t.thread_index_in_simdgroup);
  });
  const auto reversed = simd_shuffle(v, from);
  tg.for_each_thread(
      [&](auto t) { out[t.thread_index_in_threadgroup] = reversed[t]; });
};

TEST_P(DeviceSimdFunctions, ShuffleByLanesOfTheirOwn) {
  const std::vector<int32_t> in = Inputs(64);
  const auto out = Threadgroup<int32_t, int32_t>(in, 64, 64, kReversed);
  for (size_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], in[i ^ 31]) << i;
}

TEST_P(DeviceSimdFunctions, ALaneThatIsNotThere) {
  const auto run = [&](const std::string& what, size_t reader, auto function) {
    const auto out = Make(std::vector<int32_t>(40, 77));
    const std::string error =
        Run(MakeKernel("test", Each<int32_t>(function)), [&](Encoder& e) {
          e.setBuffer(Make(Inputs(40)), 0, 0);
          e.setBuffer(out, 0, 1);
          e.dispatchThreadgroups(Size(1, 1, 1), Size(40, 1, 1));
        });
    if (GetParam().check_kernels) {
      EXPECT_EQ(error, "test: threadgroup (0, 0, 0): " + what +
                           " of simdgroup 1 does not exist" + Seed());
    } else {
      EXPECT_EQ(error, "");
      EXPECT_EQ(Contents<int32_t>(out)[reader], 0);
    }
  };
  run("simd_broadcast: lane 8", 35, SIMD(simd_broadcast(v, 8)));
  run("simd_shuffle_down: lane 8", 39, SIMD(simd_shuffle_down(v, 1)));
  run("simd_shuffle: lane 9", 35, SIMD(simd_shuffle(v, 9)));
  run("simd_shuffle_rotate_up: lane 31", 32,
      SIMD(simd_shuffle_rotate_up(v, 1)));
}

// In a sum, lane l + 16 is added to lane l, then lane l + 8, l + 4, l + 2 and
// l + 1, and each sum is rounded. In a maximum or minimum, a number wins over
// NaN.
TEST_P(DeviceSimdFunctions, FloatsAndHalves) {
  std::vector<half> in(32);
  for (size_t i = 0; i < 32; ++i) in[i] = half(static_cast<int>(i * i) + 100);
  std::vector<half> sums = in;
  for (size_t width = 16; width != 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) sums[i] = sums[i] + sums[i + width];
  }
  for (const half h :
       Threadgroup<half, half>(in, 32, 32, Each<half>(SIMD(simd_sum(v))))) {
    ASSERT_EQ(h.Bits(), sums[0].Bits());
  }
  const std::vector<float> floats = {NAN, 3, -INFINITY, NAN, 2};
  EXPECT_EQ((Threadgroup<float, float>(floats, 5, 5,
                                       Each<float>(SIMD(simd_max(v)))))[0],
            3.0f);
  EXPECT_EQ((Threadgroup<float, float>(floats, 5, 5,
                                       Each<float>(SIMD(simd_min(v)))))[4],
            -INFINITY);
}

// Checks the rounding of floats to F against <cmath>, for every bit pattern
// of F and for the two floats next to each midpoint.
template <class F>
void RoundsToNearestEven(int mantissa_bits, int bias) {
  const auto value = [=](uint32_t bits) {
    const int exponent = static_cast<int>(bits >> mantissa_bits);
    const int mantissa = static_cast<int>(bits & ((1u << mantissa_bits) - 1));
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                         : std::ldexp(mantissa + (1 << mantissa_bits),
                                      exponent - bias - mantissa_bits);
  };
  const uint32_t infinity = F(HUGE_VALF).Bits();
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    ASSERT_EQ(static_cast<double>(float{F::FromBits(bits)}), value(bits));
    ASSERT_EQ(F(-float{F::FromBits(bits)}).Bits(), bits | 0x8000);
    const double middle = (value(bits) + value(bits + 1)) / 2;
    ASSERT_EQ(F(middle).Bits(), bits + bits % 2);
    ASSERT_EQ(F(std::nextafter(middle, 0.0)).Bits(), bits);
    ASSERT_EQ(F(std::nextafter(middle, HUGE_VAL)).Bits(), bits + 1);
  }
  EXPECT_TRUE(std::isnan(float{F(std::nan(""))}));
  EXPECT_EQ(F(std::numeric_limits<double>::max()).Bits(), infinity);
}

TEST(DeviceKernelHalves, RoundToNearestEven) {
  RoundsToNearestEven<half>(10, 15);
  RoundsToNearestEven<bfloat>(7, 127);
}

using DeviceKernelTypes = KernelTest;

const auto kHalves = [](auto& tg) {
  const auto in = buffer<const half>(tg, 0);
  const auto out = buffer<half>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    out[i] = in[i] * in[i];
    out[i] += in[i];
    out[i] = out[i] * 0.5f;
    half h = in[i];
    h += out[i];
    h -= 1.0f;
    if (in[i] < 3.0f) out[i] = h;
    out[i]++;
  });
};

TEST_P(DeviceKernelTypes, HalvesInMemory) {
  std::vector<half> in(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = half(static_cast<int>(i));
  const auto out = Threadgroup<half, half>(in, 64, 64, kHalves);
  for (size_t i = 0; i < in.size(); ++i) {
    half want = half(half(in[i] * in[i]) + in[i]);
    want = half(static_cast<float>(want) * 0.5f);
    if (i < 3) want = half(static_cast<float>(half(in[i] + want)) - 1.0f);
    want = want + half(1);
    ASSERT_EQ(out[i].Bits(), want.Bits()) << i;
  }
}

const auto kRows = [](auto& tg) {
  const auto in = buffer<const float4>(tg, 0);
  const auto out = buffer<float>(tg, 1);
  auto sums = tg.per_thread(float4(0.0f));
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    const float4 reversed = float4(in[i]).wzyx;
    sums[t] += in[i] * in[i];
    sums[t] += 2.0f * reversed;
  });
  const auto all_lanes = simd_sum(sums);
  tg.for_each_thread([&](auto t) {
    const float4 v = all_lanes[t];
    out[t.thread_index_in_threadgroup] = v.x + v.y + v.z + v.w;
  });
};

TEST_P(DeviceKernelTypes, VectorsInMemory) {
  static_assert(sizeof(float3) == 16 && alignof(float3) == 16);
  static_assert(sizeof(half3) == 8 && sizeof(char3) == 4 && sizeof(bool4) == 4);
  static_assert(sizeof(long3) == 32 && alignof(uint2) == 8);
  std::vector<float4> in(32);
  float want = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    for (int j = 0; j < 4; ++j) {
      in[i][j] = static_cast<float>(4 * i) + static_cast<float>(j);
      want += in[i][j] * (in[i][j] + 2.0f);
    }
  }
  const auto out = Threadgroup<float4, float>(in, 32, 32, kRows);
  for (const float sum : out) ASSERT_EQ(sum, want);
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceSimdFunctions, testing::ValuesIn(kModes),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelTypes, testing::ValuesIn(kModes),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace switchyard::testing_support
