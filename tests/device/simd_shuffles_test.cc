// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Shuffles, prefix sums and the like, against a loop over the lanes.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/kernel.h"
#include "tests/device/kernel_test.h"

namespace switchyard::testing_support {
namespace {

using DeviceSimdShuffles = KernelTest;

// function(v) of the thread's inputs, for each thread.
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

std::vector<int32_t> Inputs(size_t threads) {
  std::vector<int32_t> in(threads);
  for (size_t i = 0; i < threads; ++i) {
    if (i % 45 == 44) continue;  // 0, for simd_all
    in[i] = static_cast<int32_t>(i * 2654435761u % 1000) - 300;
  }
  return in;
}

// want(lanes, lane): of a simdgroup's values.
using Want =
    std::function<int32_t(const std::vector<int32_t>& lanes, size_t lane)>;

class Lanewise : public DeviceSimdShuffles {
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
        const std::vector<int32_t> lanes(
            begin, begin + static_cast<ptrdiff_t>(Lanes(i, threads)));
        ASSERT_EQ(out[i], want(lanes, i - first)) << threads << " " << i;
      }
    }
  }
  const std::vector<size_t> all_{std::begin(kCounts), std::end(kCounts)};
  const std::vector<size_t> full_{32, 64, 1024};
};

TEST_P(Lanewise, ShufflesUpAndDown) {
  for (const size_t delta : {0u, 1u, 5u, 16u, 31u, 32u, 100u}) {
    // Up, nothing is read that is not there.
    Expect(
        all_, [delta](const auto& v) { return simd_shuffle_up(v, delta); },
        [delta](const auto& lanes, size_t lane) {
          return lanes[delta <= lane ? lane - delta : lane];
        });
    Expect(
        full_, [delta](const auto& v) { return simd_shuffle_down(v, delta); },
        [delta](const auto& lanes, size_t lane) {
          return lanes[lane + delta < 32 ? lane + delta : lane];
        });
    Expect(
        full_,
        [delta](const auto& v) { return simd_shuffle_rotate_up(v, delta); },
        [delta](const auto& lanes, size_t lane) {
          return lanes[(lane + 32 * 4 - delta) % 32];
        });
    Expect(
        full_,
        [delta](const auto& v) { return simd_shuffle_rotate_down(v, delta); },
        [delta](const auto& lanes, size_t lane) {
          return lanes[(lane + delta) % 32];
        });
  }
}

TEST_P(Lanewise, ShufflesByLane) {
  Expect(
      all_, [](const auto& v) { return simd_shuffle(v, 0); },
      [](const auto& lanes, size_t) { return lanes[0]; });
  Expect(
      all_, [](const auto& v) { return simd_broadcast_first(v); },
      [](const auto& lanes, size_t) { return lanes[0]; });
}

// Each names the lane that it wants.
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

TEST_P(Lanewise, ShufflesByLanesOfTheirOwn) {
  const std::vector<int32_t> in = Inputs(64);
  const auto out = Threadgroup<int32_t, int32_t>(in, 64, 64, kReversed);
  for (size_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], in[i ^ 31]) << i;
}

TEST_P(Lanewise, Prefixes) {
  const auto sum = [](const auto& lanes, size_t count) {
    int32_t total = 0;
    for (size_t i = 0; i < count; ++i) total += lanes[i];
    return total;
  };
  Expect(
      all_, [](const auto& v) { return simd_prefix_inclusive_sum(v); },
      [&](const auto& lanes, size_t lane) { return sum(lanes, lane + 1); });
  Expect(
      all_, [](const auto& v) { return simd_prefix_exclusive_sum(v); },
      [&](const auto& lanes, size_t lane) { return sum(lanes, lane); });
  const auto product = [](const auto& lanes, size_t count) {
    uint32_t all = 1;
    for (size_t i = 0; i < count; ++i) all *= static_cast<uint32_t>(lanes[i]);
    return static_cast<int32_t>(all);
  };
  Expect(
      all_, [](const auto& v) { return simd_prefix_inclusive_product(v); },
      [&](const auto& lanes, size_t lane) { return product(lanes, lane + 1); });
  Expect(
      all_, [](const auto& v) { return simd_prefix_exclusive_product(v); },
      [&](const auto& lanes, size_t lane) { return product(lanes, lane); });
  Expect(
      all_, [](const auto& v) { return simd_product(v); },
      [&](const auto& lanes, size_t) { return product(lanes, lanes.size()); });
}

TEST_P(Lanewise, BitByBit) {
  const auto fold = [](auto function) {
    return [function](const auto& lanes, size_t) {
      int32_t result = lanes[0];
      for (const int32_t value : lanes) result = function(result, value);
      return result;
    };
  };
  Expect(
      all_, [](const auto& v) { return simd_and(v); },
      fold([](int32_t a, int32_t b) { return a & b; }));
  Expect(
      all_, [](const auto& v) { return simd_or(v); },
      fold([](int32_t a, int32_t b) { return a | b; }));
  Expect(
      all_, [](const auto& v) { return simd_xor(v); },
      [](const auto& lanes, size_t) {
        int32_t odd = 0;
        for (const int32_t value : lanes) odd ^= value;
        return odd;
      });
  Expect(
      all_, [](const auto& v) { return simd_all(v); },
      fold([](int32_t a, int32_t b) { return (a != 0 && b != 0) ? 1 : 0; }));
  Expect(
      all_, [](const auto& v) { return simd_any(v); },
      [](const auto& lanes, size_t) {
        int32_t any = 0;
        for (const int32_t v : lanes) any |= v != 0 ? 1 : 0;
        return any;
      });
}

// Sums of half round at every step, in the order of simd_sum.
TEST_P(Lanewise, SumsOfHalves) {
  std::vector<half> in(32);
  for (size_t i = 0; i < 32; ++i) in[i] = half(static_cast<int>(i * i) + 100);
  const auto out = Threadgroup<half, half>(
      in, 32, 32, Each<half>([](const auto& v) { return simd_sum(v); }));
  std::vector<half> sums = in;
  for (size_t width = 16; width != 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) sums[i] = sums[i] + sums[i + width];
  }
  for (const half h : out) ASSERT_EQ(h.bits, sums[0].bits);
  in[7] = half(-5.5f);
  in[9] = half(NAN);
  const auto least = Threadgroup<half, half>(
      in, 32, 32, Each<half>([](const auto& v) { return simd_min(v); }));
  ASSERT_EQ(static_cast<float>(least[0]), -5.5f);
}

// Of 40 threads the second simdgroup has 8 lanes.
TEST_P(Lanewise, ALaneThatIsNotThere) {
  const auto run = [&](size_t reader, auto function) {
    const auto out = Make(std::vector<int32_t>(40, 77));
    const std::string error =
        Run(MakeKernel("test", Each<int32_t>(function)), [&](Encoder& e) {
          e.setBuffer(Make(Inputs(40)), 0, 0);
          e.setBuffer(out, 0, 1);
          e.dispatchThreadgroups(Size(1, 1, 1), Size(40, 1, 1));
        });
    if (!GetParam().check_kernels) {
      EXPECT_EQ(error, "");
      EXPECT_EQ(Contents<int32_t>(out)[reader], 0);
    }
    return error;
  };
  const auto expect = [&](const std::string& what, const std::string& error) {
    if (!GetParam().check_kernels) return;
    EXPECT_EQ(error, "test: threadgroup (0, 0, 0): " + what +
                         " of simdgroup 1 is not there" + Seed());
  };
  expect("simd_shuffle_down: lane 8",
         run(39, [](const auto& v) { return simd_shuffle_down(v, 1); }));
  expect("simd_shuffle: lane 9",
         run(35, [](const auto& v) { return simd_shuffle(v, 9); }));
  expect("simd_shuffle_rotate_up: lane 31",
         run(32, [](const auto& v) { return simd_shuffle_rotate_up(v, 1); }));
}

INSTANTIATE_TEST_SUITE_P(Modes, Lanewise, testing::ValuesIn(kModes), ModeName);

}  // namespace
}  // namespace switchyard::testing_support
