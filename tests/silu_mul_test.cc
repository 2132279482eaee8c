// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/silu_mul.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class SiluMulTest : public IsaTest {};
class SiluMulPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(SiluMulTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(SiluMulPoolTest);

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
      SiluMul({gate.data(), rows, cols}, {up.data(), rows, cols},
              {out.data(), rows, cols}, executor);
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

TEST_P(SiluMulTest, SpecialValues) {
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
  // The seed's f32 formula would lose -inf to NaN and is off by 1.7e7 ulp here.
  EXPECT_EQ(Bits(SiluOf({-kInf}, {1.0f}, 1)[0]), Bits(-0.0f));
  EXPECT_EQ(Bits(SiluOf({-90.0f}, {1.0f}, 1)[0]), Bits(-0.0f));
  EXPECT_EQ(SiluOf({kInf}, {1.0f}, 1)[0], kInf);
}

// Each special value at each position of a vector and of its tail: clamps and
// blends act on the lane they should and on no other.
TEST_P(SiluMulTest, SpecialValuesInEveryLane) {
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

TEST_P(SiluMulTest, UpNaNAndInfinityPropagate) {
  EXPECT_TRUE(std::isnan(SiluOf({1.0f}, {kNaN}, 1)[0]));
  EXPECT_TRUE(std::isnan(SiluOf({kNaN}, {0.0f}, 1)[0]));
  EXPECT_TRUE(std::isnan(SiluOf({-kInf}, {kInf}, 1)[0]));  // -0 * inf
  EXPECT_EQ(SiluOf({-1.0f}, {kInf}, 1)[0], -kInf);
}

TEST_P(SiluMulTest, EveryLengthAndMisalignment) {
  Random random(1);
  for (size_t cols = 0; cols <= 2 * 64 + 1; ++cols) {
    for (size_t slack = 0; slack <= 3; ++slack) {
      const std::vector<float> gate = random.Uniforms(cols, -20.0f, 20.0f);
      const std::vector<float> up = random.Uniforms(cols, -2.0f, 2.0f);
      const Guarded<float> g(gate, slack);
      const Guarded<float> u(up, (slack + 1) % 4);
      const Guarded<float> o(1, cols, 0, (slack + 2) % 4);
      const Status status = SiluMul(g.view(), u.view(), o.view());
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
TEST_P(SiluMulTest, StreamingStoresGiveTheSameBits) {
  SiluMulOptions streaming;
  streaming.stores = SiluMulStores::kStreaming;
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
          SiluMul(g.view(), {up.data(), rows, cols}, o.view(), streaming).ok());
      o.ExpectIntact("out");
      ASSERT_EQ(CanonicalBits(o.Values()),
                CanonicalBits(SiluOf(gate, up, rows)))
          << cols << " " << slack;
      ASSERT_TRUE(
          SiluMul(g.view(), {up.data(), rows, cols}, g.view(), streaming).ok());
      g.ExpectIntact("gate");
      ASSERT_EQ(CanonicalBits(g.Values()), CanonicalBits(o.Values()));
    }
  }
}

TEST_P(SiluMulTest, StridedViewsLeaveTheGapsAlone) {
  Random random(2);
  const size_t rows = 5, cols = 37;
  const std::vector<float> gate = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const Guarded<float> g(rows, cols, 41), u(rows, cols, 53), o(rows, cols, 38);
  g.Fill(gate);
  u.Fill(up);
  ASSERT_TRUE(SiluMul(g.view(), u.view(), o.view()).ok());
  o.ExpectIntact("out");
  ExpectClose(gate, up, o.Values());
}

TEST_P(SiluMulTest, InPlaceOnGateAndOnUp) {
  Random random(3);
  const std::vector<float> gate = random.Uniforms(3 * 50, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(3 * 50, -9.0f, 9.0f);
  const std::vector<float> expected = SiluOf(gate, up, 3);
  std::vector<float> g = gate, u = up;
  ASSERT_TRUE(
      SiluMul({g.data(), 3, 50}, {up.data(), 3, 50}, {g.data(), 3, 50}).ok());
  EXPECT_EQ(g, expected);
  ASSERT_TRUE(
      SiluMul({gate.data(), 3, 50}, {u.data(), 3, 50}, {u.data(), 3, 50}).ok());
  EXPECT_EQ(u, expected);
}

TEST_P(SiluMulTest, FusedGateUpWritesTheGateHalf) {
  Random random(4);
  for (const size_t cols : {1u, 7u, 16u, 40u}) {
    const size_t rows = 4;
    const std::vector<float> both =
        random.Uniforms(rows * 2 * cols, -9.0f, 9.0f);
    const Guarded<float> fused(rows, 2 * cols);
    fused.Fill(both);
    const Matrix<float> gate = fused.view().ColRange(0, cols);
    const Matrix<float> up = fused.view().ColRange(cols, 2 * cols);
    const Status status = SiluMul(gate, up, gate);
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

TEST_P(SiluMulTest, SameBitsInFlushToZeroMode) {
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

TEST_P(SiluMulPoolTest, SameBitsAsSerialOnEveryThread) {
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
    ASSERT_TRUE(SiluMul({&gate[r * cols], n, cols}, {&up[r * cols], n, cols},
                        {&slices[r * cols], n, cols}, executor())
                    .ok());
    r += n;
  }
  EXPECT_EQ(CanonicalBits(slices), CanonicalBits(out));
}

// Any bit patterns at all, and the same bits on all ISAs with FMA.
TEST(SiluMulAcrossIsas, FmaIsasAgree) {
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

void ExpectError(const Status& status, const char* message) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_STREQ(status.message(), message);
}

TEST(SiluMulErrors, NameTheArgumentAndWriteNothing) {
  std::vector<float> a(64, 1.0f), b(64, 1.0f);
  const Guarded<float> o(4, 8);
  const Matrix<float> g(a.data(), 4, 8), u(b.data(), 4, 8), out = o.view();
  const size_t huge = SIZE_MAX / 4;
  ExpectError(SiluMul({nullptr, 4, 8}, u, out), "SiluMul: gate: data is null");
  ExpectError(SiluMul(g, {nullptr, 4, 8}, out), "SiluMul: up: data is null");
  ExpectError(SiluMul(g, u, {nullptr, 4, 8}), "SiluMul: out: data is null");
  ExpectError(SiluMul({a.data(), 4, 8, 7}, u, out),
              "SiluMul: gate: stride is smaller than cols");
  ExpectError(SiluMul(g, {b.data(), 4, 8, 7}, out),
              "SiluMul: up: stride is smaller than cols");
  ExpectError(SiluMul(g, u, {out.data, 4, 8, 7}),
              "SiluMul: out: stride is smaller than cols");
  ExpectError(SiluMul({a.data(), 4, 8, huge}, u, out),
              "SiluMul: gate: size overflows the address space");
  ExpectError(SiluMul(g, {b.data(), huge, 8}, out),
              "SiluMul: up: size overflows the address space");
  ExpectError(SiluMul(g, u, {out.data, 1, huge}),
              "SiluMul: out: size overflows the address space");
  ExpectError(SiluMul(g, {b.data(), 3, 8}, out),
              "SiluMul: up: rows differ from gate's");
  ExpectError(SiluMul(g, {b.data(), 4, 7}, out),
              "SiluMul: up: cols differ from gate's");
  ExpectError(SiluMul(g, u, {out.data, 3, 8}),
              "SiluMul: out: rows differ from gate's");
  ExpectError(SiluMul(g, u, {out.data, 4, 7}),
              "SiluMul: out: cols differ from gate's");
  ExpectError(SiluMul({out.data + 1, 3, 8}, {b.data(), 3, 8}, {out.data, 3, 8}),
              "SiluMul: out: overlaps gate without being the same view");
  ExpectError(SiluMul({a.data(), 2, 8, 16}, {b.data(), 2, 8, 16},
                      {b.data() + 7, 2, 8, 16}),
              "SiluMul: out: overlaps up without being the same view");
  SiluMulOptions options;
  options.stores = static_cast<SiluMulStores>(3);
  ExpectError(SiluMul(g, u, out, options),
              "SiluMul: options.stores: not a SiluMulStores");
  o.ExpectUntouched("out");
}

TEST(SiluMulErrors, NothingToDoIsFine) {
  EXPECT_TRUE(SiluMul({}, {}, {}).ok());
  EXPECT_TRUE(SiluMul({nullptr, 0, 8}, {nullptr, 0, 8}, {nullptr, 0, 8}).ok());
  EXPECT_TRUE(SiluMul({nullptr, 8, 0}, {nullptr, 8, 0}, {nullptr, 8, 0}).ok());
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
