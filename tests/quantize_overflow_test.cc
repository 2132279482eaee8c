// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Some blocks of finite values need a scale or sum that f16 cannot hold.
// Tests that Quantize counts these blocks and, on request, clamps their
// fields.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/quantize.h"
#include "testing/unwritten.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

constexpr uint16_t kInfinity = 0x7C00, kLargest = 0x7BFF, kSign = 0x8000;
constexpr size_t kBlock = 32;

class QuantizeOverflow : public IsaPoolTest {
 protected:
  template <class Block>
  std::vector<Block> Convert(const std::vector<float>& x, size_t rows,
                             Type type, bool clamp, size_t overflowed) {
    const size_t cols = x.size() / rows;
    std::vector<Block> blocks(x.size() / kBlock);
    Report report = kUnwritten;
    Report expected = kUnwritten;
    expected.overflowed_blocks = overflowed;
    const AnyMatrix to(static_cast<void*>(blocks.data()), type, rows, cols,
                       cols);
    EXPECT_OK(Quantize({ConstAnyMatrix(x.data(), rows, cols)}, {to, &report},
                       {clamp}, executor()));
    EXPECT_EQ(report, expected);
    return blocks;
  }
};

// All 32 values are 2048. Then the scale d is 16.125, but the sum s is 65536,
// which is above the largest f16 number, 65504.
TEST_P(QuantizeOverflow, OfTheSum) {
  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<float> x(kBlock, sign * 2048.0f);
    const uint16_t bit = sign < 0 ? kSign : 0;
    const auto plain = Convert<BlockQ8_1>(x, 1, Type::kQ8_1, false, 1);
    EXPECT_EQ(plain[0].s.bits, kInfinity | bit);
    const auto clamped = Convert<BlockQ8_1>(x, 1, Type::kQ8_1, true, 1);
    EXPECT_EQ(clamped[0].s.bits, kLargest | bit);
    EXPECT_EQ(clamped[0].d.bits, plain[0].d.bits);
    EXPECT_EQ(std::memcmp(clamped[0].qs, plain[0].qs, kBlock), 0);
    // q8_0 stores no sum.
    Convert<BlockQ8_0>(x, 1, Type::kQ8_0, false, 0);
  }
}

TEST_P(QuantizeOverflow, OfTheScale) {
  std::vector<float> x(kBlock);
  for (size_t i = 0; i < kBlock; ++i) {
    x[i] = (static_cast<float>(i) - 15.5f) * 1e6f;
  }
  EXPECT_EQ(Convert<BlockQ8_0>(x, 1, Type::kQ8_0, false, 1)[0].d.bits,
            kInfinity);
  const auto q8_0 = Convert<BlockQ8_0>(x, 1, Type::kQ8_0, true, 1);
  const auto q8_1 = Convert<BlockQ8_1>(x, 1, Type::kQ8_1, true, 1);
  EXPECT_EQ(q8_0[0].d.bits, kLargest);
  EXPECT_EQ(q8_1[0].d.bits, kLargest);
  EXPECT_EQ(std::memcmp(q8_0[0].qs, q8_1[0].qs, kBlock), 0);
  int sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const double wanted = std::round(static_cast<double>(x[i]) / 65504);
    EXPECT_EQ(q8_0[0].qs[i], std::fmin(127, std::fmax(-127, wanted))) << i;
    sum += q8_0[0].qs[i];
  }
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(q8_1[0].s.bits, 0);
  // The sum can overflow as well. Codes stay within 127.
  x.assign(kBlock, -std::numeric_limits<float>::max());
  const auto most = Convert<BlockQ8_1>(x, 1, Type::kQ8_1, true, 1);
  EXPECT_EQ(most[0].d.bits, kLargest);
  EXPECT_EQ(most[0].s.bits, kLargest | kSign);
  for (const int8_t code : most[0].qs) EXPECT_EQ(code, -127);
}

// Tests the last scale that rounds to 65504, and the first that does not.
TEST_P(QuantizeOverflow, BeginsWhereF16Ends) {
  std::vector<float> x(kBlock, 0.0f);
  x[7] = 127 * 65519.0f;
  const auto last = Convert<BlockQ8_0>(x, 1, Type::kQ8_0, true, 0);
  EXPECT_EQ(last[0].d.bits, kLargest);
  EXPECT_EQ(last[0].qs[7], 127);
  x[7] = 127 * 65520.0f;
  const auto first = Convert<BlockQ8_0>(x, 1, Type::kQ8_0, true, 1);
  EXPECT_EQ(first[0].d.bits, kLargest);
  EXPECT_EQ(first[0].qs[7], 127);
}

// NaN and infinity do not count as overflow, and the result shows them.
// Blocks without overflow keep their bits, and so do copied rows.
TEST_P(QuantizeOverflow, OfFiniteValuesOnly) {
  constexpr size_t kRows = 300, kCols = 5 * kBlock;
  std::vector<float> x(kRows * kCols);
  size_t overflowed = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000);
    const size_t block = i / kBlock;
    if (block % 7 == 1) x[i] *= 1e20f;
    if (block % 11 == 2 && i % kBlock == 5) x[i] = std::nanf("");
    if (block % 13 == 3 && i % kBlock == 9) {
      x[i] = std::numeric_limits<float>::infinity();
    }
    if (i % kBlock == 0) {
      overflowed += block % 7 == 1 && block % 11 != 2 && block % 13 != 3;
    }
  }
  const auto plain =
      Convert<BlockQ8_1>(x, kRows, Type::kQ8_1, false, overflowed);
  const auto clamped =
      Convert<BlockQ8_1>(x, kRows, Type::kQ8_1, true, overflowed);
  for (size_t b = 0; b < plain.size(); ++b) {
    const bool is_bad = b % 11 == 2 || b % 13 == 3;
    if (b % 7 == 1 && !is_bad) {
      EXPECT_EQ(plain[b].d.bits, kInfinity) << b;
      EXPECT_EQ(clamped[b].d.bits, kLargest) << b;
      EXPECT_NE(clamped[b].s.bits & ~kSign, kInfinity) << b;
    } else {
      EXPECT_EQ(std::memcmp(&plain[b], &clamped[b], sizeof(plain[b])), 0) << b;
      if (is_bad) {
        EXPECT_GT(plain[b].d.bits & ~kSign, kInfinity) << b;
      }
    }
  }
  std::vector<BlockQ8_1> copied(plain.size());
  Report report = kUnwritten;
  const auto view = [&](const std::vector<BlockQ8_1>& blocks) {
    return AnyMatrix(const_cast<BlockQ8_1*>(blocks.data()), Type::kQ8_1, kRows,
                     kCols, kCols);
  };
  ASSERT_OK(
      Quantize({view(plain)}, {view(copied), &report}, {true}, executor()));
  EXPECT_EQ(report.overflowed_blocks, 0u);
  EXPECT_EQ(std::memcmp(copied.data(), plain.data(),
                        plain.size() * sizeof(BlockQ8_1)),
            0);
}

SWITCHYARD_FOR_EVERY_ISA_AND_POOL(QuantizeOverflow);

}  // namespace
}  // namespace switchyard::testing_support
