// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the functions of math-inl.h and gelu-inl.h on every ISA against a
// double-precision reference, which is computed once per input. The inputs are
// one of every 256 floats, and all floats around each power of two and each
// threshold. SWITCHYARD_MATH_STRIDE=1 in the environment tests all 2^32 inputs
// (40 minutes).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/simd/targets.h"
#include "testing/inputs.h"
#include "tests/float_sweep.h"
#include "tests/target_test.h"

// For each function: its error bounds in ulp with and without FMA, the largest
// input for which it is zero, and the zero that it returns there. For inputs
// below 0, the bound of GeluTanh is larger by 3.5 |y| ulp. (gelu-inl.h defines
// y.)
#ifndef SWITCHYARD_MATH
#define SWITCHYARD_MATH(X)                                   \
  X(kExp, Exp, 1.5, 1.5, -87.33655f, 0.0f)                   \
  X(kSigmoid, Sigmoid, 2.5, 2.5, -87.33655f, 0.0f)           \
  X(kSilu, Silu, 2.5, 2.5, -87.33655f, -0.0f)                \
  X(kSoftplus, Softplus, 2.5, 2.5, -87.33655f, 0.0f)         \
  X(kSqrtSoftplus, SqrtSoftplus, 2.0, 2.0, -87.33655f, 0.0f) \
  X(kTanh, Tanh, 2.5, 2.51, kNaN, 0.0f)                      \
  X(kGelu, Gelu, 6.5, 80.0, -13.146247f, -0.0f)              \
  X(kGeluTanh, GeluTanh, 2.5, 2.5, -10.00104f, -0.0f)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/math_test.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/gelu-inl.h"
#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Writes f(x[i]) into one row per function. `n` is a multiple of every vector
// length.
void EvaluateMath(const float* x, size_t n, float* const* to) {
  simd::RecordTarget(HWY_TARGET);
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    size_t f = 0;
#define SWITCHYARD_EVALUATE(name, Function, ...) \
  hn::StoreU(simd::HWY_NAMESPACE::Function(d, v), d, to[f++] + i);
    SWITCHYARD_MATH(SWITCHYARD_EVALUATE)
#undef SWITCHYARD_EVALUATE
  }
}

}  // namespace switchyard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {

HWY_EXPORT(EvaluateMath);

namespace testing_support {
namespace {

#define SWITCHYARD_ENUMERATOR(name, ...) name,
enum Function { SWITCHYARD_MATH(SWITCHYARD_ENUMERATOR) kFunctions };
struct Promise {
  const char* name;
  double ulps, ulps_without_fma;
  float zero_up_to, zero;
};
#define SWITCHYARD_PROMISE(name, Function, ...) {#Function, __VA_ARGS__},
constexpr Promise kPromises[kFunctions] = {SWITCHYARD_MATH(SWITCHYARD_PROMISE)};

using Math = std::array<std::vector<float>, kFunctions>;

Math Evaluate(const std::vector<float>& x) {
  Math m;
  float* rows[kFunctions];
  for (size_t f = 0; f < kFunctions; ++f) {
    m[f].resize(x.size());
    rows[f] = m[f].data();
  }
  SWITCHYARD_DISPATCH(EvaluateMath)(x.data(), x.size(), rows);
  return m;
}

std::vector<float> Boundaries() {
  std::vector<float> x;
  std::vector<uint32_t> centers = {
      0xC2AEAC50,  0x42B17217,   0xC2B17217,  Bits(87.0f),     Bits(87.33655f),
      Bits(9.02f), Bits(-9.02f), Bits(9.99f), Bits(13.146247f)};
  for (const Promise& promise : kPromises) {
    centers.push_back(Bits(promise.zero_up_to));
  }
  for (uint32_t exponent = 0; exponent <= 256; ++exponent) {
    centers.push_back(exponent << 23);
    centers.push_back((exponent << 23) | 0x80000000u);
  }
  for (const uint32_t center : centers) {
    for (uint32_t i = 0; i < 64; ++i) x.push_back(FromBits(center + i - 32));
  }
  return x;
}

// Returns |y|. The function computes exp(y), where y has the sign of -x.
double GeluTanhExponent(float x) {
  const double t = std::fabs(static_cast<double>(x));
  return 2 * std::sqrt(2 / std::acos(-1.0)) * (t + 0.044715 * t * t * t);
}

// For each function, its result for x, exact to 1e-14, and 1 / ulp, where ulp
// is the distance of the result to the next float.
struct Exact {
  double value[kFunctions];
  double ulps_per_unit[kFunctions];

  explicit Exact(float x) {
    const double e = std::exp(-std::fabs(static_cast<double>(x)));
    value[kExp] = x < 0 ? e : 1 / e;
    value[kSigmoid] = (x < 0 ? e : 1) / (1 + e);
    value[kSilu] = static_cast<double>(x) * value[kSigmoid];
    value[kSoftplus] = std::max(static_cast<double>(x), 0.0) + std::log1p(e);
    value[kSqrtSoftplus] = std::sqrt(value[kSoftplus]);
    const double d = static_cast<double>(x);
    value[kTanh] = std::tanh(d);
    value[kGelu] = std::isinf(x) ? d : d * std::erfc(-d / std::sqrt(2.0)) / 2;
    value[kGeluTanh] =
        std::isinf(x)
            ? d
            : d / (1 + std::exp(std::copysign(GeluTanhExponent(x), -d)));
    for (size_t f = 0; f < kFunctions; ++f) {
      const uint32_t rounded = Bits(static_cast<float>(value[f]));
      const uint32_t exponent = std::max(1u, rounded >> 23 & 255);
      // 1 / ulp, where ulp = smallest normal * 2^-23 * 2^(exponent - 1).
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
      : isas_(std::move(isas)), worst_(isas_.size() * kFunctions) {
    for (const Isa& isa : RunnableIsas()) fma_.push_back(isa.fma);
  }

  // Tests a block of inputs. Its size is a multiple of every vector length.
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
            // If the bits equal those of the first ISA with FMA, the error is
            // the same and needs no check.
            if (CanonicalBits(y) != CanonicalBits(*first_fma)) {
              wrong = "other bits than the first ISA with FMA";
            }
          } else {
            if (IsFma(k)) first_fma = &y;
            wrong = Check(k, f, x[i], y, exact);
          }
          // Does not use ASSERT_, because an ASSERT_ that holds takes longer
          // than the rest of the check.
          if (wrong != nullptr) {
            FAIL() << isas_[k] << ": " << kPromises[f].name << "(" << x[i]
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
        // All ISAs with FMA have the same bits.
        const Worst& w = worst_[(IsFma(k) ? 0 : k) * kFunctions + f];
        std::printf("  %s %.4f ulp at %a", kPromises[f].name, w.ulps, w.x);
      }
      std::printf("\n");
    }
  }

 private:
  // The best ISAs come first, so those with FMA precede those without.
  bool IsFma(size_t k) const { return fma_[k]; }

  // Returns a description of the error in y, or null.
  const char* Check(size_t k, size_t f, float x, float y, const Exact& exact) {
    if (std::isnan(x)) return std::isnan(y) ? nullptr : "not NaN";
    const Promise& promise = kPromises[f];
    if (x <= promise.zero_up_to) {
      return Bits(y) == Bits(promise.zero) ? nullptr
                                           : "not the zero of the definition";
    }
    // Results may be denormal only for inputs close to 0.
    if (std::fpclassify(y) == FP_SUBNORMAL && !(std::fabs(x) < 0x1p-124f)) {
      return "denormal";
    }
    const double ulps = exact.Ulps(f, y);
    double bound = IsFma(k) ? promise.ulps : promise.ulps_without_fma;
    if (f == kGeluTanh && x < 0) bound += 3.5 * GeluTanhExponent(x);
    if (!(ulps <= bound)) return "too far from exact";
    if (std::signbit(y) != std::signbit(exact.value[f])) return "sign";
    if (f == kTanh && std::fabs(y) > 1.0f) return "above 1";
    Worst& worst = worst_[k * kFunctions + f];
    if (ulps > worst.ulps) worst = {ulps, x};
    return nullptr;
  }

  const std::vector<std::string> isas_;
  std::vector<char> fma_;
  std::vector<Worst> worst_;
};

TEST(MathTest, WithinTheStatedUlpsAndTheSameBitsWithFma) {
  const ScopedIsa restores_the_cap(RunnableIsaNames().front());
  MathSweep sweep(RunnableIsaNames());
  SweepFloats(Boundaries(), [&](const std::vector<float>& x) {
    sweep.Block(x);
    return !HasFatalFailure();
  });
  sweep.Print();
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard

#endif  // HWY_ONCE
