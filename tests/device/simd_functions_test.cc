// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The simd functions and the types of kernels in C++, each once, in full
// simdgroups and partial ones. They are those of shaders, whose values
// metal/shim/ tests one by one; here is that each does what its name says, that
// lanes which are not there take no part, and that this build's compiler, which
// is not the shaders', gives the same halves.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/kernel.h"
#include "tests/device/kernel_test.h"

namespace switchyard::testing_support {
namespace {

// The results of `function` for each of the threads' values.
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

// Some are 0, for simd_all and simd_any.
std::vector<int32_t> Inputs(size_t threads) {
  std::vector<int32_t> in(threads);
  for (size_t i = 0; i < threads; ++i) {
    if (i % 45 == 44) continue;
    in[i] = static_cast<int32_t>(i * 2654435761u % 1000) - 300;
  }
  return in;
}

using Lanes32 = std::vector<int32_t>;
// The value of a lane of a simdgroup that has these.
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
  // 0 where the other lane is not there, and no error.
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
                           " of simdgroup 1 is not there" + Seed());
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

// Lane l + 16 to lane l, then 8, 4, 2, 1, each sum rounded; NaN loses.
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

// Compares with <cmath>: every bit pattern, and the two floats around each
// middle.
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
                         ModeName);
INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelTypes, testing::ValuesIn(kModes),
                         ModeName);

}  // namespace
}  // namespace switchyard::testing_support
