// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cmath>

#include "tests/call_errors.h"

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

std::vector<float> SiluOf(const std::vector<float>& gate,
                          const std::vector<float>& up, size_t rows = 1,
                          Executor& executor = SerialExecutor()) {
  const size_t cols = gate.size() / rows;
  std::vector<float> out(gate.size());
  EXPECT_OK(Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
                     {{out.data(), rows, cols}}, {}, executor));
  return out;
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
      const Guarded<float> g(gate, slack);
      const Guarded<float> u(up, (slack + 1) % 4);
      const Guarded<float> o(1, cols, 0, (slack + 2) % 4);
      ASSERT_OK(Activate({g.view(), u.view()}, {o.view()}));
      o.ExpectIntact("out");
      g.ExpectIntact("gate");
      ExpectClose(gate, up, o.Values());
      ASSERT_EQ(CanonicalBits(o.Values()), CanonicalBits(SiluOf(gate, up)));
      ASSERT_EQ(g.Values(), gate);
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
    for (size_t slack = 0; slack <= 16; slack += 1 + cols % 3) {
      const size_t rows = 1 + cols % 3;
      const std::vector<float> gate = random.Uniforms(rows * cols, -90, 90);
      const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
      const Guarded<float> g(rows, cols, 0, slack % 4, gate);
      const Guarded<float> o(rows, cols, cols + cols % 5, slack);
      const ActivateInputs in = {g.view(), {up.data(), rows, cols}};
      ASSERT_OK(Activate(in, {o.view()}, streaming));
      o.ExpectIntact("out");
      ASSERT_EQ(CanonicalBits(o.Values()),
                CanonicalBits(SiluOf(gate, up, rows)))
          << cols << " " << slack;
      ASSERT_OK(Activate(in, {g.view()}, streaming));
      g.ExpectIntact("gate");
      ASSERT_EQ(CanonicalBits(g.Values()), CanonicalBits(o.Values()));
    }
  }
}

TEST_P(ActivateTest, StridedViewsLeaveTheGapsAlone) {
  Random random(2);
  const size_t rows = 5, cols = 37;
  const std::vector<float> gate = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const Guarded<float> g(rows, cols, 41, 0, gate), u(rows, cols, 53, 0, up);
  const Guarded<float> o(rows, cols, 38);
  ASSERT_OK(Activate({g.view(), u.view()}, {o.view()}));
  o.ExpectIntact("out");
  ExpectClose(gate, up, o.Values());
}

TEST_P(ActivateTest, InPlaceOnGateAndOnUp) {
  Random random(3);
  const std::vector<float> gate = random.Uniforms(3 * 50, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(3 * 50, -9.0f, 9.0f);
  const std::vector<float> expected = SiluOf(gate, up, 3);
  for (const bool on_gate : {true, false}) {
    std::vector<float> g = gate, u = up;
    std::vector<float>& out = on_gate ? g : u;
    ASSERT_OK(Activate({{g.data(), 3, 50}, {u.data(), 3, 50}},
                       {{out.data(), 3, 50}}));
    EXPECT_EQ(out, expected);
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
      for (size_t slack = 0; slack <= 3; ++slack) {
        const size_t rows = 1 + (cols + slack) % 3;
        std::vector<float> gate = random.AnyBits(rows * cols);
        std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
        for (size_t i = 0; i < gate.size(); i += 2) {
          gate[i] = random.Uniform(-90.0f, 20.0f);
        }
        const std::vector<float> expected = SiluOf(gate, up, rows);
        const std::vector<float> both = FusedRows(layout, cols, gate, up);
        const Guarded<float> fused(rows, 2 * cols, 2 * cols + slack, slack,
                                   both);
        for (const ActivateStores stores :
             {ActivateStores::kAuto, ActivateStores::kStreaming}) {
          SCOPED_TRACE(testing::Message()
                       << "layout " << static_cast<int>(layout) << " cols "
                       << cols << " slack " << slack);
          const Guarded<float> out(rows, cols, cols + cols % 5, 3 - slack);
          ASSERT_OK(Activate({fused.view()}, {out.view()},
                             {Activation::kSilu, layout, stores}));
          out.ExpectIntact("out");
          fused.ExpectIntact("fused");
          ASSERT_EQ(CanonicalBits(out.Values()), CanonicalBits(expected));
          // Inputs are only read.
          ASSERT_EQ(CanonicalBits(fused.Values()), CanonicalBits(both));
        }
      }
    }
  }
}

// Of concatenated rows, or of two views of their halves, which say the same.
TEST_P(ActivateTest, InPlaceOnEitherHalf) {
  Random random(11);
  for (size_t cols = 1; cols <= 2 * 64 + 1; ++cols) {
    const size_t rows = 1 + cols % 4;
    const std::vector<float> gate = random.Uniforms(rows * cols, -20.0f, 20.0f);
    const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
    const std::vector<float> expected = SiluOf(gate, up, rows);
    for (const bool on_gate : {true, false}) {
      for (const GateUpLayout layout :
           {GateUpLayout::kConcatenated, GateUpLayout::kSplit}) {
        const Guarded<float> fused(
            rows, 2 * cols, 2 * cols + cols % 4, cols % 4,
            FusedRows(GateUpLayout::kConcatenated, cols, gate, up));
        const Matrix<float> halves[] = {fused.view().ColRange(0, cols),
                                        fused.view().ColRange(cols, 2 * cols)};
        ActivateInputs in = {fused.view()};
        if (layout == GateUpLayout::kSplit) in = {halves[0], halves[1]};
        ASSERT_OK(Activate(in, {halves[on_gate ? 0 : 1]},
                           {Activation::kSilu, layout}));
        fused.ExpectIntact("fused");
        ASSERT_EQ(CanonicalBits(fused.Values()),
                  CanonicalBits(FusedRows(GateUpLayout::kConcatenated, cols,
                                          on_gate ? expected : gate,
                                          on_gate ? up : expected)))
            << cols;
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
  const ScopedFlushToZero flush;
  EXPECT_EQ(CanonicalBits(SiluOf(gate, up, 3)), CanonicalBits(expected));
}

TEST_P(ActivatePoolTest, SameBitsAsSerialOnEveryThread) {
  Random random(6);
  // Well over seven grains of 30 us.
  const size_t rows = 1021, cols = 1001;
  const std::vector<float> gate = random.Uniforms(rows * cols, -60.0f, 60.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
  executor().Rendezvous();
  const std::vector<float> out = SiluOf(gate, up, rows, executor());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  ExpectClose(gate, up, out);
  ASSERT_EQ(CanonicalBits(out), CanonicalBits(SiluOf(gate, up, rows)));
  // Any batch split gives the same bits.
  std::vector<float> slices(out.size());
  for (size_t r = 0; r < rows;) {
    const size_t n = std::min<size_t>(rows - r, 1 + random.Below(9));
    ASSERT_OK(Activate({{&gate[r * cols], n, cols}, {&up[r * cols], n, cols}},
                       {{&slices[r * cols], n, cols}}, {}, executor()));
    r += n;
  }
  EXPECT_EQ(CanonicalBits(slices), CanonicalBits(out));
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

class ActivateErrors
    : public CallErrors<ActivateInputs, ActivateOutputs, ActivateOptions> {
 protected:
  ActivateErrors()
      : CallErrors("Activate", Activate),
        gate_(64, 1.0f),
        up_(64, 1.0f),
        out_(4, 8) {
    call_ = {{{gate_.data(), 4, 8}, {up_.data(), 4, 8}}, {out_.view()}, {}};
  }
  void ExpectUntouched() const override { out_.ExpectUntouched("out"); }

  // Both in `gate` instead.
  void Fuse(GateUpLayout layout) {
    call_.in = {{gate_.data(), 4, 16}};
    call_.options.layout = layout;
  }

  std::vector<float> gate_, up_;
  Guarded<float> out_;
};

TEST_F(ActivateErrors, Views) {
  ExpectViewErrors("gate", [](Call& c) { return &c.in.gate; });
  ExpectViewErrors("up", [](Call& c) { return &c.in.up; });
  ExpectViewErrors("out", [](Call& c) { return &c.out.out; });
}

TEST_F(ActivateErrors, Shapes) {
  EXPECT_SIZE_ERRORS("up: is not [rows, cols]", c.in.up, 3, 7);
  EXPECT_ERROR("up: is not [rows, cols]", c.in.up = {});
  EXPECT_SIZE_ERRORS("gate: is not [rows, cols]", c.in.gate, 3, 7);
  EXPECT_SIZE_ERRORS("gate: is not [rows, cols]", c.out.out, 3, 7);
  for (const GateUpLayout layout : kFusedLayouts) {
    Fuse(layout);
    EXPECT_OK(Run({call_.in, {{up_.data(), 4, 8}}, call_.options}));
    EXPECT_ERROR("gate: is not [rows, 2 * cols]", c.in.gate.cols = 8);
    EXPECT_ERROR("gate: is not [rows, 2 * cols]", c.in.gate.rows = 3);
    EXPECT_ERROR("gate: is not [rows, 2 * cols]", c.out.out.cols = 7);
    EXPECT_ERROR("up: given beside both in gate", c.in.up = {up_.data(), 4, 8});
  }
}

TEST_F(ActivateErrors, Overlaps) {
  const auto expect = [&](const std::string& message, const AnyMatrix& gate,
                          const AnyMatrix& up, const AnyMatrix& out) {
    EXPECT_ERROR("out: overlaps " + message, c.in = {gate, up}, c.out = {out});
  };
  const std::string other_gate = "gate without being the same view";
  const std::string other_up = "up without being the same view";
  float* const o = out_.data();
  expect(other_gate, {o + 1, 3, 8}, {up_.data(), 3, 8}, {o, 3, 8});
  expect(other_gate, {o, 2, 8, 16}, {up_.data(), 2, 8}, {o, 2, 8});
  // Part of the columns of a wider matrix, by one.
  expect(other_up, {gate_.data(), 2, 8, 16}, {o, 2, 8, 16}, {o + 7, 2, 8, 16});
  Fuse(GateUpLayout::kConcatenated);
  // Half of one half and half of the other.
  expect(other_gate, {o, 2, 16}, {}, {o + 4, 2, 8, 16});
  expect(other_up, {o, 1, 16}, {}, {o + 9, 1, 8});
  // Interleaved, there is no part of gate that out could be.
  Fuse(GateUpLayout::kInterleaved);
  for (const size_t first : {0u, 1u, 8u}) {
    expect("gate", {o, 2, 16}, {}, {o + first, 2, 8, 16});
  }
  expect("gate", {o, 1, 16}, {}, {o + 15, 1, 8});
}

TEST_F(ActivateErrors, Options) {
  EXPECT_ERROR("options: activation is not a known Activation",
               c.options.activation = static_cast<Activation>(99));
  EXPECT_ERROR("options: layout is not a known GateUpLayout",
               c.options.layout = static_cast<GateUpLayout>(3));
  EXPECT_ERROR("options: stores is not a known ActivateStores",
               c.options.stores = static_cast<ActivateStores>(3));
}

TEST_F(ActivateErrors, NothingToDoIsFine) {
  EXPECT_OK(Activate({}, {}));
  const float* const none = nullptr;
  float* const nowhere = nullptr;
  for (const size_t rows : {0u, 8u}) {
    const size_t cols = 8 - rows;
    EXPECT_OK(Activate({{none, rows, cols}, {none, rows, cols}},
                       {{nowhere, rows, cols}}));
    for (const GateUpLayout layout : kFusedLayouts) {
      EXPECT_OK(Activate({{none, rows, 2 * cols}}, {{nowhere, rows, cols}},
                         {Activation::kSilu, layout}));
    }
  }
}

TEST_F(ActivateErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace switchyard::testing_support
