// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// exp, sigmoid and SiLU of math-inl.h by themselves, per ISA: one input in 4096
// over all bit patterns, and every float around each power of two and each
// threshold.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/simd/targets.h"
#include "tests/inputs.h"
#include "tests/reference.h"
#include "tests/target_test.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/math_test.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// f(x[i]) into three rows; n is a multiple of every vector length.
void EvaluateMath(const float* x, size_t n, float* exp, float* sigmoid,
                  float* silu) {
  simd::RecordTarget(HWY_TARGET);
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    hn::StoreU(simd::HWY_NAMESPACE::Exp(d, v), d, exp + i);
    hn::StoreU(simd::HWY_NAMESPACE::Sigmoid(d, v), d, sigmoid + i);
    hn::StoreU(simd::HWY_NAMESPACE::Silu(d, v), d, silu + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {

HWY_EXPORT(EvaluateMath);

namespace testing_support {
namespace {

struct Math {
  std::vector<float> exp, sigmoid, silu;
};

Math Evaluate(const std::vector<float>& x) {
  Math m;
  m.exp.resize(x.size());
  m.sigmoid.resize(x.size());
  m.silu.resize(x.size());
  SWITCHYARD_DISPATCH(EvaluateMath)
  (x.data(), x.size(), m.exp.data(), m.sigmoid.data(), m.silu.data());
  return m;
}

float FromBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

const std::vector<float>& Inputs() {
  static const std::vector<float> inputs = [] {
    std::vector<float> x;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4096 - 1) {
      x.push_back(FromBits(static_cast<uint32_t>(bits)));
    }
    std::vector<uint32_t> centers = {0xC2AEAC50, 0x42B17217, 0xC2B17217,
                                     Bits(87.0f), Bits(87.33655f)};
    for (uint32_t exponent = 0; exponent <= 256; ++exponent) {
      centers.push_back(exponent << 23);
      centers.push_back((exponent << 23) | 0x80000000u);
    }
    for (const uint32_t center : centers) {
      for (uint32_t i = 0; i < 64; ++i) x.push_back(FromBits(center + i - 32));
    }
    while (x.size() % 64 != 0) x.push_back(0.0f);
    return x;
  }();
  return inputs;
}

class MathTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(MathTest);

TEST_P(MathTest, WithinTheStatedUlps) {
  const std::vector<float>& x = Inputs();
  const Math m = Evaluate(x);
  const double exp_bound = 1.5;
  const double bound = 2.5;
  double worst_exp = 0, worst_sigmoid = 0, worst_silu = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (exact < 0x1p-126) {
      ASSERT_EQ(Bits(m.exp[i]), 0u) << x[i];
    } else {
      const double ulps = UlpError(m.exp[i], exact);
      ASSERT_LE(ulps, exp_bound) << "exp(" << x[i] << ") = " << m.exp[i];
      worst_exp = std::max(worst_exp, ulps);
    }
    // Zero exactly where the definition flushes, normal everywhere else.
    ASSERT_NE(std::fpclassify(m.exp[i]), FP_SUBNORMAL) << x[i];
    ASSERT_NE(std::fpclassify(m.sigmoid[i]), FP_SUBNORMAL) << x[i];
    if (x[i] <= -87.33655f) {
      ASSERT_EQ(Bits(m.sigmoid[i]), 0u) << x[i];
      ASSERT_EQ(Bits(m.silu[i]), 0x80000000u) << x[i];
      continue;
    }
    const double sigmoid =
        UlpError(m.sigmoid[i], reference::Sigmoid(static_cast<double>(x[i])));
    ASSERT_LE(sigmoid, bound) << "sigmoid(" << x[i] << ") = " << m.sigmoid[i];
    worst_sigmoid = std::max(worst_sigmoid, sigmoid);
    const double silu =
        UlpError(m.silu[i], reference::Silu(static_cast<double>(x[i])));
    ASSERT_LE(silu, bound) << "silu(" << x[i] << ") = " << m.silu[i];
    worst_silu = std::max(worst_silu, silu);
  }
  RecordProperty("worst_exp_ulp", std::to_string(worst_exp));
  RecordProperty("worst_sigmoid_ulp", std::to_string(worst_sigmoid));
  RecordProperty("worst_silu_ulp", std::to_string(worst_silu));
}

TEST(MathAcrossIsas, FmaIsasAgree) {
  std::vector<uint32_t> first[3];
  for (const std::string& isa : FmaIsaNames()) {
    const ScopedIsa scoped(isa);
    const Math m = Evaluate(Inputs());
    ASSERT_EQ(LastIsa()->name, isa);
    const std::vector<uint32_t> bits[3] = {
        CanonicalBits(m.exp), CanonicalBits(m.sigmoid), CanonicalBits(m.silu)};
    for (int f = 0; f < 3; ++f) {
      if (first[f].empty()) first[f] = bits[f];
      EXPECT_TRUE(bits[f] == first[f]) << isa << " function " << f;
    }
  }
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard

#endif  // HWY_ONCE
