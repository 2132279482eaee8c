// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/call_errors.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
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

std::vector<float> SiluOf(const std::vector<float>& gate,
                          const std::vector<float>& up, size_t rows,
                          Executor& executor = SerialExecutor()) {
  const size_t cols = gate.size() / rows;
  std::vector<float> out(gate.size());
  const Status status =
      Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
               {{out.data(), rows, cols}}, {}, executor);
  EXPECT_TRUE(status.ok()) << status.message();
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
    float x = std::nextafter(std::nextafter(center, -kInf), -kInf);
    for (int i = 0; i < 5; ++i, x = std::nextafter(x, kInf)) {
      gates.push_back(x);
    }
  }
  return gates;
}

TEST_P(ActivateTest, SpecialValues) {
  const std::vector<float> gates = SpecialGates();
  const std::vector<float> ones(gates.size(), 1.0f);
  const std::vector<float> out = SiluOf(gates, ones, 1);
  for (size_t i = 0; i < gates.size(); ++i) {
    const double exact = reference::Silu(static_cast<double>(gates[i]));
    EXPECT_LE(UlpError(out[i], exact), 2.5) << "gate " << gates[i];
    if (!std::isnan(exact)) {
      EXPECT_EQ(std::signbit(out[i]), std::signbit(exact))
          << "gate " << gates[i];
    }
  }
  // The formula in f32 would make NaN of -inf, and is off by 1.7e7 ulp here.
  EXPECT_EQ(Bits(SiluOf({-kInf}, {1.0f}, 1)[0]), Bits(-0.0f));
  EXPECT_EQ(Bits(SiluOf({-90.0f}, {1.0f}, 1)[0]), Bits(-0.0f));
  EXPECT_EQ(SiluOf({kInf}, {1.0f}, 1)[0], kInf);
}

// Each special value at each position of a vector and of its tail: clamps and
// blends act on the lane they should and on no other.
TEST_P(ActivateTest, SpecialValuesInEveryLane) {
  const std::vector<float> gates = SpecialGates();
  for (size_t position = 0; position < 67; ++position) {
    for (const float special : gates) {
      std::vector<float> gate(67, 0.5f);
      gate[position] = special;
      const std::vector<float> out =
          SiluOf(gate, std::vector<float>(67, 2.0f), 1);
      for (size_t i = 0; i < out.size(); ++i) {
        const double exact =
            2.0 * reference::Silu(static_cast<double>(gate[i]));
        ASSERT_LE(UlpError(out[i], exact), 2.5) << position << " " << i;
      }
    }
  }
}

TEST_P(ActivateTest, UpNaNAndInfinityPropagate) {
  EXPECT_TRUE(std::isnan(SiluOf({1.0f}, {kNaN}, 1)[0]));
  EXPECT_TRUE(std::isnan(SiluOf({kNaN}, {0.0f}, 1)[0]));
  EXPECT_TRUE(std::isnan(SiluOf({-kInf}, {kInf}, 1)[0]));  // -0 * inf
  EXPECT_EQ(SiluOf({-1.0f}, {kInf}, 1)[0], -kInf);
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
      const Status status = Activate({g.view(), u.view()}, {o.view()});
      ASSERT_TRUE(status.ok()) << status.message();
      o.ExpectIntact("out");
      g.ExpectIntact("gate");
      ExpectClose(gate, up, o.Values());
      ASSERT_EQ(CanonicalBits(o.Values()), CanonicalBits(SiluOf(gate, up, 1)));
      ASSERT_EQ(g.Values(), gate);
    }
  }
}

// Streaming stores: from every position in a cache line and to every end, rows
// of their own alignment, and in place, where there are none.
TEST_P(ActivateTest, StreamingStoresGiveTheSameBits) {
  ActivateOptions streaming;
  streaming.stores = ActivateStores::kStreaming;
  Random random(9);
  for (size_t cols = 0; cols <= 2 * 64 + 17; ++cols) {
    for (size_t slack = 0; slack <= 16; slack += 1 + cols % 3) {
      const size_t rows = 1 + cols % 3;
      const std::vector<float> gate = random.Uniforms(rows * cols, -90, 90);
      const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
      const Guarded<float> g(rows, cols, 0, slack % 4);
      const Guarded<float> o(rows, cols, cols + cols % 5, slack);
      g.Fill(gate);
      ASSERT_TRUE(
          Activate({g.view(), {up.data(), rows, cols}}, {o.view()}, streaming)
              .ok());
      o.ExpectIntact("out");
      ASSERT_EQ(CanonicalBits(o.Values()),
                CanonicalBits(SiluOf(gate, up, rows)))
          << cols << " " << slack;
      ASSERT_TRUE(
          Activate({g.view(), {up.data(), rows, cols}}, {g.view()}, streaming)
              .ok());
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
  const Guarded<float> g(rows, cols, 41), u(rows, cols, 53), o(rows, cols, 38);
  g.Fill(gate);
  u.Fill(up);
  ASSERT_TRUE(Activate({g.view(), u.view()}, {o.view()}).ok());
  o.ExpectIntact("out");
  ExpectClose(gate, up, o.Values());
}

TEST_P(ActivateTest, InPlaceOnGateAndOnUp) {
  Random random(3);
  const std::vector<float> gate = random.Uniforms(3 * 50, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(3 * 50, -9.0f, 9.0f);
  const std::vector<float> expected = SiluOf(gate, up, 3);
  std::vector<float> g = gate, u = up;
  ASSERT_TRUE(
      Activate({{g.data(), 3, 50}, {up.data(), 3, 50}}, {{g.data(), 3, 50}})
          .ok());
  EXPECT_EQ(g, expected);
  ASSERT_TRUE(
      Activate({{gate.data(), 3, 50}, {u.data(), 3, 50}}, {{u.data(), 3, 50}})
          .ok());
  EXPECT_EQ(u, expected);
}

// Views of two halves, the way before there were layouts.
TEST_P(ActivateTest, FusedGateUpWritesTheGateHalf) {
  Random random(4);
  for (const size_t cols : {1u, 7u, 16u, 40u}) {
    const size_t rows = 4;
    const std::vector<float> both =
        random.Uniforms(rows * 2 * cols, -9.0f, 9.0f);
    const Guarded<float> fused(rows, 2 * cols);
    fused.Fill(both);
    const Matrix<float> gate = fused.view().ColRange(0, cols);
    const Matrix<float> up = fused.view().ColRange(cols, 2 * cols);
    const Status status = Activate({gate, up}, {gate});
    ASSERT_TRUE(status.ok()) << status.message();
    fused.ExpectIntact("fused");
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        const float g = both[r * 2 * cols + c];
        const float u = both[r * 2 * cols + cols + c];
        EXPECT_EQ(fused.At(r, c), SiluOf({g}, {u}, 1)[0]);
        EXPECT_EQ(fused.At(r, cols + c), u);
      }
    }
  }
}

// Gate and up values where the layout keeps them in one row.
struct Both {
  GateUpLayout layout;
  size_t cols;
  size_t Gate(size_t c) const {
    return layout == GateUpLayout::kInterleaved ? 2 * c : c;
  }
  size_t Up(size_t c) const {
    return layout == GateUpLayout::kInterleaved ? 2 * c + 1 : cols + c;
  }
};

// Every length, misaligned, between guard pages, with both kinds of stores.
TEST_P(ActivateTest, LayoutsGiveTheSameBitsAsSplit) {
  Random random(10);
  for (const GateUpLayout layout :
       {GateUpLayout::kConcatenated, GateUpLayout::kInterleaved}) {
    for (size_t cols = 0; cols <= 2 * 64 + 1; ++cols) {
      const Both both = {layout, cols};
      for (size_t slack = 0; slack <= 3; ++slack) {
        const size_t rows = 1 + (cols + slack) % 3;
        std::vector<float> gate = random.AnyBits(rows * cols);
        std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
        for (size_t i = 0; i < gate.size(); i += 2) {
          gate[i] = random.Uniform(-90.0f, 20.0f);
        }
        const std::vector<float> expected = SiluOf(gate, up, rows);
        const Guarded<float> fused(rows, 2 * cols, 2 * cols + slack, slack);
        for (size_t i = 0; i < gate.size(); ++i) {
          fused.At(i / cols, both.Gate(i % cols)) = gate[i];
          fused.At(i / cols, both.Up(i % cols)) = up[i];
        }
        const std::vector<float> before = fused.Values();
        for (const ActivateStores stores :
             {ActivateStores::kAuto, ActivateStores::kStreaming}) {
          SCOPED_TRACE(testing::Message()
                       << "layout " << static_cast<int>(layout) << " cols "
                       << cols << " slack " << slack);
          const Guarded<float> out(rows, cols, cols + cols % 5, 3 - slack);
          ActivateOptions options;
          options.layout = layout;
          options.stores = stores;
          const Status status = Activate({fused.view()}, {out.view()}, options);
          ASSERT_TRUE(status.ok()) << status.message();
          out.ExpectIntact("out");
          fused.ExpectIntact("fused");
          ASSERT_EQ(CanonicalBits(out.Values()), CanonicalBits(expected));
          // Inputs are only read.
          ASSERT_EQ(CanonicalBits(fused.Values()), CanonicalBits(before));
        }
      }
    }
  }
}

TEST_P(ActivateTest, ConcatenatedInPlaceOnEitherHalf) {
  Random random(11);
  ActivateOptions options;
  options.layout = GateUpLayout::kConcatenated;
  for (size_t cols = 1; cols <= 2 * 64 + 1; ++cols) {
    const size_t rows = 1 + cols % 3;
    const std::vector<float> gate = random.Uniforms(rows * cols, -20.0f, 20.0f);
    const std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
    const std::vector<float> expected = SiluOf(gate, up, rows);
    for (const size_t half : {0u, 1u}) {
      const Guarded<float> fused(rows, 2 * cols, 2 * cols + cols % 4, cols % 4);
      for (size_t i = 0; i < gate.size(); ++i) {
        fused.At(i / cols, i % cols) = gate[i];
        fused.At(i / cols, cols + i % cols) = up[i];
      }
      const Matrix<float> out =
          fused.view().ColRange(half * cols, (half + 1) * cols);
      ASSERT_TRUE(Activate({fused.view()}, {out}, options).ok());
      fused.ExpectIntact("fused");
      const std::vector<float>& other = half == 0 ? up : gate;
      for (size_t i = 0; i < gate.size(); ++i) {
        const size_t r = i / cols, c = i % cols;
        ASSERT_EQ(Bits(out.Row(r)[c]), Bits(expected[i])) << cols << " " << i;
        ASSERT_EQ(fused.At(r, (1 - half) * cols + c), other[i]);
      }
    }
  }
}

TEST_P(ActivateTest, SameBitsInFlushToZeroMode) {
  Random random(5);
  std::vector<float> gate = random.Uniforms(300, -90.0f, 90.0f);
  std::vector<float> up(300, kDenormal);
  for (size_t i = 0; i < 100; ++i) gate[i] = kDenormal * random.Uniform(0, 9);
  const std::vector<float> expected = SiluOf(gate, up, 3);
  EXPECT_NE(expected[299], 0.0f);
  const ScopedFlushToZero flush;
  const std::vector<float> actual = SiluOf(gate, up, 3);
  EXPECT_EQ(CanonicalBits(actual), CanonicalBits(expected));
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
    ASSERT_TRUE(Activate({{&gate[r * cols], n, cols}, {&up[r * cols], n, cols}},
                         {{&slices[r * cols], n, cols}}, {}, executor())
                    .ok());
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
    std::vector<uint32_t> first;
    for (const std::string& isa : FmaIsaNames()) {
      const ScopedIsa scoped(isa);
      const std::vector<uint32_t> bits = CanonicalBits(SiluOf(gate, up, 1));
      ASSERT_EQ(LastIsa()->name, isa);
      if (first.empty()) first = bits;
      ASSERT_EQ(bits, first) << isa;
    }
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
  Expect("up: is not [rows, cols]", [](Call& c) { c.in.up.rows = 3; });
  Expect("up: is not [rows, cols]", [](Call& c) { c.in.up.cols = 7; });
  Expect("up: is not [rows, cols]", [](Call& c) { c.in.up = {}; });
  Expect("gate: is not [rows, cols]", [](Call& c) { c.in.gate.rows = 3; });
  Expect("gate: is not [rows, cols]", [](Call& c) { c.in.gate.cols = 7; });
  Expect("gate: is not [rows, cols]", [](Call& c) { c.out.out.rows = 3; });
  Expect("gate: is not [rows, cols]", [](Call& c) { c.out.out.cols = 7; });
  for (const GateUpLayout layout :
       {GateUpLayout::kConcatenated, GateUpLayout::kInterleaved}) {
    Fuse(layout);
    EXPECT_TRUE(Run({call_.in, {{up_.data(), 4, 8}}, call_.options}).ok());
    Expect("gate: is not [rows, 2 * cols]",
           [](Call& c) { c.in.gate.cols = 8; });
    Expect("gate: is not [rows, 2 * cols]",
           [](Call& c) { c.in.gate.rows = 3; });
    Expect("gate: is not [rows, 2 * cols]",
           [](Call& c) { c.out.out.cols = 7; });
    Expect("up: given beside both in gate", [&](Call& c) {
      c.in.up = {up_.data(), 4, 8};
    });
  }
}

TEST_F(ActivateErrors, Overlaps) {
  Expect("out: overlaps gate without being the same view", [&](Call& c) {
    c.in.gate = {out_.data() + 1, 3, 8};
    c.in.up.rows = c.out.out.rows = 3;
  });
  Expect("out: overlaps gate without being the same view", [&](Call& c) {
    c.in.gate = {out_.data(), 2, 8, 16};
    c.in.up.rows = c.out.out.rows = 2;
  });
  // Part of the columns of a wider matrix, by one.
  Expect("out: overlaps up without being the same view", [&](Call& c) {
    c.in.gate = {gate_.data(), 2, 8, 16};
    c.in.up = {out_.data(), 2, 8, 16};
    c.out.out = {out_.data() + 7, 2, 8, 16};
  });
  Fuse(GateUpLayout::kConcatenated);
  // Half of one half and half of the other.
  Expect("out: overlaps gate without being the same view", [&](Call& c) {
    c.in.gate = {out_.data(), 2, 16};
    c.out.out = {out_.data() + 4, 2, 8, 16};
  });
  Expect("out: overlaps up without being the same view", [&](Call& c) {
    c.in.gate = {out_.data(), 1, 16};
    c.out.out = {out_.data() + 9, 1, 8};
  });
  // Interleaved, there is no part of gate that out could be.
  Fuse(GateUpLayout::kInterleaved);
  for (const size_t first : {0u, 1u, 8u}) {
    Expect("out: overlaps gate", [&](Call& c) {
      c.in.gate = {out_.data(), 2, 16};
      c.out.out = {out_.data() + first, 2, 8, 16};
    });
  }
  Expect("out: overlaps gate", [&](Call& c) {
    c.in.gate = {out_.data(), 1, 16};
    c.out.out = {out_.data() + 15, 1, 8};
  });
}

TEST_F(ActivateErrors, Options) {
  Expect("options: activation is not a known Activation",
         [](Call& c) { c.options.activation = static_cast<Activation>(1); });
  Expect("options: layout is not a known GateUpLayout",
         [](Call& c) { c.options.layout = static_cast<GateUpLayout>(3); });
  Expect("options: stores is not a known ActivateStores",
         [](Call& c) { c.options.stores = static_cast<ActivateStores>(3); });
}

TEST_F(ActivateErrors, NothingToDoIsFine) {
  EXPECT_TRUE(Activate({}, {}).ok());
  const float* const none = nullptr;
  float* const nowhere = nullptr;
  for (const size_t rows : {0u, 8u}) {
    const size_t cols = 8 - rows;
    EXPECT_TRUE(Activate({{none, rows, cols}, {none, rows, cols}},
                         {{nowhere, rows, cols}})
                    .ok());
    for (const GateUpLayout layout :
         {GateUpLayout::kConcatenated, GateUpLayout::kInterleaved}) {
      ActivateOptions options;
      options.layout = layout;
      EXPECT_TRUE(
          Activate({{none, rows, 2 * cols}}, {{nowhere, rows, cols}}, options)
              .ok());
    }
  }
}

TEST_F(ActivateErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
