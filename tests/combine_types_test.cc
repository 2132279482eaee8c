// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Cases of Combine that need other types than f32: every argument of its own,
// rows longer than what is kept of one, quantised rows, and roundings where
// engines round that run one operation after the other.

#include <cmath>

#include "switchyard/isa.h"
#include "tests/combine_case.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class CombineTypesTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(CombineTypesTest);

CombineTypes AnyTypes(Random& random) {
  const auto any = [&] { return kFloatTypes[random.Below(3)]; };
  CombineTypes types = {any(), any(), any(), any(), any(), any(), any(), any()};
  constexpr calls::Enumerators<Type> kCodes(internal::kCodeSet);
  if (random.Below(4) == 0) types.rows = kCodes[random.Below(kCodes.size())];
  return types;
}
CombineShape AnyShape(Random& random) {
  constexpr SharedGate kKinds[] = {SharedGate::kLogit, SharedGate::kScalar,
                                   SharedGate::kNone};
  CombineShape s = {1 + random.Below(3), 1 + random.Below(9),
                    1 + random.Below(150)};
  s.row_index = random.Below(2) != 0;
  s.shared = random.Below(2) != 0;
  s.kind = kKinds[random.Below(3)];
  s.residual = random.Below(2) != 0;
  return s;
}

TEST_P(CombineTypesTest, EachArgumentHasItsOwn) {
  Random random(1);
  for (int i = 0; i < 600; ++i) {
    const CombineTypes types = AnyTypes(random);
    const CombineShape s = AnyShape(random);
    CombineCase c(s, random.Next());
    // From overflow to denormals, in f16 and in f32.
    constexpr float kScale[] = {1.0f, 3e4f, 1e-7f, 1e38f, 1e-38f};
    for (float& x : c.rows) x *= kScale[random.Below(5)];
    if (i % 8 == 0) {
      for (std::vector<float>* part : {&c.rows, &c.residual, &c.weights}) {
        for (float& x : *part) x = random.AnyBits();
      }
    }
    SCOPED_TRACE(testing::Message() << types << ", case " << i);
    TypedCombine typed(c, types, random.Below(2) != 0, random.Below(4));
    if (s.residual && types.out == types.residual && random.Below(2) != 0) {
      typed.RunInPlace(false);
    } else if (s.shared && types.out == types.shared && random.Below(2) != 0) {
      typed.RunInPlace(true);
    }
    ExpectSame(typed.Run(), typed.Expected());
    if (HasFailure()) return;
  }
}

// `normed` is made of sums before their rounding: of a row that is longer than
// what is kept of them, too, where out does not hold them.
TEST_P(CombineTypesTest, LongRows) {
  for (const size_t hidden : {8192u, 8193u, 20480u}) {
    const size_t top_k = hidden == 8193 ? 70 : 2;
    CombineCase c(EveryPart(2, top_k, hidden), hidden);
    c.index[1] = -5;  // is counted once
    for (CombineTypes types : EveryMix()) {
      for (const bool in_place : {false, true}) {
        if (in_place) types.out = types.residual;
        SCOPED_TRACE(testing::Message() << types << ", hidden " << hidden
                                        << (in_place ? " in place" : ""));
        TypedCombine typed(c, types, hidden != 8192 || in_place);
        if (in_place) typed.RunInPlace(false);
        ExpectSame(typed.Run(), typed.Expected());
      }
    }
  }
}

// The f32 kernel's normed rows, converted by Quantize.
TEST_P(CombineTypesTest, EveryFormat) {
  for (const size_t hidden : {1u, 33u, 100u, 512u, 768u, 20480u}) {
    const size_t tokens = hidden < 1000 ? 3 : 2;
    CombineCase c(EveryPart(tokens, 2, hidden), hidden);
    c.rows[0] = hidden == 100 ? kInf : c.rows[0];
    std::vector<CombineTypes> mixes = EveryMix();
    if (hidden > 1000) mixes = {mixes[0], mixes[3]};
    for (const CombineTypes& types : mixes) {
      TypedCombine typed(c, types, true);
      CombineTypes f32_normed = types;
      f32_normed.normed = Type::kF32;
      const CombineResult expected =
          TypedCombine(c, f32_normed, true).Expected();
      for (const Format& format : kFormats) {
        if (format.Cols(hidden) != hidden) continue;
        SCOPED_TRACE(testing::Message()
                     << types << ", " << format.name << ", hidden " << hidden);
        const GuardedRows normed(format, tokens, hidden, 1, 3);
        typed.out.normed = normed.view();
        EXPECT_EQ(CanonicalBits(typed.Run().out), CanonicalBits(expected.out));
        normed.ExpectIntact("normed");
        ExpectSameRows(
            normed.Values(),
            reference::Quantize(expected.normed, tokens, hidden, format));
      }
    }
  }
}

// The formula of the header, number by number.
CombineResult Unfused(const TypedCombine& typed, const CombineTypes& types) {
  const CombineCase& c = typed.f32();
  const CombineShape& s = c.shape;
  const auto m = [&](float x) { return Rounded(types.out, x); };
  CombineInputs slots = c.Inputs();
  slots.shared = {};
  slots.residual = {};
  CombineResult r;
  for (size_t t = 0; t < s.tokens; ++t) {
    std::vector<float> row = reference::CombineFixed(slots, t);
    for (size_t h = 0; h < s.hidden; ++h) {
      const size_t i = t * s.hidden + h;
      row[h] = m(row[h]);
      if (s.shared) {
        const float gate = c.gate.empty() ? 1.0f : c.gate[t];
        row[h] = m(row[h] + m(gate * c.shared[i]));
      }
      if (s.residual) row[h] = m(c.residual[i] + row[h]);
    }
    r.out.insert(r.out.end(), row.begin(), row.end());
    // out * scale: times a weight of 1.
    const std::vector<float> ones(s.hidden, 1.0f);
    const std::vector<float> scaled = reference::RmsNormFixed(row, ones, kEps);
    for (size_t h = 0; h < s.hidden; ++h) {
      r.normed.push_back(
          Rounded(types.normed, m(scaled[h]) * c.norm_weight[h]));
    }
  }
  return r;
}

TEST_P(CombineTypesTest, RoundsLikeUnfused) {
  Random random(2);
  size_t other = 0;
  for (int i = 0; i < 400; ++i) {
    CombineTypes types = AnyTypes(random);
    CombineShape s = AnyShape(random);
    if (i == 0) s = EveryPart(1, 2, 17000), types = AllOf(Type::kBF16);
    if (s.kind == SharedGate::kLogit) s.kind = SharedGate::kScalar;
    const CombineCase c(s, random.Next());
    SCOPED_TRACE(testing::Message() << types << ", case " << i);
    TypedCombine typed(c, types, true, random.Below(4));
    const CombineResult fused = typed.Expected();
    if (s.residual && types.out == types.residual && random.Below(2) != 0) {
      typed.RunInPlace(false);
    }
    CombineResult expected = Unfused(typed, types);
    const CombineResult r = typed.Run(SerialExecutor(), {kEps, true, true});
    if (LastIsa()->fma) ExpectSame(r, expected);
    other += r.out != fused.out && r.normed != fused.normed;
    if (HasFailure()) return;
  }
  EXPECT_GE(other, 100u);
}

}  // namespace
}  // namespace switchyard::testing_support
