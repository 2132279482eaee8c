// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The accuracies that activate.h and route.h state of what is made of several
// functions of math-inl.h (math_test has those by themselves), through the
// public API on every ISA: one of 2,048 floats (SWITCHYARD_MATH_STRIDE, times
// 8) and every float around each threshold.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "switchyard/activate.h"
#include "switchyard/route.h"
#include "testing/route_scores.h"
#include "tests/activate_case.h"
#include "tests/float_sweep.h"

namespace switchyard::testing_support {
namespace {

// The promise for an input: a value within so many ulp; or nothing, if there is
// no bound.
struct Promised {
  double value = 0.0, ulps = 0.0;
  bool is_zero = false;  // of the sign of `value`, to the bit
};

// Compares run(x), on every ISA, with promised(x, i).
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

// The scores as weights of given experts, which nothing else changes.
std::vector<float> ScoresOf(Score score, const std::vector<float>& x) {
  std::vector<float> numbers = x, weights(x.size());
  for (float& f : numbers) {
    if (std::isnan(f)) f = 0.0f;  // would make all weights NaN
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

// An up for each place in a vector of gates: tiny ones, ordinary, near -1,
// where kSwigluOai's sum cancels, and any.
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

// Neither denormal nor infinite as a float, but for a margin.
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
          return OfBoth(options, x, {ups.data(), ups.data() + x.size()});
        },
        [&](const std::vector<float>& all, size_t i) -> Promised {
          const double g = static_cast<double>(all[i]),
                       u = static_cast<double>(ups[i]);
          if (std::isnan(g)) return {};
          // Rounded as the library does.
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
          return OfBoth(options, x, {ups.data(), ups.data() + x.size()});
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

// The ends that activate.h names.
TEST(AccuracyTest, ZerosOfSwigluOaiAndSitu) {
  for (const std::string& isa : RunnableIsaNames()) {
    const ScopedIsa scoped(isa);
    const auto bits = [](Activation activation, float g, float u) {
      return CanonicalBits(OfBoth(Plain(activation), {g}, {u})[0]);
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

}  // namespace
}  // namespace switchyard::testing_support
