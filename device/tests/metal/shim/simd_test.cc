// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares simd and quad functions with plain loops. The groups are complete,
// or some lanes are missing.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "device/tests/metal/shim/shim_module.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {
namespace {

// Returns the expected result of each lane. In a group of `width` lanes, the
// first `count` lanes call the function, and `in` has their values.
template <class T>
std::vector<T> Expected(const std::string& function, const std::vector<T>& in,
                        const std::vector<T>& filling, int number, int width,
                        int count) {
  const auto start = [&](const char* what) {
    return function.compare(0, std::string(what).size(), what) == 0;
  };
  std::vector<T> out(in.size());
  // Combines the upper half of the lanes with the lower half until one lane
  // is left. Missing lanes have the neutral value.
  const auto halves = [&](T nothing, auto combine) {
    std::vector<T> all(static_cast<size_t>(width), nothing);
    std::copy(in.begin(), in.end(), all.begin());
    for (int half = width / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        const auto at = static_cast<size_t>(i);
        all[at] = combine(all[at], all[at + static_cast<size_t>(half)]);
      }
    }
    std::fill(out.begin(), out.end(), all[0]);
  };
  if (function == "sum") {
    halves(T(0), [](T a, T b) { return a + b; });
  } else if (function == "product") {
    halves(T(1), [](T a, T b) { return a * b; });
  } else if (function == "max" || function == "min") {
    std::vector<T> numbers;
    std::copy_if(in.begin(), in.end(), std::back_inserter(numbers),
                 [](T x) { return x == x; });
    std::fill(out.begin(), out.end(),
              numbers.empty() ? in[0]
              : function == "max"
                  ? *std::max_element(numbers.begin(), numbers.end())
                  : *std::min_element(numbers.begin(), numbers.end()));
  } else if (start("prefix_")) {
    const bool sum = function.find("sum") != std::string::npos;
    T all = sum ? 0 : 1;
    for (size_t i = 0; i < in.size(); ++i) {
      const T next = sum ? all + in[i] : all * in[i];
      out[i] = start("prefix_inclusive") ? next : all;
      all = next;
    }
  } else {
    const bool fills = start("shuffle_and_fill");
    const int block = function.find("_8") != std::string::npos ? 8 : width;
    for (int i = 0; i < count; ++i) {
      int from = i;
      bool filled = false;
      if (function == "broadcast_first") from = 0;
      if (function == "broadcast" || function == "shuffle") from = number;
      if (function == "shuffle_xor") from = i ^ number;
      if (function == "shuffle_up") from = i >= number ? i - number : i;
      if (function == "shuffle_down") {
        from = i + number < width ? i + number : i;
      }
      if (function == "shuffle_rotate_up") from = (i + width - number) % width;
      if (function == "shuffle_rotate_down") from = (i + number) % width;
      if (fills) {
        const bool up = function.find("_up") != std::string::npos;
        const int at = i % block + (up ? -number : number);
        filled = at < 0 || at >= block;
        from = i - i % block + (at + block) % block;
      }
      const auto& source = filled ? filling : in;
      out[static_cast<size_t>(i)] =
          from < count ? source[static_cast<size_t>(from)] : T();
    }
  }
  return out;
}

const char* const kPlain[] = {"sum",
                              "product",
                              "max",
                              "min",
                              "prefix_inclusive_sum",
                              "prefix_exclusive_sum",
                              "prefix_inclusive_product",
                              "prefix_exclusive_product",
                              "broadcast_first"};
const char* const kNumbered[] = {"broadcast",
                                 "shuffle",
                                 "shuffle_xor",
                                 "shuffle_up",
                                 "shuffle_down",
                                 "shuffle_rotate_up",
                                 "shuffle_rotate_down",
                                 "shuffle_and_fill_up",
                                 "shuffle_and_fill_down"};

template <class T>
using RunFunction = bool(const char*, const T*, T*, const T*, uint16_t);

// Runs one function in all lanes, and compares the results in each simdgroup
// or quad.
template <class T>
void Check(RunFunction<T>* run, const std::string& prefix,
           const std::string& function, int number, int lanes,
           const std::vector<T>& in, const std::vector<T>& filling) {
  std::vector<T> out(in.size());
  ShimModule::RunLanes(static_cast<uint32_t>(lanes), [&](uint32_t lane) {
    EXPECT_TRUE(run((prefix + function).c_str(), &in[lane], &out[lane],
                    &filling[lane], static_cast<uint16_t>(number)))
        << prefix << function;
  });
  const int width = prefix == "quad_" ? 4 : 32;
  for (int first = 0; first < lanes; first += width) {
    const int count = std::min(width, lanes - first);
    const auto part = [&](const std::vector<T>& all) {
      return std::vector<T>(all.begin() + first, all.begin() + first + count);
    };
    const std::vector<T> expected =
        Expected(function, part(in), part(filling), number, width, count);
    const std::vector<T> got = part(out);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(static_cast<double>(expected[i]))) {
        EXPECT_TRUE(std::isnan(static_cast<double>(got[i])));
      } else {
        EXPECT_EQ(got[i], expected[i])
            << prefix << function << "(" << number << "), lane " << i
            << " of those from " << first << ", " << lanes << " lanes";
      }
    }
  }
}

template <class T>
void CheckAll(const ShimModule& module, const char* name,
              const std::function<T(std::mt19937&)>& draw) {
  RunFunction<T>* const run = module.Function<RunFunction<T>>(name);
  ASSERT_NE(run, nullptr);
  std::mt19937 random(3);
  for (const int lanes : {32, 19, 1}) {
    std::vector<T> in, filling;
    for (int i = 0; i < lanes; ++i) {
      in.push_back(draw(random));
      filling.push_back(draw(random));
    }
    for (const std::string prefix : {"simd_", "quad_"}) {
      for (const char* function : kPlain) {
        Check(run, prefix, function, 0, lanes, in, filling);
      }
      for (const char* function : kNumbered) {
        for (const int number : {0, 1, 3, 17}) {
          if (prefix == "quad_" && number > 3) continue;
          Check(run, prefix, function, number, lanes, in, filling);
        }
      }
    }
    for (const int number : {0, 1, 5}) {
      Check(run, "simd_", "shuffle_and_fill_up_8", number, lanes, in, filling);
      Check(run, "simd_", "shuffle_and_fill_down_8", number, lanes, in,
            filling);
    }
  }
}

TEST(ShimSimd, OfFloats) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", false);
  CheckAll<float>(module, "run_float", [](std::mt19937& random) {
    return random() % 7 == 0
               ? NAN
               : static_cast<float>(random() % 2000) / 512.0f - 1.0f;
  });
}

TEST(ShimSimd, OfIntegers) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", false);
  CheckAll<int>(module, "run_int", [](std::mt19937& random) {
    return static_cast<int>(random() % 3) - 1;
  });
}

TEST(ShimSimd, OfVectors) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", false);
  struct alignas(8) Pair {
    float x, y;
  };
  const auto run = module.Function<RunFunction<Pair>>("run_float2");
  ASSERT_NE(run, nullptr);
  std::vector<Pair> in(32), sum(32), up(32);
  for (int i = 0; i < 32; ++i) {
    in[static_cast<size_t>(i)] = {static_cast<float>(i),
                                  static_cast<float>(-2 * i)};
  }
  ShimModule::RunLanes(32, [&](uint32_t lane) {
    run("simd_sum", &in[lane], &sum[lane], &in[0], 0);
    run("simd_shuffle_up", &in[lane], &up[lane], &in[0], 2);
  });
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(sum[i].x, 496);
    EXPECT_EQ(sum[i].y, -992);
    EXPECT_EQ(up[i].y, in[i < 2 ? i : i - 2].y);
  }
}

TEST(ShimSimd, OfBits) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", false);
  const auto run = module.Function<RunFunction<uint32_t>>("run_uint");
  ASSERT_NE(run, nullptr);
  std::mt19937 random(4);
  for (const uint32_t lanes : {32u, 7u}) {
    std::vector<uint32_t> in;
    for (uint32_t i = 0; i < lanes; ++i) {
      in.push_back(static_cast<uint32_t>(random() | 0x80u));
    }
    for (const uint32_t width : {32u, 4u}) {
      for (const std::string name : {"and", "or", "xor"}) {
        std::vector<uint32_t> out(lanes);
        ShimModule::RunLanes(lanes, [&](uint32_t lane) {
          EXPECT_TRUE(run(((width == 4 ? "quad_" : "simd_") + name).c_str(),
                          &in[lane], &out[lane], &in[0], 0));
        });
        for (uint32_t lane = 0; lane < lanes; ++lane) {
          const uint32_t first = lane / width * width;
          uint32_t expected = in[first];
          for (uint32_t i = first + 1; i < std::min(first + width, lanes);
               ++i) {
            if (name == "and") expected &= in[i];
            if (name == "or") expected |= in[i];
            if (name == "xor") expected ^= in[i];
          }
          EXPECT_EQ(out[lane], expected) << name << width;
        }
      }
    }
  }
}

struct Votes {
  uint64_t ballot, active;
  uint32_t quad_ballot, quad_active;
  bool all, any, first, quad_all, quad_any, quad_first;
};

TEST(ShimSimd, Votes) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", false);
  const auto vote = module.Function<void(bool, Votes*)>("vote");
  ASSERT_NE(vote, nullptr);
  for (const uint32_t lanes : {32u, 14u}) {
    const uint32_t there =
        lanes == 32 ? 0xffffffffu : (uint32_t{1} << lanes) - 1;
    for (const uint32_t values : {0u, 0xffffffffu, 0x00ff0e10u}) {
      std::vector<Votes> out(lanes);
      ShimModule::RunLanes(lanes, [&](uint32_t lane) {
        vote((values >> lane & 1) != 0, &out[lane]);
      });
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        const uint32_t shift = lane / 4 * 4;
        const uint32_t quad = there >> shift & 15;
        const uint32_t quad_values = values >> shift & quad;
        EXPECT_EQ(out[lane].ballot, values & there);
        EXPECT_EQ(out[lane].active, there);
        EXPECT_EQ(out[lane].quad_ballot, quad_values);
        EXPECT_EQ(out[lane].quad_active, quad);
        EXPECT_EQ(out[lane].all, (values & there) == there);
        EXPECT_EQ(out[lane].any, (values & there) != 0);
        EXPECT_EQ(out[lane].first, lane == 0);
        EXPECT_EQ(out[lane].quad_all, quad_values == quad);
        EXPECT_EQ(out[lane].quad_any, quad_values != 0);
        EXPECT_EQ(out[lane].quad_first, lane % 4 == 0);
      }
    }
  }
}

// Small integers are exact in every format, and so are their sums.
template <class T>
void CheckMatrix(const ShimModule& module, const char* name,
                 const std::function<T(int)>& make) {
  const auto multiply = module.Function<void(const T*, const T*, const float*,
                                             float*, uint64_t, bool)>(name);
  ASSERT_NE(multiply, nullptr);
  constexpr int kStride = 13;
  std::vector<T> a(kStride * 10), b(64);
  std::vector<float> c(64);
  std::vector<int> a_values, b_values;
  std::mt19937 random(5);
  for (T& each : a) {
    a_values.push_back(static_cast<int>(random() % 9) - 4);
    each = make(a_values.back());
  }
  for (T& each : b) {
    b_values.push_back(static_cast<int>(random() % 9) - 4);
    each = make(b_values.back());
  }
  for (float& each : c) each = static_cast<float>(random() % 100);
  for (const bool transpose : {false, true}) {
    std::vector<float> d(64);
    ShimModule::RunLanes(32, [&](uint32_t) {
      multiply(a.data(), b.data(), c.data(), d.data(), kStride, transpose);
    });
    for (size_t row = 0; row < 8; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        float expected = c[8 * row + column];
        for (size_t k = 0; k < 8; ++k) {
          expected += static_cast<float>(a_values[(row + 1) * kStride + k + 2] *
                                         b_values[8 * column + k]);
        }
        EXPECT_EQ(d[transpose ? 8 * column + row : 8 * row + column],
                  2 * expected)
            << name << " " << row << " " << column;
      }
    }
  }
}

TEST(ShimSimd, Matrices) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", false);
  CheckMatrix<float>(module, "multiply_float",
                     [](int x) { return static_cast<float>(x); });
  // Numbers up to 4 need at most 3 bits, so they are exact in half and
  // bfloat.
  CheckMatrix<uint16_t>(module, "multiply_half", [](int x) {
    const uint16_t bits[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    return static_cast<uint16_t>(bits[std::abs(x)] | (x < 0 ? 0x8000 : 0));
  });
  CheckMatrix<uint16_t>(module, "multiply_bfloat", [](int x) {
    const uint16_t bits[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080};
    return static_cast<uint16_t>(bits[std::abs(x)] | (x < 0 ? 0x8000 : 0));
  });
}

TEST(ShimSimd, ThreadElements) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", false);
  const auto elements = module.Function<void(const float*, float*)>("elements");
  ASSERT_NE(elements, nullptr);
  std::vector<float> in(64), out(64);
  for (size_t i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  ShimModule::RunLanes(
      32, [&](uint32_t lane) { elements(in.data(), &out[2 * lane]); });
  // Row 0 lies in lanes 0, 1, 8 and 9, and row 4 begins in lane 16.
  const uint32_t lanes[] = {0, 1, 8, 9, 16, 31};
  const float first[] = {0, 2, 4, 6, 32, 62};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(out[2 * lanes[i]], first[i]) << lanes[i];
    EXPECT_EQ(out[2 * lanes[i] + 1], first[i] + 1) << lanes[i];
  }
}

TEST(ShimSimd, CheckedLanesThatAreNotThere) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("simd", true);
  const auto run = module.Function<RunFunction<float>>("run_float");
  const auto multiply =
      module.Function<void(const float*, const float*, const float*, float*,
                           uint64_t, bool)>("multiply_float");
  ASSERT_TRUE(run != nullptr && multiply != nullptr);
  ShimModule::TakeFailures();
  std::vector<float> in(32, 1.0f), out(32), memory(200);
  ShimModule::RunLanes(20, [&](uint32_t lane) {
    run("simd_shuffle_xor", &in[lane], &out[lane], &in[0], 16);
  });
  // Of the 20 lanes, lanes 4 to 15 read from lanes 20 and above.
  std::vector<std::string> failures = ShimModule::TakeFailures();
  EXPECT_EQ(failures.size(), 12u);
  for (const std::string& failure : failures) {
    EXPECT_EQ(failure,
              "simd_shuffle_xor reads from a lane that does not exist");
  }
  ShimModule::RunLanes(31, [&](uint32_t) {
    multiply(memory.data(), memory.data(), memory.data(), memory.data(), 8,
             false);
  });
  failures = ShimModule::TakeFailures();
  EXPECT_EQ(failures.size(), 2 * 31u);
  EXPECT_EQ(failures[0],
            "simdgroup_multiply_accumulate: a lane does not exist");
  ShimModule::TakeAccesses();
}

}  // namespace
}  // namespace switchyard::testing_support
