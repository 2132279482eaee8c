// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the accuracy of functions that are built from several functions of
// math-inl.h, against the bounds in activate.h and route.h. (math_test tests
// the single functions.) The tests call the public API on every ISA. The
// inputs are the floats around each threshold, and one of every 2,048 floats.
// (This is 8 times math_test's stride, which SWITCHYARD_MATH_STRIDE sets.)

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "src/calls/names.h"
#include "switchyard/activate.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"
#include "testing/route_scores.h"
#include "tests/activate_case.h"
#include "tests/float_sweep.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

// The expected value and the allowed error in ulp. An error of 0 means that the
// headers state no accuracy for this input.
struct Promised {
  double value = 0.0, ulps = 0.0;
  bool is_zero = false;  // exactly 0, with the sign of `value`
};

// Calls run(x) with vectors of floats on every ISA, and compares element i of
// the result with promised(x, i).
template <class Run, class Promise>
void Sweep(const std::string& name, const std::vector<float>& thresholds,
           const Run& run, const Promise& promised) {
  std::vector<float> around;
  for (const float threshold : thresholds) {
    for (uint32_t i = 0; i < 64; ++i) {
      around.push_back(FromBits(Bits(threshold) + i - 32));
    }
  }
  const std::vector<std::string> isas = RunnableIsaNames();
  std::vector<double> worst(isas.size());
  const ScopedIsa restores_the_cap(isas.front());
  const auto block = [&](const std::vector<float>& x) {
    std::vector<std::vector<float>> results;
    for (const std::string& isa : isas) {
      EXPECT_OK(CapIsa(isa.c_str()));
      results.push_back(run(x));
      EXPECT_EQ(LastIsa()->name, isa);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const Promised p = promised(x, i);
      for (size_t k = 0; k < isas.size(); ++k) {
        const float y = results[k][i];
        bool wrong = false;
        if (p.is_zero) {
          wrong = Bits(y) != (std::signbit(p.value) ? 0x80000000u : 0u);
        } else if (p.ulps != 0.0) {
          const double ulps = UlpError(y, p.value);
          worst[k] = std::max(worst[k], ulps / p.ulps);
          wrong = !(ulps <= p.ulps);
        }
        if (!wrong) continue;
        ADD_FAILURE() << name << " on " << isas[k] << ": of " << x[i] << " is "
                      << y << " for " << p.value;
        return false;
      }
    }
    return true;
  };
  SweepFloats(around, block, 8 * SweepStride());
  for (size_t k = 0; k < isas.size(); ++k) {
    std::printf("%-8s %s: %.3f of the bound\n", isas[k].c_str(), name.c_str(),
                worst[k]);
  }
}

constexpr double kFlush = -87.33655f;

// Returns the scores of the logits `x`. RouteTopK() returns them as weights
// if all experts are given ids and no other option is set.
std::vector<float> ScoresOf(Score score, const std::vector<float>& x) {
  std::vector<float> numbers = x, weights(x.size());
  for (float& f : numbers) {
    if (std::isnan(f)) f = 0.0f;  // a NaN would make all weights NaN
  }
  std::vector<int32_t> ids(x.size());
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<int32_t> given = ids;
  RouteOptions options;
  options.score = score;
  options.renormalize = false;
  RouteInputs in = {{numbers.data(), 1, x.size()}};
  in.given_ids = {given.data(), 1, x.size()};
  EXPECT_OK(RouteTopK(
      in, {{ids.data(), 1, x.size()}, {weights.data(), 1, x.size()}}, options));
  return weights;
}

TEST(AccuracyTest, Scores) {
  for (const Score score : kScores) {
    const double ulps = AccuracyOf(score).ulps;
    if (ulps == 0.0) continue;
    Sweep(
        NameOf(score), {-87.33655f, -87.0f, 87.0f},
        [&](const std::vector<float>& x) { return ScoresOf(score, x); },
        [&](const std::vector<float>& all, size_t i) -> Promised {
          const double x = static_cast<double>(all[i]);
          if (std::isnan(x)) return {};
          if (x <= kFlush) return {0.0, 0.0, true};
          return {ExactScore(score, x, x, 1.0), ulps};
        });
  }
}

// Returns `n` values of `up`. Four kinds of values take turns: tiny,
// ordinary, near -1 (where the sum up + 1 of kSwigluOai cancels) and random
// bits.
std::vector<float> Ups(size_t n) {
  Random random(7);
  std::vector<float> ups(n);
  for (size_t i = 0; i < n; ++i) {
    const float any = random.AnyBits(), most = i % 4 == 1 ? 30.0f : 1e-3f;
    const float drawn = random.Uniform(-most, most);
    ups[i] = i % 4 < 2            ? drawn
             : i % 4 == 2         ? drawn * 10.0f - 1.0f
             : std::isfinite(any) ? any
                                  : 1.0f;
  }
  return ups;
}

// True if the floats at and around x are neither denormal nor infinite.
bool IsNormal(double x) {
  return std::fabs(x) > 0x1.1p-126 && std::fabs(x) < 0x1.fp127;
}

TEST(AccuracyTest, SwigluOai) {
  const std::vector<float> ups = Ups(1 << 17);
  for (const float alpha : {1.702f, 1.0f, 0.75f}) {
    ActivateOptions options = Plain(Activation::kSwigluOai);
    options.alpha = alpha;
    Sweep(
        "SwiGLU-OAI of alpha " + std::to_string(alpha),
        {-87.33655f / alpha, 87.0f / alpha},
        [&](const std::vector<float>& x) {
          return ApplyToBoth(options, x, {ups.data(), ups.data() + x.size()});
        },
        [&](const std::vector<float>& all, size_t i) -> Promised {
          const double g = static_cast<double>(all[i]),
                       u = static_cast<double>(ups[i]);
          if (std::isnan(g)) return {};
          // Rounds alpha * gate to f32, as the library does.
          const double x = static_cast<double>(all[i] * alpha);
          if (x <= kFlush) return {-(u + 1), 0.0, true};
          const double y = static_cast<double>(alpha) * g;
          const double acted = g / (1 + std::exp(-y)), out = acted * (u + 1);
          if (!IsNormal(acted) || !IsNormal(out)) return {};
          return {out, 4.0 + std::max(0.0, -y)};
        });
  }
}

TEST(AccuracyTest, Situ) {
  const std::vector<float> ups = Ups(1 << 17);
  for (const auto& [beta, linear_beta] :
       {std::pair{4.0f, 25.0f}, {1.0f, 1.0f}, {3.0f, 5.5f}, {7.3f, 90.1f}}) {
    ActivateOptions options = Plain(Activation::kSitu);
    options.beta = beta;
    options.linear_beta = linear_beta;
    Sweep(
        "SiTU of " + std::to_string(beta) + ", " + std::to_string(linear_beta),
        {-87.33655f, 87.0f, 9.02f * beta, -9.02f * beta},
        [&](const std::vector<float>& x) {
          return ApplyToBoth(options, x, {ups.data(), ups.data() + x.size()});
        },
        [&, b = static_cast<double>(beta),
         l = static_cast<double>(linear_beta)](const std::vector<float>& all,
                                               size_t i) -> Promised {
          const double g = static_cast<double>(all[i]),
                       u = static_cast<double>(ups[i]);
          if (std::isnan(g)) return {};
          if (g <= kFlush) return {-u, 0.0, true};
          const double out =
              b * std::tanh(g / b) / (1 + std::exp(-g)) * l * std::tanh(u / l);
          if (!IsNormal(g / b) || !IsNormal(u / l) || !IsNormal(out)) return {};
          return {out, 10.0};
        });
  }
}

// Tests the limits beyond which activate.h promises a zero.
TEST(AccuracyTest, ZerosOfSwigluOaiAndSitu) {
  for (const std::string& isa : RunnableIsaNames()) {
    const ScopedIsa scoped(isa);
    const auto bits = [](Activation activation, float g, float u) {
      return CanonicalBits(ApplyToBoth(Plain(activation), {g}, {u})[0]);
    };
    for (const float g : {-52.0f, -1e30f, -kInf}) {
      const Activation oai = Activation::kSwigluOai;
      EXPECT_EQ(bits(oai, g, 2.0f), Bits(-0.0f)) << isa;
      EXPECT_EQ(bits(oai, g, -1.0f), Bits(-0.0f)) << isa;
      EXPECT_EQ(bits(oai, g, -3.0f), Bits(0.0f)) << isa;
      EXPECT_EQ(bits(oai, g, kInf), CanonicalBits(kNaN)) << isa;
      EXPECT_EQ(bits(oai, g, -kInf), CanonicalBits(kNaN)) << isa;
    }
    for (const float g : {-87.33655f, -1e30f, -kInf}) {
      const Activation situ = Activation::kSitu;
      for (const float u : {2.0f, kInf, 0.0f}) {
        EXPECT_EQ(bits(situ, g, u), Bits(-0.0f)) << isa;
        EXPECT_EQ(bits(situ, g, -u), Bits(0.0f)) << isa;
      }
    }
  }
}

// Tests conversions between f32 and the small floats (bf16, f16 and others) on
// every ISA against the reference. EveryFloat converts floats to bf16 and f16:
// all ties and the floats next to them, and one of every
// SWITCHYARD_MATH_STRIDE floats, as in math_test.cc. EveryCode converts every
// code back to f32. ReferenceTest tests the reference itself.

using reference::SmallFloat;

struct Small {
  const SmallFloat& format;
  Type type;
};
// The formats to test; bf16 and f16 come first.
const std::vector<Small> kSmall = [] {
  std::vector<Small> all;
  for (const Type type : calls::kEnumerators<Type>) {
    const SmallFloat* const format = reference::SmallFloatOf(type);
    if (format != nullptr) all.push_back({*format, type});
  }
  return all;
}();

// Returns the midpoints between neighbouring numbers, and the floats next to
// each midpoint.
std::vector<float> Ties(const SmallFloat& format) {
  std::vector<float> x;
  for (uint32_t code = 0; code <= format.largest; ++code) {
    const double low = format.Decode(code);
    // The largest number has no upper neighbour. The tie above it is computed
    // as if the number one step larger existed.
    const double high = code < format.largest
                            ? format.Decode(code + 1)
                            : 2 * low - format.Decode(code - 1);
    const uint32_t tie = Bits(static_cast<float>((low + high) / 2));
    for (const uint32_t sign : {0u, 0x80000000u}) {
      for (uint32_t i = 0; i < 3; ++i)
        x.push_back(FromBits((tie + i - 1) | sign));
    }
  }
  return x;
}

TEST(ReferenceTest, RoundsToTheNearestCode) {
  for (const Small& small : kSmall) {
    const SmallFloat& f = small.format;
    SCOPED_TRACE(testing::Message() << f.mantissa_bits << " bits");
    // The numbers increase with their codes. Between two powers of two they
    // are evenly spaced.
    ASSERT_EQ(f.Decode(0), 0.0f);
    for (uint32_t code = 0; code < f.largest; ++code) {
      const double low = f.Decode(code), high = f.Decode(code + 1);
      ASSERT_LT(low, high);
      const double tie = (low + high) / 2, step = high - low;
      ASSERT_EQ(f.Encode(low), code);
      ASSERT_EQ(f.Encode(tie), code + code % 2);
      ASSERT_EQ(f.Encode(tie - step / 4096), code);
      ASSERT_EQ(f.Encode(-(tie + step / 4096)), (code + 1) | f.sign);
    }
    ASSERT_EQ(f.Encode(-0.0), f.sign);
    ASSERT_EQ(f.Encode(f.Decode(f.largest)), f.largest);
    ASSERT_EQ(f.Encode(1e300), f.saturates ? f.largest : f.largest + 1);
    ASSERT_TRUE(std::isnan(f.Decode(f.Encode(kNaN))));
    ASSERT_EQ(std::isinf(f.Decode(f.largest + 1)), f.infinity);
  }
  // These are well-known values of the formats.
  EXPECT_EQ(reference::kBF16.Decode(reference::kBF16.largest), 0x1.FEp127f);
  EXPECT_EQ(reference::kBF16.Decode(1), 0x1p-133f);
  EXPECT_EQ(reference::kF16.Decode(reference::kF16.largest), 65504.0f);
  EXPECT_EQ(reference::kF16.Decode(1), 0x1p-24f);
  EXPECT_EQ(reference::kF8E4M3.Decode(reference::kF8E4M3.largest), 448.0f);
  EXPECT_EQ(reference::kF8E4M3.Decode(1), 0x1p-9f);
  EXPECT_EQ(reference::kF8E5M2.Decode(reference::kF8E5M2.largest), 57344.0f);
  EXPECT_EQ(reference::kF8E5M2.Decode(1), 0x1p-16f);
}

TEST(ConvertTest, EveryFloat) {
  const ScopedIsa restores_the_cap(RunnableIsaNames().front());
  for (const Small& small : {kSmall[0], kSmall[1]}) {
    const SmallFloat& f = small.format;
    std::vector<uint16_t> right, y;
    SweepFloats(Ties(f), [&](const std::vector<float>& x) {
      right.clear();
      for (const float value : x) {
        right.push_back(static_cast<uint16_t>(f.Encode(value)));
      }
      for (const std::string& isa : RunnableIsaNames()) {
        EXPECT_OK(CapIsa(isa.c_str()));
        y.assign(x.size(), 0);
        const AnyMatrix out(y.data(), small.type, 1, y.size(), y.size());
        EXPECT_OK(Quantize({x}, {out}));
        EXPECT_EQ(LastIsa()->name, isa);
        for (size_t i = 0; i < x.size(); ++i) {
          if (y[i] == right[i]) continue;
          if (CanonicalBits(small.type, y[i]) == right[i]) continue;
          ADD_FAILURE() << isa << ": " << std::hexfloat << x[i] << " became "
                        << std::hex << y[i] << ", not " << right[i];
          return false;
        }
      }
      return !testing::Test::HasFailure();
    });
  }
}

class ConvertIsaTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(ConvertIsaTest);

TEST_P(ConvertIsaTest, EveryCode) {
  for (const Format& format : kFormats) {
    if (!format.IsSource() || format.type == Type::kF32) continue;
    SCOPED_TRACE(format.name);
    // If the format has scales, `rows` has a row for each scale in `scales`.
    const std::vector<float> scales = {1.0f,  0.0f, -3.0f, 1e-40f,
                                       3e38f, kInf, kNaN};
    const bool scaled = format.group != 0;
    const size_t cols = size_t{1} << 8 * SizeOf(format.type);
    FormatRows rows(format, scaled ? scales.size() : 1, cols);
    for (size_t i = 0; i < rows.rows * cols; ++i) {
      std::memcpy(&rows.codes[i * SizeOf(format.type)], &i,
                  SizeOf(format.type));
    }
    for (size_t i = 0; i * sizeof(float) < rows.scales.size(); ++i) {
      std::memcpy(&rows.scales[i * sizeof(float)],
                  &scales[i / format.NumScales(cols)], sizeof(float));
    }
    const GuardedRows in(rows, 0, 0);
    for (const Format& to : {kF32Rows, kFormats[1], kFormats[2]}) {
      if (to.type == format.type) continue;
      const GuardedRows out(to, rows.rows, cols, 0, 0);
      ASSERT_OK(Quantize({in.view()}, {out.view()}));
      ExpectSameRows(out.Values(), reference::Quantize(rows, to));
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
