// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// exp, sigmoid and SiLU of math-inl.h by themselves, on every ISA, against a
// double-precision reference that is computed once per input: one of 64 bit
// patterns, and every float around each power of two and each threshold.
// SWITCHYARD_MATH_STRIDE=1 in the environment takes all 2^32 (15 minutes).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/simd/targets.h"
#include "testing/inputs.h"
#include "tests/target_test.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/math_test.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::HWY_NAMESPACE {

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

}  // namespace switchyard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {

HWY_EXPORT(EvaluateMath);

namespace testing_support {
namespace {

enum Function { kExp, kSigmoid, kSilu, kFunctions };
constexpr const char* kNames[kFunctions] = {"exp", "sigmoid", "silu"};
constexpr double kBounds[kFunctions] = {1.5, 2.5, 2.5};

using Math = std::array<std::vector<float>, kFunctions>;

Math Evaluate(const std::vector<float>& x) {
  Math m;
  for (std::vector<float>& row : m) row.resize(x.size());
  SWITCHYARD_DISPATCH(EvaluateMath)
  (x.data(), x.size(), m[kExp].data(), m[kSigmoid].data(), m[kSilu].data());
  return m;
}

// 1: every bit pattern.
uint64_t Stride() {
#ifdef NDEBUG
  constexpr uint64_t kDefault = 64;
#else
  constexpr uint64_t kDefault = 1024;
#endif
  const char* const text = std::getenv("SWITCHYARD_MATH_STRIDE");
  const uint64_t stride =
      text == nullptr ? kDefault : std::strtoull(text, nullptr, 10);
  return stride == 0 ? kDefault : stride;
}

std::vector<float> Boundaries() {
  std::vector<float> x;
  std::vector<uint32_t> centers = {0xC2AEAC50, 0x42B17217, 0xC2B17217,
                                   Bits(87.0f), Bits(87.33655f)};
  for (uint32_t exponent = 0; exponent <= 256; ++exponent) {
    centers.push_back(exponent << 23);
    centers.push_back((exponent << 23) | 0x80000000u);
  }
  for (const uint32_t center : centers) {
    for (uint32_t i = 0; i < 64; ++i) x.push_back(FromBits(center + i - 32));
  }
  return x;
}

// The exact results (to 1e-15, of one exp for speed), their spacing as floats,
// and where the definition gives zero.
struct Exact {
  double value[kFunctions];
  double ulps_per_unit[kFunctions];
  bool zero[kFunctions];

  explicit Exact(float x) {
    const double e = std::exp(-std::fabs(static_cast<double>(x)));
    value[kExp] = x < 0 ? e : 1 / e;
    value[kSigmoid] = (x < 0 ? e : 1) / (1 + e);
    value[kSilu] = static_cast<double>(x) * value[kSigmoid];
    zero[kExp] = value[kExp] < 0x1p-126;
    zero[kSigmoid] = zero[kSilu] = x <= -87.33655f;
    for (size_t f = 0; f < kFunctions; ++f) {
      const uint32_t rounded = Bits(static_cast<float>(value[f]));
      const uint32_t exponent = std::max(1u, rounded >> 23 & 255);
      // 1 / (smallest normal * 2^-23 * 2^(exponent - 1))
      const uint64_t bits = uint64_t{1023 + 150 - exponent} << 52;
      std::memcpy(&ulps_per_unit[f], &bits, sizeof(bits));
    }
  }
  double Ulps(size_t f, float y) const {
    if (std::isinf(y) || std::isinf(static_cast<float>(value[f]))) {
      return UlpError(y, value[f]);
    }
    return std::fabs(static_cast<double>(y) - value[f]) * ulps_per_unit[f];
  }
};

struct Worst {
  double ulps = 0.0;
  float x = 0.0f;
};

class MathSweep {
 public:
  explicit MathSweep(std::vector<std::string> isas)
      : isas_(std::move(isas)), worst_(isas_.size() * kFunctions) {}

  // A multiple of every vector length of inputs.
  void Block(const std::vector<float>& x) {
    std::vector<Math> results;
    for (const std::string& isa : isas_) {
      ASSERT_OK(CapIsa(isa.c_str()));
      results.push_back(Evaluate(x));
      ASSERT_EQ(LastIsa()->name, isa);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const Exact exact(x[i]);
      for (size_t f = 0; f < kFunctions; ++f) {
        const float* first_fma = nullptr;
        for (size_t k = 0; k < isas_.size(); ++k) {
          const float& y = results[k][f][i];
          const char* wrong = nullptr;
          if (IsFma(k) && first_fma != nullptr) {
            // As far from exact as the first one.
            if (CanonicalBits(y) != CanonicalBits(*first_fma)) {
              wrong = "other bits than the first ISA with FMA";
            }
          } else {
            if (IsFma(k)) first_fma = &y;
            wrong = Check(k, f, x[i], y, exact);
          }
          // Not ASSERT_: even when it holds, that takes longer than the rest.
          if (wrong != nullptr) {
            FAIL() << isas_[k] << ": " << kNames[f] << "(" << x[i]
                   << ") = " << y << ": " << wrong;
          }
        }
      }
    }
  }

  void Print() const {
    for (size_t k = 0; k < isas_.size(); ++k) {
      std::printf("%-8s", isas_[k].c_str());
      for (size_t f = 0; f < kFunctions; ++f) {
        // FMA ISAs have the first one's bits.
        const Worst& w = worst_[(IsFma(k) ? 0 : k) * kFunctions + f];
        std::printf("  %s %.4f ulp at %a", kNames[f], w.ulps, w.x);
      }
      std::printf("\n");
    }
  }

 private:
  // Best first: those with FMA come before those without.
  bool IsFma(size_t k) const { return RunnableIsas().data[k].fma; }

  // What is wrong with y, if anything.
  const char* Check(size_t k, size_t f, float x, float y, const Exact& exact) {
    if (std::isnan(x)) return std::isnan(y) ? nullptr : "not NaN";
    if (exact.zero[f]) {
      const uint32_t zero = f == kSilu ? 0x80000000u : 0u;
      return Bits(y) == zero ? nullptr : "not the zero of the definition";
    }
    if (f != kSilu && std::fpclassify(y) == FP_SUBNORMAL) return "denormal";
    const double ulps = exact.Ulps(f, y);
    if (!(ulps <= kBounds[f])) return "too far from exact";
    Worst& worst = worst_[k * kFunctions + f];
    if (ulps > worst.ulps) worst = {ulps, x};
    return nullptr;
  }

  const std::vector<std::string> isas_;
  std::vector<Worst> worst_;
};

TEST(MathTest, WithinTheStatedUlpsAndTheSameBitsWithFma) {
  const ScopedIsa restores_the_cap(RunnableIsaNames().front());
  MathSweep sweep(RunnableIsaNames());
  std::vector<float> x = Boundaries();
  constexpr size_t kBlock = 1 << 16;
  const uint64_t stride = Stride();
  uint64_t offset = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += stride) {
    // Another place in each run of `stride`, so that low bits vary.
    x.push_back(FromBits(static_cast<uint32_t>(bits + offset)));
    offset = (offset * 5 + 3) % stride;
    if (x.size() < kBlock) continue;
    sweep.Block(x);
    if (HasFatalFailure()) return;
    x.clear();
  }
  while (x.size() % 64 != 0) x.push_back(0.0f);
  sweep.Block(x);
  sweep.Print();
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard

#endif  // HWY_ONCE
