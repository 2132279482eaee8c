// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Each activation against double precision, with limits on either side of it.

#include <cmath>
#include <iterator>

#include "testing/reference_activate.h"
#include "tests/activate_case.h"

namespace switchyard::testing_support {
namespace {

class ActivateFunctionsTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(ActivateFunctionsTest);

// Close to zero, ordinary, where functions end, anything at all.
float Draw(Random& random) {
  constexpr float kSpecials[] = {
      0.0f,       -0.0f,    kInf,       -kInf, kNaN,  1e-41f, -1e-41f,
      -13.14624f, -10.001f, -87.33655f, 9.02f, -9.9f, 3e38f,  -3e38f};
  switch (random.Below(8)) {
    case 0:
      return kSpecials[random.Below(std::size(kSpecials))];
    case 1:
      return random.AnyBits();
    case 2:
      return random.Uniform(-100.0f, 100.0f);
    case 3:
      return random.Uniform(-1e-3f, 1e-3f);
    default:
      return random.Uniform(-12.0f, 12.0f);
  }
}
std::vector<float> Draws(Random& random, size_t n) {
  std::vector<float> values(n);
  for (float& value : values) value = Draw(random);
  return values;
}

TEST_P(ActivateFunctionsTest, FunctionsAreCloseToExact) {
  Random random(1);
  const size_t n = 20000;
  const std::vector<float> gate = Draws(random, n), up = Draws(random, n);
  std::vector<ActivateOptions> all;
  for (const Activation activation : kActivations) {
    for (const float limit : {0.0f, 7.0f, kInf}) {
      for (const ActivatePlace place :
           {ActivatePlace::kBefore, ActivatePlace::kAfter}) {
        ActivateOptions options = Plain(activation);
        options.limit = limit;
        options.limit_place = place;
        const float factor = all.size() % 2 == 1 ? 0.375f : 1.0f;
        reference::ForEachParameter(&options,
                                    [=](float* value) { *value *= factor; });
        const bool of_gate = IsOfGate(activation);
        if (of_gate || place == ActivatePlace::kBefore) all.push_back(options);
        options.layout = GateUpLayout::kUngated;
        if (of_gate) all.push_back(options);
      }
    }
  }
  for (const ActivateOptions& options : all) {
    const bool ungated = options.layout == GateUpLayout::kUngated;
    const std::vector<float> out =
        ungated ? OfGate(options, gate) : OfBoth(options, gate, up);
    const bool fma = LastIsa()->fma;
    for (size_t i = 0; i < n; ++i) {
      const reference::Activated exact(options, gate[i], up[i], fma);
      ASSERT_TRUE(exact.IsClose(up[i], out[i]))
          << "activation " << static_cast<int>(options.activation) << " limit "
          << options.limit << " place " << static_cast<int>(options.limit_place)
          << " ungated " << ungated << ": of " << gate[i] << " and " << up[i]
          << " made " << out[i] << " for " << exact.value << " +- "
          << exact.error;
    }
  }
}

TEST_P(ActivateFunctionsTest, SpecialValues) {
  for (const Activation activation : kActivations) {
    const ActivateOptions options = Plain(activation);
    EXPECT_TRUE(std::isnan(OfBoth(options, {kNaN}, {1.0f})[0]));
    EXPECT_TRUE(std::isnan(OfBoth(options, {1.0f}, {kNaN})[0]));
  }
  const auto of = [&](Activation activation, float x) {
    const float up = activation == Activation::kSwigluOai ? 0.0f : 1.0f;
    return OfBoth(Plain(activation), {x}, {up})[0];
  };
  // The sign of zero, which being close does not show.
  for (const Activation activation :
       {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
        Activation::kSwigluOai}) {
    EXPECT_EQ(of(activation, kInf), kInf) << static_cast<int>(activation);
    EXPECT_EQ(Bits(of(activation, -kInf)), Bits(-0.0f))
        << static_cast<int>(activation);
    EXPECT_EQ(Bits(of(activation, -0.0f)), Bits(-0.0f))
        << static_cast<int>(activation);
  }
  for (const Activation activation : {Activation::kRelu, Activation::kRelu2}) {
    EXPECT_EQ(of(activation, kInf), kInf) << static_cast<int>(activation);
    EXPECT_EQ(of(activation, -kInf), 0.0f) << static_cast<int>(activation);
  }
  // Caps: 4 and 25.
  const ActivateOptions situ = Plain(Activation::kSitu);
  EXPECT_EQ(OfBoth(situ, {-kInf}, {1.0f})[0], 0.0f);
  EXPECT_EQ(OfBoth(situ, {kInf}, {kInf})[0], 100.0f);
  EXPECT_EQ(OfBoth(situ, {kInf}, {-kInf})[0], -100.0f);
  EXPECT_EQ(OfBoth(situ, {-kInf}, {-kInf})[0], 0.0f);
}

// Any bit patterns at all, and the same bits on all ISAs with FMA.
TEST(ActivateFunctionsAcrossIsas, FmaIsasAgree) {
  for (const Activation activation : kActivations) {
    Random random(4);
    const std::vector<float> gate = Draws(random, 20000);
    const std::vector<float> up = Draws(random, 20000);
    ExpectFmaIsasAgree(
        [&] { return CanonicalBits(OfBoth(Plain(activation), gate, up)); });
  }
}

}  // namespace
}  // namespace switchyard::testing_support
