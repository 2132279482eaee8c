// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include <cmath>
#include <memory>

#include "fuzz/any_combine.h"
#include "switchyard/isa.h"
#include "testing/reference_combine.h"
#include "tests/call_errors.h"
#include "tests/combine_case.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class CombineTest : public IsaTest {};
class CombinePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(CombineTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(CombinePoolTest);

// Expects an error of at most (top_k + 4) * 2^-24 * the sum of |w * x|, and
// the bits of the formula on ISAs with FMA.
void ExpectRight(const CombineCase& c, const CombineResult& r) {
  const CombineShape& s = c.shape;
  const CombineInputs in = c.Inputs();
  const bool logit = s.shared && s.kind == SharedGate::kLogit;
  for (size_t t = 0; t < s.tokens; ++t) {
    const std::vector<reference::Sum> exact = reference::CombineSums(in, t);
    const std::vector<float> fixed = reference::CombineFormFixed(in, {}, t).out;
    const std::vector<float> row(&r.out[t * s.hidden],
                                 &r.out[t * s.hidden] + s.hidden);
    for (size_t h = 0; h < s.hidden; ++h) {
      // The sigmoid's error of 2.5 ulp changes the shared expert's term by at
      // most 5 * 2^-24 of that term.
      const double bound =
          (static_cast<double>(s.top_k) + 4.0 + (logit ? 5.0 : 0.0)) * 0x1p-24 *
          exact[h].magnitude;
      ASSERT_LE(std::fabs(static_cast<double>(row[h]) - exact[h].value), bound)
          << "token " << t << " column " << h;
      if (LastIsa()->fma && !logit) {
        ASSERT_EQ(Bits(row[h]), Bits(fixed[h]))
            << "token " << t << " column " << h;
      }
    }
    if (r.normed.empty()) continue;
    const std::vector<float> normed =
        reference::CombineNormFixed(row, c.norm_weight, kEps);
    for (size_t h = 0; h < s.hidden; ++h) {
      const float actual = r.normed[t * s.hidden + h];
      if (LastIsa()->fma) {
        ASSERT_EQ(Bits(actual), Bits(normed[h])) << "normed column " << h;
      } else {
        ASSERT_LE(UlpError(actual, static_cast<double>(normed[h])), 16.0);
      }
    }
  }
}

TEST_P(CombineTest, EveryHiddenSize) {
  for (size_t hidden = 1; hidden <= 2 * 64 + 33; ++hidden) {
    CombineShape s = {2, 1 + hidden % 9, hidden};
    s.row_index = hidden % 2 == 0;
    s.residual = hidden % 3 == 0;
    const CombineCase c(s, hidden);
    SCOPED_TRACE(testing::Message() << "hidden " << hidden);
    ExpectRight(c, Combine(c, true));
    const CombineResult sum = Combine(c, false);
    ExpectRight(c, sum);
    ASSERT_EQ(Combine(c, true).out, sum.out);
  }
}

TEST_P(CombineTest, EveryCombinationOfParts) {
  uint64_t seed = 1000;
  for (const size_t top_k : {1u, 2u, 4u, 6u, 8u, 10u, 22u, 33u}) {
    for (int parts = 0; parts < 16; ++parts) {
      CombineShape s = {3, top_k, 200};
      s.row_index = (parts & 1) != 0;
      s.residual = (parts & 2) != 0;
      s.shared = (parts & 12) != 0;
      const CombineCase c(s, ++seed);
      SCOPED_TRACE(testing::Message() << "k " << top_k << " parts " << parts);
      ExpectRight(c, Combine(c, true));
      ExpectRight(c, Combine(c, false));
    }
  }
}

// The kernel's list of terms on the stack has a fixed length. Tests numbers
// of slots around 64 and 128, and a far larger number.
TEST_P(CombineTest, ManySlots) {
  for (const size_t top_k : {62u, 63u, 64u, 65u, 127u, 128u, 129u, 300u}) {
    for (const size_t hidden : {1u, 31u, 512u, 513u}) {
      const CombineShape s = EveryPart(1, top_k, hidden);
      CombineCase c(s, top_k * hidden);
      c.index[0] = -7;
      c.index[top_k - 1] = 1 << 30;
      SCOPED_TRACE(testing::Message() << "k " << top_k << " H " << hidden);
      const CombineResult r = Combine(c, true);
      ExpectRight(c, r);
      EXPECT_EQ(r.skipped, 2u);
    }
  }
}

TEST_P(CombineTest, SkippedSlotsAreNotReadAndStrangersAreCounted) {
  CombineShape s = {4, 3, 70};
  s.row_index = s.residual = true;
  CombineCase c(s, 5);
  // Row 4 holds stale data, and no token may read it.
  for (int32_t& index : c.index) {
    if (index == 4) index = -1;
  }
  for (size_t h = 0; h < s.hidden; ++h) c.rows[4 * s.hidden + h] = kNaN;
  CombineResult r = Combine(c, true);
  EXPECT_EQ(r.skipped, 0u);  // -1 is valid
  ExpectRight(c, r);
  c.index[1] = 12;
  c.index[3] = -2;
  c.index[5] = INT32_MIN;
  c.index[11] = INT32_MAX;
  r = Combine(c, true);
  EXPECT_EQ(r.skipped, 4u);
  ExpectRight(c, r);
  // If all slots of a token are skipped, the sum is +0.
  for (size_t slot = 0; slot < 3; ++slot) c.index[slot] = -1;
  r = Combine(c, false);
  ExpectRight(c, r);
  EXPECT_EQ(r.out[0], c.residual[0]);
  // The report is optional.
  std::vector<float> out(s.tokens * s.hidden);
  const CombineOutputs outputs = {{out.data(), s.tokens, s.hidden}};
  EXPECT_OK(Combine(c.Inputs(), outputs, {kEps, true}));
  const std::vector<float> allowed = out;
  std::fill(out.begin(), out.end(), kNaN);
  // Without allow_skipped, stale rows give an error, but the call writes the
  // same results as with allow_skipped.
  ExpectError(Combine(c.Inputs(), outputs),
              "Combine: row_index: outside [-1, num_rows), and "
              "options.allow_skipped is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_EQ(out, allowed);
}

TEST_P(CombineTest, InPlaceOnResidualAndOnShared) {
  CombineShape s = {5, 8, 101};
  s.shared = s.residual = true;
  const CombineCase c(s, 6);
  for (CombineTypes types : EveryMix()) {
    for (const bool on_shared : {false, true}) {
      types.out = on_shared ? types.shared : types.residual;
      SCOPED_TRACE(types);
      for (const bool norm : {true, false}) {
        TypedCombine typed(c, types, norm);
        typed.RunInPlace(on_shared);
        ExpectSame(typed.Run(), typed.Expected());
      }
    }
  }
}

TEST_P(CombineTest, StridedMisalignedGuardedViews) {
  for (size_t gap = 0; gap <= 7; ++gap) {
    const CombineCase c(EveryPart(3, 4, 61 + gap), 7);
    for (const CombineTypes& types : EveryMix()) {
      SCOPED_TRACE(testing::Message() << types << ", gap " << gap);
      TypedCombine typed(c, types, true, gap);
      ExpectSame(typed.Run(), typed.Expected());
    }
  }
}

TEST_P(CombineTest, NaNInfinityAndZeroes) {
  // On every ISA the row has a tail. The unused lanes of the tail must not
  // enter the norm.
  CombineCase c({1, 2, 35}, 8);
  c.weights = {kInf, 1.0f};
  c.rows.assign(70, 1.0f);
  c.rows[34] = 0.0f;  // inf * 0
  CombineResult r = Combine(c, true);
  EXPECT_EQ(r.out[0], kInf);
  EXPECT_TRUE(std::isnan(r.out[34]));
  EXPECT_TRUE(std::isnan(r.normed[0]));
  c.rows[34] = 1.0f;
  r = Combine(c, true);
  EXPECT_EQ(r.out[34], kInf);
  EXPECT_TRUE(std::isnan(r.normed[34]));  // inf * (1 / inf)
  c.weights = {0.0f, 1.0f};
  c.rows[3] = kNaN;  // also with a weight of 0, the result is NaN
  r = Combine(c, true);
  EXPECT_TRUE(std::isnan(r.out[3]));
  EXPECT_EQ(r.out[4], 1.0f);
  EXPECT_TRUE(std::isnan(r.normed[4]));
  // 1 * -0 + +0 is +0 in every lane, also in the tail.
  c.weights = {1.0f, 1.0f};
  c.rows.assign(70, -0.0f);
  r = Combine(c, true);
  for (size_t h = 0; h < 35; ++h) {
    EXPECT_EQ(Bits(r.out[h]), 0u);
    EXPECT_EQ(Bits(r.normed[h]), 0u);
  }
}

TEST_P(CombineTest, GateKindsAndEpsAndNormWeightMatter) {
  CombineShape s = {1, 1, 3};
  s.shared = true;
  CombineCase c(s, 9);
  c.weights = {0.0f};
  c.shared = {1.0f, 1.0f, 1.0f};
  c.gate = {2.0f};
  EXPECT_EQ(Combine(c, false).out[2], 2.0f);
  c.shape.kind = SharedGate::kLogit;
  EXPECT_LE(UlpError(Combine(c, false).out[2], reference::Sigmoid(2.0)), 2.5);
  // With w = 0 and y = 1, the output is the sigmoid itself. The logits
  // include special values.
  for (const float logit : {0.0f, -0.0f, 30.0f, -30.0f, 88.0f, -87.0f, 1e-40f,
                            3e38f, kInf, -87.33f, 0.4f, -0.4f}) {
    c.gate = {logit};
    const double exact = reference::Sigmoid(static_cast<double>(logit));
    EXPECT_LE(UlpError(Combine(c, false).out[0], exact), 2.5) << logit;
  }
  for (const float logit : {-kInf, -3e38f, -90.0f, -87.33655f}) {
    c.gate = {logit};
    EXPECT_EQ(Bits(Combine(c, false).out[0]), 0u) << logit;
  }
  c.gate = {kNaN};
  EXPECT_TRUE(std::isnan(Combine(c, false).out[0]));
  c.gate.clear();  // empty, although it still owns memory
  c.shape.kind = SharedGate::kNone;
  const std::vector<float> ones = {1.0f, 1.0f, 1.0f};
  EXPECT_EQ(Combine(c, false).out, ones);

  std::vector<float> out(3), normed(3);
  const std::vector<float> halves = {0.5f, 1.0f, 2.0f};
  CombineInputs in = c.Inputs();
  in.shared.gate = c.gate;
  in.norm_weight = halves;
  ASSERT_OK(Combine(in, {out, normed}, {3.0f}));
  const std::vector<float> expected = {0.25f, 0.5f, 1.0f};  // 1 / sqrt(1 + 3)
  EXPECT_EQ(normed, expected);
}

// The gate may be a column or a row, in its own matrix or in a wider one, for
// example next to the router's logits.
TEST_P(CombineTest, GateIsARowOrAColumn) {
  CombineShape s = {7, 3, 40};
  s.shared = true;
  for (const SharedGate kind : {SharedGate::kScalar, SharedGate::kLogit}) {
    s.kind = kind;
    const CombineCase c(s, 12);
    for (const Type type : kFloatTypes) {
      TypedCombine typed(c, AllOf(type), false);
      const CombineResult expected = typed.Expected();
      for (const size_t stride : {0u, 1u, 2u, 129u}) {
        SCOPED_TRACE(testing::Message() << type << ", stride " << stride);
        const bool row = stride == 0;
        const GuardedValues gate(type, row ? 1 : 7, row ? 7 : 1, stride,
                                 stride % 2, c.gate);
        typed.in.shared.gate = gate.view();
        ExpectSame(typed.Run(), expected);
      }
    }
  }
}

TEST_P(CombineTest, SameBitsInFlushToZeroMode) {
  CombineShape s = {4, 8, 77};
  s.residual = true;
  CombineCase c(s, 10);
  for (float& x : c.rows) x *= 1e-38f;
  for (float& x : c.residual) x *= 1e-39f;
  const CombineResult expected = Combine(c, true);
  const ScopedFlushToZero flush;
  EXPECT_EQ(CanonicalBits(Combine(c, true)), CanonicalBits(expected));
}

// The types depend on the kind of executor, so that each kind tests another
// mix of types.
TEST_P(CombinePoolTest, SameBitsAsSerialOnEveryThread) {
  const CombineShape s = EveryPart(301, 8, 2048, SharedGate::kLogit);
  CombineCase c(s, 11);
  for (size_t i = 0; i < c.index.size(); i += 100) c.index[i] = -9;
  const CombineResult serial = CombineF32(c, true);
  executor().Rendezvous();
  const CombineResult r = CombineF32(c, true, executor());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  EXPECT_EQ(r.skipped, 25u);
  ExpectSame(r, serial);
  ASSERT_EQ(CombineF32(c, false, executor()).out, serial.out);

  const CombineTypes mix =
      EveryMix()[2 * static_cast<size_t>(GetParam().pool) + 1];
  SCOPED_TRACE(mix);
  TypedCombine typed(c, mix, true);
  const CombineResult expected = typed.Expected();
  ExpectSame(typed.Run(executor()), expected);
  // Passes slices of the rows, as an engine does in its own loop.
  const GuardedValues out(mix.out, s.tokens, s.hidden),
      normed(mix.normed, s.tokens, s.hidden);
  for (size_t begin = 0; begin < s.tokens; begin += 43) {
    const size_t end = begin + 43 < s.tokens ? begin + 43 : s.tokens;
    CombineInputs in = typed.in;
    in.topk_weights = in.topk_weights.RowRange(begin, end);
    in.row_index = in.row_index.RowRange(begin, end);
    in.shared.rows = in.shared.rows.RowRange(begin, end);
    in.shared.gate = in.shared.gate.RowRange(begin, end);
    in.residual = in.residual.RowRange(begin, end);
    ASSERT_OK(Combine(
        in,
        {out.view().RowRange(begin, end), normed.view().RowRange(begin, end)},
        {kEps, true}, executor()));
  }
  ExpectSame({out.Values(), normed.Values(), 25}, expected);
}

TEST(CombineAcrossIsas, FmaIsasAgree) {
  for (uint64_t seed = 200; seed < 230; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    CombineShape s = {1 + random.Below(4), 1 + random.Below(12),
                      1 + random.Below(300)};
    s.row_index = random.Below(2) != 0;
    s.shared = random.Below(2) != 0;
    s.kind = SharedGate::kLogit;
    s.residual = random.Below(2) != 0;
    CombineCase c(s, seed);
    if (seed % 2) {
      for (float& x : c.rows) x = random.AnyBits();
      for (float& w : c.weights) w = random.AnyBits();
      for (float& g : c.gate) g = random.AnyBits();
    }
    ExpectFmaIsasAgree([&] { return CanonicalBits(Combine(c, true)); });
  }
}

// Tests types other than f32. Each argument has its own type. Some rows are
// longer than the buffer for one row, and some rows are quantised. Some calls
// round intermediate results, like engines that run one operation after the
// other.

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
    // In f16 and in f32, the large scales make numbers overflow, and the small
    // scales make them denormal.
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

// The kernel computes `normed` from the unrounded sums. The rows are longer
// than the buffer for the sums. If the call has no `out`, the kernel has no
// other memory for the sums.
TEST_P(CombineTypesTest, LongRows) {
  for (const size_t hidden : {8192u, 8193u, 20480u}) {
    const size_t top_k = hidden == 8193 ? 70 : 2;
    CombineCase c(EveryPart(2, top_k, hidden), hidden);
    c.index[1] = -5;  // the report counts it once
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

// Expects the normed rows of the f32 kernel, converted by Quantize.
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

CombineResult Unfused(const TypedCombine& typed, const CombineTypes& types) {
  CombineInputs in = typed.f32().Inputs();
  in.norm_weight = typed.f32().norm_weight;
  CombineOptions options;
  options.eps = kEps;
  options.round_like_unfused = true;
  CombineResult r;
  for (size_t t = 0; t < typed.f32().shape.tokens; ++t) {
    const auto row = reference::CombineFormFixed(in, options, t, types.out);
    r.out.insert(r.out.end(), row.out.begin(), row.out.end());
    r.normed.insert(r.normed.end(), row.normed.begin(), row.normed.end());
  }
  r.normed = Rounded(types.normed, r.normed);
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

// Tests Combine() with any combination of its options. ISAs with FMA have to
// give the bits of the formula in f32. The other ISAs have to be close to
// double precision.

class CombineFormsTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(CombineFormsTest);

TEST_P(CombineFormsTest, AnyForm) {
  Random random(14);
  for (size_t i = 0; i < 200; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    fuzz::TestAny<fuzz::AnyCombine>(random, fuzz::AskedFor(i), executor());
  }
}

// Rows are longer than the kernel's buffer.
TEST_P(CombineFormsTest, WideRows) {
  Random random(15);
  for (size_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    fuzz::TestAny<fuzz::AnyCombine>(random, {true, 8192 + 700 * i, {}},
                                    executor());
  }
}

}  // namespace
}  // namespace switchyard::testing_support
