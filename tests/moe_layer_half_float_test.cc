// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "layer_weights.h"

namespace moe_layer {
namespace {

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// All 2^16 values, starting on an odd byte.
std::vector<float> ConvertAll(void (*convert)(const uint8_t*, size_t, float*)) {
  std::vector<uint8_t> source(1 + 2 * 65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    source[1 + 2 * i] = static_cast<uint8_t>(i & 0xFF);
    source[2 + 2 * i] = static_cast<uint8_t>(i >> 8);
  }
  std::vector<float> out(65536);
  convert(source.data() + 1, out.size(), out.data());
  return out;
}

TEST(MoeLayerHalfFloat, EveryF16IsExact) {
  const std::vector<float> out =
      ConvertAll([](auto... args) { ConvertF16(args...); });
  for (uint32_t i = 0; i < 65536; ++i) {
    const int exponent = static_cast<int>((i >> 10) & 31);
    const auto mantissa = static_cast<double>(i & 1023);
    const float sign = (i >> 15) != 0 ? -1.0f : 1.0f;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(out[i])) << i;
      EXPECT_EQ(Bits(out[i]),
                (i & 0x8000u) << 16 | 0x7F800000u | (i & 1023u) << 13)
          << i;
      continue;
    }
    const double magnitude =
        exponent == 31  ? std::numeric_limits<double>::infinity()
        : exponent == 0 ? std::ldexp(mantissa, -24)
                        : std::ldexp(1024 + mantissa, exponent - 25);
    EXPECT_EQ(Bits(out[i]), Bits(sign * static_cast<float>(magnitude))) << i;
  }
}

TEST(MoeLayerHalfFloat, EveryBf16IsTheUpperHalfOfAFloat) {
  const std::vector<float> out =
      ConvertAll([](auto... args) { ConvertBf16(args...); });
  for (uint32_t i = 0; i < 65536; ++i) EXPECT_EQ(Bits(out[i]), i << 16) << i;
}

TEST(MoeLayerHalfFloat, EveryLengthStopsAtItsEnd) {
  const std::vector<uint8_t> source(2 * 40, 0x3C);
  for (size_t count = 0; count <= 40; ++count) {
    std::vector<float> out(41, -7.0f);
    ConvertF16(source.data(), count, out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i], i < count ? 0x1.0fp0f : -7.0f);
    }
  }
}

}  // namespace
}  // namespace moe_layer
