// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cmath>

#include "tests/call_errors.h"
#include "tests/row_types.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class ActivateTest : public IsaTest {};
class ActivatePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(ActivateTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ActivatePoolTest);

// out within 2.5 ulp of silu(gate) in its own scale, plus one rounding for the
// product with up.
void ExpectClose(const std::vector<float>& gate, const std::vector<float>& up,
                 const std::vector<float>& out) {
  ASSERT_EQ(gate.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const double exact = reference::Silu(static_cast<double>(gate[i])) *
                         static_cast<double>(up[i]);
    // A relative error of 2.5 ulp may be twice as many after the product.
    ASSERT_LE(UlpError(out[i], exact), 5.5)
        << "i=" << i << " gate=" << gate[i] << " up=" << up[i]
        << " out=" << out[i] << " exact=" << exact;
  }
}

constexpr GateUpLayout kFusedLayouts[] = {GateUpLayout::kConcatenated,
                                          GateUpLayout::kInterleaved};

// SiLU of rows stored in those types.
std::vector<float> Silu(const InOut& types, const std::vector<float>& gate,
                        const std::vector<float>& up, size_t rows,
                        Executor& executor = SerialExecutor()) {
  const size_t cols = gate.size() / rows;
  Stored g(types.in, gate), u(types.in, up);
  Stored out(types.out, std::vector<float>(gate.size(), 7.0f));
  EXPECT_OK(Activate({g.View(rows, cols), u.View(rows, cols)},
                     {out.View(rows, cols)}, {}, executor));
  return out.Values();
}
// The same by the f32 kernel.
std::vector<float> Expected(const InOut& types, const std::vector<float>& gate,
                            const std::vector<float>& up, size_t rows = 1) {
  return Rounded(types.out, Silu(kF32s, Rounded(types.in, gate),
                                 Rounded(types.in, up), rows));
}
// SiLU by the f32 kernel, after a look at the results of every other type.
std::vector<float> SiluOf(const std::vector<float>& gate,
                          const std::vector<float>& up, size_t rows = 1) {
  for (const InOut& types : EveryInOut()) {
    EXPECT_EQ(CanonicalBits(Silu(types, gate, up, rows)),
              CanonicalBits(Expected(types, gate, up, rows)))
        << types;
  }
  return Silu(kF32s, gate, up, rows);
}

// Values where something special happens, all of them against up = 1.
std::vector<float> SpecialGates() {
  std::vector<float> gates = {
      0.0f,      -0.0f,      kInf,   -kInf,   kNaN,       -kNaN,
      kDenormal, -kDenormal, 1e-38f, -1e-38f, 3.4e38f,    -3.4e38f,
      88.0f,     -88.0f,     87.0f,  -87.0f,  1e10f,      -1e10f,
      0x1p-149f, -0x1p-149f, 1.0f,   -1.0f,   -1.2784645f};
  // Around the flush threshold and the clamp, float by float.
  for (const float center : {-87.33655f, 87.0f, -88.72284f, 0.34657359f}) {
    for (const uint32_t i : {0u, 1u, 2u, 3u, 4u}) {
      gates.push_back(FromBits(Bits(center) - 2 + i));
    }
  }
  return gates;
}

TEST_P(ActivateTest, SpecialValues) {
  const std::vector<float> gates = SpecialGates();
  const std::vector<float> ones(gates.size(), 1.0f);
  const std::vector<float> out = SiluOf(gates, ones);
  for (size_t i = 0; i < gates.size(); ++i) {
    const double exact = reference::Silu(static_cast<double>(gates[i]));
    EXPECT_LE(UlpError(out[i], exact), 2.5) << "gate " << gates[i];
    if (!std::isnan(exact)) {
      EXPECT_EQ(std::signbit(out[i]), std::signbit(exact))
          << "gate " << gates[i];
    }
  }
  // The formula in f32 would make NaN of -inf, and is off by 1.7e7 ulp here.
  EXPECT_EQ(Bits(SiluOf({-kInf}, {1.0f})[0]), Bits(-0.0f));
  EXPECT_EQ(Bits(SiluOf({-90.0f}, {1.0f})[0]), Bits(-0.0f));
  EXPECT_EQ(SiluOf({kInf}, {1.0f})[0], kInf);
}

// Each special value at each position of a vector and of its tail: clamps and
// blends act on the lane they should and on no other.
TEST_P(ActivateTest, SpecialValuesInEveryLane) {
  const std::vector<float> gates = SpecialGates();
  for (size_t position = 0; position < 67; ++position) {
    for (const float special : gates) {
      std::vector<float> gate(67, 0.5f);
      gate[position] = special;
      const std::vector<float> out = SiluOf(gate, std::vector<float>(67, 2.0f));
      for (size_t i = 0; i < out.size(); ++i) {
        const double exact =
            2.0 * reference::Silu(static_cast<double>(gate[i]));
        ASSERT_LE(UlpError(out[i], exact), 2.5) << position << " " << i;
      }
    }
  }
}

TEST_P(ActivateTest, UpNaNAndInfinityPropagate) {
  EXPECT_TRUE(std::isnan(SiluOf({1.0f}, {kNaN})[0]));
  EXPECT_TRUE(std::isnan(SiluOf({kNaN}, {0.0f})[0]));
  EXPECT_TRUE(std::isnan(SiluOf({-kInf}, {kInf})[0]));  // -0 * inf
  EXPECT_EQ(SiluOf({-1.0f}, {kInf})[0], -kInf);
}

TEST_P(ActivateTest, EveryLengthAndMisalignment) {
  Random random(1);
  for (size_t cols = 0; cols <= 2 * 64 + 1; ++cols) {
    for (size_t slack = 0; slack <= 3; ++slack) {
      const std::vector<float> gate = random.Uniforms(cols, -20.0f, 20.0f);
      const std::vector<float> up = random.Uniforms(cols, -2.0f, 2.0f);
      ExpectClose(gate, up, Silu(kF32s, gate, up, 1));
      for (const InOut& types : EveryInOut()) {
        SCOPED_TRACE(testing::Message()
                     << types << ", " << cols << " cols, slack " << slack);
        const GuardedValues g(types.in, 1, cols, 0, slack, gate);
        const GuardedValues u(types.in, 1, cols, 0, (slack + 1) % 4, up);
        const GuardedValues o(types.out, 1, cols, 0, (slack + 2) % 4);
        ASSERT_OK(Activate({g.view(), u.view()}, {o.view()}));
        o.ExpectIntact("out");
        g.ExpectIntact("gate");
        ASSERT_EQ(CanonicalBits(o.Values()),
                  CanonicalBits(Expected(types, gate, up)));
        ASSERT_EQ(g.Values(), Rounded(types.in, gate));
      }
    }
  }
}

// Streaming stores: from every position in a cache line and to every end, rows
// of their own alignment, and in place, where there are none.
TEST_P(ActivateTest, StreamingStoresGiveTheSameBits) {
  const ActivateOptions streaming = {Activation::kSilu, GateUpLayout::kSplit,
                                     ActivateStores::kStreaming};
  Random random(9);
  for (size_t cols = 0; cols <= 2 * 64 + 17; ++cols) {
    for (const InOut& types : EveryInOut()) {
      const size_t line = 64 / SizeOf(types.out);
      for (size_t slack = cols % 2; slack <= line; slack += 1 + cols % 5) {
        SCOPED_TRACE(testing::Message()
                     << types << ", " << cols << " cols, slack " << slack);
        const size_t rows = 1 + cols % 3;
        const std::vector<float> gate = random.Uniforms(rows * cols, -90, 90);
        const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
        const GuardedValues g(types.in, rows, cols, 0, slack % 4, gate);
        const GuardedValues o(types.out, rows, cols, cols + cols % 5, slack);
        Stored u(types.in, up);
        const ActivateInputs in = {g.view(), u.View(rows, cols)};
        ASSERT_OK(Activate(in, {o.view()}, streaming));
        o.ExpectIntact("out");
        ASSERT_EQ(CanonicalBits(o.Values()),
                  CanonicalBits(Expected(types, gate, up, rows)));
        if (types.in != types.out) continue;
        ASSERT_OK(Activate(in, {g.view()}, streaming));
        g.ExpectIntact("gate");
        ASSERT_EQ(CanonicalBits(g.Values()), CanonicalBits(o.Values()));
      }
    }
  }
}

TEST_P(ActivateTest, StridedViewsLeaveTheGapsAlone) {
  Random random(2);
  const size_t rows = 5, cols = 37;
  const std::vector<float> gate = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -9.0f, 9.0f);
  ExpectClose(gate, up, Silu(kF32s, gate, up, rows));
  for (const InOut& types : EveryInOut()) {
    SCOPED_TRACE(types);
    const GuardedValues g(types.in, rows, cols, 41, 0, gate);
    const GuardedValues u(types.in, rows, cols, 53, 0, up);
    const GuardedValues o(types.out, rows, cols, 38);
    ASSERT_OK(Activate({g.view(), u.view()}, {o.view()}));
    o.ExpectIntact("out");
    EXPECT_EQ(o.Values(), Expected(types, gate, up, rows));
  }
}

TEST_P(ActivateTest, InPlaceOnGateAndOnUp) {
  Random random(3);
  const std::vector<float> gate = random.Uniforms(3 * 50, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(3 * 50, -9.0f, 9.0f);
  for (const Type type : kFloatTypes) {
    for (const bool on_gate : {true, false}) {
      Stored g(type, gate), u(type, up);
      Stored& out = on_gate ? g : u;
      ASSERT_OK(Activate({g.View(3, 50), u.View(3, 50)}, {out.View(3, 50)}));
      EXPECT_EQ(out.Values(), Expected({type, type}, gate, up, 3)) << type;
    }
  }
}

// Gate and up values, where the layout keeps them in one row.
std::vector<float> FusedRows(GateUpLayout layout, size_t cols,
                             const std::vector<float>& gate,
                             const std::vector<float>& up) {
  const bool interleaved = layout == GateUpLayout::kInterleaved;
  std::vector<float> both(2 * gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    float* const row = &both[i / cols * 2 * cols];
    const size_t c = i % cols;
    row[interleaved ? 2 * c : c] = gate[i];
    row[interleaved ? 2 * c + 1 : cols + c] = up[i];
  }
  return both;
}

// Every length, misaligned, between guard pages, with both kinds of stores.
TEST_P(ActivateTest, LayoutsGiveTheSameBitsAsSplit) {
  Random random(10);
  for (const GateUpLayout layout : kFusedLayouts) {
    for (size_t cols = 0; cols <= 2 * 64 + 1; ++cols) {
      const size_t rows = 1 + cols % 3;
      std::vector<float> gate = random.AnyBits(rows * cols);
      std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
      for (size_t i = 0; i < gate.size(); i += 2) {
        gate[i] = random.Uniform(-90.0f, 20.0f);
      }
      const std::vector<float> both = FusedRows(layout, cols, gate, up);
      for (const InOut& types : EveryInOut()) {
        const std::vector<float> expected = Expected(types, gate, up, rows);
        const size_t slack = random.Below(4);
        const GuardedValues fused(types.in, rows, 2 * cols, 2 * cols + slack,
                                  slack, both);
        for (const ActivateStores stores :
             {ActivateStores::kAuto, ActivateStores::kStreaming}) {
          SCOPED_TRACE(testing::Message()
                       << types << ", layout " << static_cast<int>(layout)
                       << " cols " << cols << " slack " << slack);
          const GuardedValues out(types.out, rows, cols, cols + cols % 5,
                                  3 - slack);
          ASSERT_OK(Activate({fused.view()}, {out.view()},
                             {Activation::kSilu, layout, stores}));
          out.ExpectIntact("out");
          fused.ExpectIntact("fused");
          ASSERT_EQ(CanonicalBits(out.Values()), CanonicalBits(expected));
          // Inputs are only read.
          ASSERT_EQ(CanonicalBits(fused.Values()),
                    CanonicalBits(Rounded(types.in, both)));
        }
      }
    }
  }
}

// Rows are concatenated, or given as two views of their halves, which says the
// same.
TEST_P(ActivateTest, InPlaceOnEitherHalf) {
  constexpr GateUpLayout kLayouts[] = {GateUpLayout::kConcatenated,
                                       GateUpLayout::kSplit};
  Random random(11);
  for (size_t cols = 1; cols <= 2 * 64 + 1; ++cols) {
    const size_t rows = 1 + cols % 4;
    const std::vector<float> gate = random.Uniforms(rows * cols, -20.0f, 20.0f);
    const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
    for (const Type type : kFloatTypes) {
      const std::vector<float> expected =
          Expected({type, type}, gate, up, rows);
      for (const bool on_gate : {true, false}) {
        for (const GateUpLayout layout : kLayouts) {
          const GuardedValues fused(type, rows, 2 * cols, 2 * cols + cols % 4,
                                    cols % 4,
                                    FusedRows(kLayouts[0], cols, gate, up));
          const AnyMatrix halves[] = {fused.view().ColRange(0, cols),
                                      fused.view().ColRange(cols, 2 * cols)};
          ActivateInputs in = {fused.view()};
          if (layout == GateUpLayout::kSplit) in = {halves[0], halves[1]};
          ASSERT_OK(Activate(in, {halves[on_gate ? 0 : 1]},
                             {Activation::kSilu, layout}));
          fused.ExpectIntact("fused");
          ASSERT_EQ(fused.Values(),
                    Rounded(type, FusedRows(kLayouts[0], cols,
                                            on_gate ? expected : gate,
                                            on_gate ? up : expected)))
              << type << " " << cols;
        }
      }
    }
  }
}

// Around the tiles that rows are converted in, in every place and layout.
TEST_P(ActivateTest, LongRows) {
  Random random(13);
  for (const size_t cols : {1023u, 1024u, 1025u, 2100u, 17001u}) {
    const std::vector<float> gate = random.Uniforms(2 * cols, -20.0f, 20.0f);
    const std::vector<float> up = random.Uniforms(2 * cols, -2.0f, 2.0f);
    for (const InOut& types : EveryInOut()) {
      SCOPED_TRACE(testing::Message() << types << ", " << cols << " cols");
      const std::vector<float> expected = Expected(types, gate, up, 2);
      for (const GateUpLayout layout : kFusedLayouts) {
        const GuardedValues fused(types.in, 2, 2 * cols, 0, 1,
                                  FusedRows(layout, cols, gate, up));
        for (const ActivateStores stores :
             {ActivateStores::kCached, ActivateStores::kStreaming}) {
          const GuardedValues out(types.out, 2, cols, cols + 1, 2);
          ASSERT_OK(Activate({fused.view()}, {out.view()},
                             {Activation::kSilu, layout, stores}));
          out.ExpectIntact("out");
          ASSERT_EQ(out.Values(), expected);
        }
        if (layout == GateUpLayout::kInterleaved || types.in != types.out) {
          continue;
        }
        const AnyMatrix out = fused.view().ColRange(cols, 2 * cols);
        ASSERT_OK(Activate({fused.view()}, {out}, {Activation::kSilu, layout}));
        fused.ExpectIntact("fused");
        ASSERT_EQ(fused.Values(),
                  FusedRows(layout, cols, Rounded(types.in, gate), expected));
      }
    }
  }
}

TEST_P(ActivateTest, SameBitsInFlushToZeroMode) {
  Random random(5);
  std::vector<float> gate = random.Uniforms(300, -90.0f, 90.0f);
  const std::vector<float> up(300, kDenormal);
  for (size_t i = 0; i < 100; ++i) gate[i] = kDenormal * random.Uniform(0, 9);
  const std::vector<float> expected = SiluOf(gate, up, 3);
  EXPECT_NE(expected[299], 0.0f);
  for (const InOut& types : EveryInOut()) {
    const std::vector<float> same = Silu(types, gate, up, 3);
    const ScopedFlushToZero flush;
    EXPECT_EQ(CanonicalBits(Silu(types, gate, up, 3)), CanonicalBits(same))
        << types;
  }
}

// Another mix of types for each kind of executor.
TEST_P(ActivatePoolTest, SameBitsAsSerialOnEveryThread) {
  Random random(6);
  // Well over seven grains of 30 us.
  const size_t rows = 1021, cols = 1001;
  const std::vector<float> gate = random.Uniforms(rows * cols, -60.0f, 60.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
  executor().Rendezvous();
  const std::vector<float> out = Silu(kF32s, gate, up, rows, executor());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  ExpectClose(gate, up, out);
  ASSERT_EQ(CanonicalBits(out), CanonicalBits(Silu(kF32s, gate, up, rows)));
  const InOut types = EveryInOut()[1 + static_cast<size_t>(GetParam().pool)];
  const std::vector<float> expected = Expected(types, gate, up, rows);
  ASSERT_EQ(Silu(types, gate, up, rows, executor()), expected) << types;
  // Any batch split gives the same bits.
  Stored g(types.in, gate), u(types.in, up);
  Stored slices(types.out, std::vector<float>(out.size()));
  for (size_t r = 0; r < rows;) {
    const size_t end = std::min<size_t>(rows, r + 1 + random.Below(9));
    const auto part = [&](Stored& all) {
      return all.View(rows, cols).RowRange(r, end);
    };
    ASSERT_OK(Activate({part(g), part(u)}, {part(slices)}, {}, executor()));
    r = end;
  }
  EXPECT_EQ(slices.Values(), expected);
}

// Any bit patterns at all, and the same bits on all ISAs with FMA.
TEST(ActivateAcrossIsas, FmaIsasAgree) {
  for (uint64_t seed = 100; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<float> gate, up;
    for (size_t i = 0; i < 5000; ++i) {
      gate.push_back(i % 2 ? random.AnyBits() : random.Uniform(-100, 100));
      up.push_back(i % 3 ? random.AnyBits() : 1.0f);
    }
    ExpectFmaIsasAgree([&] { return CanonicalBits(SiluOf(gate, up)); });
  }
}

}  // namespace
}  // namespace switchyard::testing_support
