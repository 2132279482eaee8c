// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <sstream>
#include <thread>

#include "testing/formats.h"
#include "testing/reference_activate.h"
#include "testing/reference_rows.h"
#include "tests/activate_case.h"
#include "tests/call_errors.h"
#include "tests/row_types.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class ActivateTest : public IsaTest {};
class ActivatePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(ActivateTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ActivatePoolTest);

// Checks that out is silu(gate) * up. silu() may be off by 2.5 ulp, and the
// product rounds once more.
void ExpectClose(const std::vector<float>& gate, const std::vector<float>& up,
                 const std::vector<float>& out) {
  ASSERT_EQ(gate.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const double exact = reference::Silu(static_cast<double>(gate[i])) *
                         static_cast<double>(up[i]);
    // The product can double a relative error of 2.5 ulp.
    ASSERT_LE(UlpError(out[i], exact), 5.5)
        << "i=" << i << " gate=" << gate[i] << " up=" << up[i]
        << " out=" << out[i] << " exact=" << exact;
  }
}

constexpr GateUpLayout kFusedLayouts[] = {GateUpLayout::kConcatenated,
                                          GateUpLayout::kInterleaved};

// Runs SiLU on rows that are stored in `types`.
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
// Returns the results of the f32 kernel, rounded to types.out.
std::vector<float> Expected(const InOut& types, const std::vector<float>& gate,
                            const std::vector<float>& up, size_t rows = 1) {
  return Rounded(types.out, Silu(kF32s, Rounded(types.in, gate),
                                 Rounded(types.in, up), rows));
}
// Runs the f32 kernel's SiLU, and checks that all other types give the same
// results, rounded.
std::vector<float> SiluOf(const std::vector<float>& gate,
                          const std::vector<float>& up, size_t rows = 1) {
  for (const InOut& types : EveryInOut()) {
    EXPECT_EQ(CanonicalBits(Silu(types, gate, up, rows)),
              CanonicalBits(Expected(types, gate, up, rows)))
        << types;
  }
  return Silu(kF32s, gate, up, rows);
}

// Gates that need special care. The tests use them with an up of 1.
std::vector<float> SpecialGates() {
  std::vector<float> gates = {
      0.0f,      -0.0f,      kInf,   -kInf,   kNaN,       -kNaN,
      kDenormal, -kDenormal, 1e-38f, -1e-38f, 3.4e38f,    -3.4e38f,
      88.0f,     -88.0f,     87.0f,  -87.0f,  1e10f,      -1e10f,
      0x1p-149f, -0x1p-149f, 1.0f,   -1.0f,   -1.2784645f};
  // Adds every float around the flush threshold and the clamp.
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
  // In f32, the plain formula gives NaN for -inf, and an error of 1.7e7 ulp
  // for -90.
  EXPECT_EQ(Bits(SiluOf({-kInf}, {1.0f})[0]), Bits(-0.0f));
  EXPECT_EQ(Bits(SiluOf({-90.0f}, {1.0f})[0]), Bits(-0.0f));
  EXPECT_EQ(SiluOf({kInf}, {1.0f})[0], kInf);
}

// Puts each special value in each lane of a vector and its tail. Clamps and
// blends must not affect the other lanes.
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

// Tests streaming stores in rows that begin and end at every position in a
// cache line. Also tests calls in place, where the kernel does not stream.
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

// Returns rows that hold gate and up, arranged as `layout` says.
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

// Tests rows of every length in misaligned views between guard pages, with
// and without streaming stores.
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
          // Activate must not write its inputs.
          ASSERT_EQ(CanonicalBits(fused.Values()),
                    CanonicalBits(Rounded(types.in, both)));
        }
      }
    }
  }
}

// Writes the output over gate or over up. Gate and up are the halves of each
// row. The call gets one view of whole rows, or two views of the halves.
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

// The kernel converts rows in tiles. Tests lengths around the length of a
// tile, in each fused layout, with a separate output and in place.
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

// The types depend on the kind of executor, so that each kind tests another
// pair of types.
TEST_P(ActivatePoolTest, SameBitsAsSerialOnEveryThread) {
  Random random(6);
  // The work exceeds seven grains of 30 us, one for each thread of the largest
  // pool.
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
  // Any split of the batch gives the same bits.
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

// Tests gates and ups with random bits. All ISAs with FMA have to give the
// same bits.
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

class ActivateFormatsTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(ActivateFormatsTest);

// Tests every output format from every input type. The result has to equal
// the f32 kernel's rows, converted to the format.
TEST_P(ActivateFormatsTest, EveryFormat) {
  Random random(12);
  for (const size_t cols :
       {1u, 31u, 33u, 64u, 100u, 512u, 768u, 5000u, 20480u}) {
    const size_t rows = cols < 1000 ? 3 : 2;
    std::vector<float> gate = random.Uniforms(rows * cols, -20.0f, 20.0f);
    std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
    gate[cols / 2] = 88.0f;
    // An infinity makes the scale of its quantised group NaN.
    up[rows * cols - 1] = cols % 2 == 0 ? kInf : 0.25f;
    for (const Type in : kFloatTypes) {
      Stored gates(in, gate), ups(in, up);
      std::vector<float> acted(rows * cols);
      ASSERT_OK(Activate({gates.View(rows, cols), ups.View(rows, cols)},
                         {{acted.data(), rows, cols}}));
      for (const Format& format : kFormats) {
        if (format.Cols(cols) != cols) continue;
        SCOPED_TRACE(testing::Message()
                     << in << " to " << format.name << ", " << cols);
        const GuardedValues g(in, rows, cols, cols + 1, 1, gate);
        const GuardedValues u(in, rows, cols, cols + 3, 2, up);
        const GuardedRows out(format, rows, cols, 1, 3);
        ASSERT_OK(Activate({g.view(), u.view()}, {out.view()}));
        out.ExpectIntact("out");
        ExpectSameRows(out.Values(),
                       reference::Quantize(acted, rows, cols, format));
      }
    }
  }
}

// Tests each activation against double precision, with limits that are
// applied before and after the activation.

class ActivateFunctionsTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(ActivateFunctionsTest);

// Draws a gate: close to zero, ordinary, at the ends of the functions'
// ranges, or random bits.
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
        ungated ? ApplyToGate(options, gate) : ApplyToBoth(options, gate, up);
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
    EXPECT_TRUE(std::isnan(ApplyToBoth(options, {kNaN}, {1.0f})[0]));
    EXPECT_TRUE(std::isnan(ApplyToBoth(options, {1.0f}, {kNaN})[0]));
  }
  const auto of = [&](Activation activation, float x) {
    const float up = activation == Activation::kSwigluOai ? 0.0f : 1.0f;
    return ApplyToBoth(Plain(activation), {x}, {up})[0];
  };
  // Checks the sign of zero, which IsClose() ignores.
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
  // The caps of kSitu are 4 and 25, so the largest product is 100.
  const ActivateOptions situ = Plain(Activation::kSitu);
  EXPECT_EQ(ApplyToBoth(situ, {-kInf}, {1.0f})[0], 0.0f);
  EXPECT_EQ(ApplyToBoth(situ, {kInf}, {kInf})[0], 100.0f);
  EXPECT_EQ(ApplyToBoth(situ, {kInf}, {-kInf})[0], -100.0f);
  EXPECT_EQ(ApplyToBoth(situ, {-kInf}, {-kInf})[0], 0.0f);
}

// Tests gates and ups with random bits. All ISAs with FMA have to give the same
// bits.
TEST(ActivateFunctionsAcrossIsas, FmaIsasAgree) {
  for (const Activation activation : kActivations) {
    Random random(4);
    const std::vector<float> gate = Draws(random, 20000);
    const std::vector<float> up = Draws(random, 20000);
    ExpectFmaIsasAgree([&] {
      return CanonicalBits(ApplyToBoth(Plain(activation), gate, up));
    });
  }
}

// Tests that Activate()'s results are visible to its caller when it returns,
// even if the executor synchronises as little as allowed. x86 does not order
// streaming stores with other stores. So the thread that streams has to
// execute a fence.

// Runs every call on another thread and returns after a release store, the
// weakest synchronisation a pool may use. (A lock or a system call would act
// as a fence.)
class RelayExecutor final : public Executor {
 public:
  RelayExecutor() : thread_([this] { Work(); }) {}
  ~RelayExecutor() override {
    turn_.store(kEnd, std::memory_order_release);
    thread_.join();
  }
  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    count_ = count;
    body_ = body;
    context_ = context;
    turn_.store(kThread, std::memory_order_release);
    while (Await(kThread) != kCaller) {
    }
    return Status();
  }

 private:
  enum Turn { kCaller, kThread, kEnd };

  // Waits until turn_ differs from `turn`, and returns it. Returns `turn`
  // after a while, so that the caller tries again.
  Turn Await(Turn turn) const {
    for (int i = 0; i < 20000; ++i) {
      const Turn now = turn_.load(std::memory_order_acquire);
      if (now != turn) return now;
    }
    std::this_thread::yield();  // the other thread may need this core
    return turn;
  }
  void Work() {
    for (Turn turn = kCaller; turn != kEnd; turn = Await(kCaller)) {
      if (turn != kThread) continue;
      body_(context_, 1, 0, count_);
      turn_.store(kCaller, std::memory_order_release);
    }
  }

  std::atomic<Turn> turn_{kCaller};
  size_t count_ = 0;
  Body body_ = nullptr;
  void* context_ = nullptr;
  std::thread thread_;  // the last member, because it uses the others
};

class ActivateVisibleTest : public IsaTest {
 protected:
  // Makes `calls` calls, and counts those that return before the last rows of
  // `out` are visible. Remembers the name of the first such call.
  void CountEarlyReturns(const std::string& name, const ActivateInputs& in,
                         const AnyMatrix& out, ActivateOptions options,
                         size_t calls) {
    const size_t rows = std::min<size_t>(out.rows, 16);
    const AnyMatrix last = out.RowRange(out.rows - rows, out.rows);
    const size_t bytes =
        ((rows - 1) * out.stride + out.cols) * SizeOf(out.type);
    const ActivateStores stores = options.stores;
    options.stores = ActivateStores::kCached;
    std::memset(last.data, 0xA5, bytes);
    EXPECT_OK(Activate(in, {out}, options));
    std::vector<uint8_t> wanted(bytes), seen(bytes);
    std::memcpy(wanted.data(), last.data, bytes);
    options.stores = stores;
    for (size_t i = 0; i < calls; ++i) {
      std::memset(last.data, 0xA5, bytes);
      EXPECT_OK(Activate(in, {out}, options, executor_));
      std::memcpy(seen.data(), last.data, bytes);
      ++calls_;
      if (seen == wanted) continue;
      if (early_++ == 0) first_ = name;
    }
  }
  void ExpectNoneWasEarly() const {
    EXPECT_EQ(early_, 0u) << "of " << calls_
                          << " calls, the first one: " << first_;
  }

  RelayExecutor executor_;
  size_t calls_ = 0, early_ = 0;
  std::string first_;
};
SWITCHYARD_FOR_EVERY_ISA(ActivateVisibleTest);

struct Form {
  const char* name;
  ActivateOptions options;
  bool scaled = false, biased = false;
};
// Returns the options of a call for each code path of the kernels: each
// activation in each of its layouts, and SiLU with every other option.
std::vector<Form> Forms() {
  std::vector<Form> forms;
  for (const Activation activation : kActivations) {
    ActivateOptions options = Plain(activation);
    forms.push_back({"split", options});
    options.layout = GateUpLayout::kConcatenated;
    forms.push_back({"concatenated", options});
    options.layout = GateUpLayout::kInterleaved;
    forms.push_back({"interleaved", options});
    options.layout = GateUpLayout::kUngated;
    if (IsOfGate(activation)) forms.push_back({"ungated", options});
  }
  ActivateOptions options;
  forms.push_back({"scaled", options, true});
  forms.push_back({"biased", options, false, true});
  options.limit = 3.0f;
  forms.push_back({"limit before", options});
  options.limit_place = ActivatePlace::kAfter;
  forms.push_back({"limit after", options});
  options = {};
  options.round_like_unfused = true;
  forms.push_back({"unfused", options});
  return forms;
}

TEST_P(ActivateVisibleTest, AfterEveryForm) {
  constexpr size_t kRows = 2, kMost = 56;
  const std::vector<float> gate =
      Random(1).Uniforms(kRows * 2 * kMost, -9.0f, 9.0f);
  const std::vector<float> scale = {0.5f, 2.0f};
  // All calls write to this memory. If each call had its own, a late store
  // could corrupt another object after the memory was freed.
  std::vector<float> memory(kRows * kMost);
  size_t form_number = 0;
  for (Form form : Forms()) {
    ++form_number;
    for (const InOut& types : EveryInOut()) {
      Stored gates(types.in, gate), ups(types.in, gate);
      for (size_t cols = 8; cols <= kMost; ++cols) {
        if (cols % 4 != form_number % 4) continue;
        const GateUpLayout layout = form.options.layout;
        const bool both = layout == GateUpLayout::kConcatenated ||
                          layout == GateUpLayout::kInterleaved;
        const size_t gate_cols = both ? 2 * cols : cols;
        ActivateInputs in = {gates.View(kRows, gate_cols)};
        if (layout == GateUpLayout::kSplit) in.up = ups.View(kRows, cols);
        if (form.scaled) in.row_scale = {scale.data(), kRows, 1};
        if (form.biased) in.gate_bias = {gate.data(), 1, gate_cols};
        const AnyMatrix out = {static_cast<void*>(memory.data()), types.out,
                               kRows, cols, cols};
        form.options.stores = ActivateStores::kStreaming;
        std::ostringstream name;
        name << form.name << ", activation "
             << static_cast<int>(form.options.activation) << ", " << types
             << ", " << cols << " cols";
        CountEarlyReturns(name.str(), in, out, form.options, 8);
      }
    }
  }
  ExpectNoneWasEarly();
}

// The outputs are so large that Activate() chooses streaming stores itself.
// A missing fence shows only if the caller reads the results before the last
// stores have reached memory. Two choices make this likely:
// * The call is short, because only the last rows belong to an expert. With
//   all rows it would take 10 ms. If the caller shared a core with the
//   executor's thread, it would then not be running when the call ends.
// * Each row ends in the middle of a cache line, and the other half of the
//   line is not written, because a full line would go to memory at once.
TEST_P(ActivateVisibleTest, AfterLargeOutputs) {
  constexpr size_t kCols = 280, kStride = 288, kComputed = 2;
  constexpr size_t kRows = kActivateStreamingBytes / (3 * 4 * kCols) + 1;
  const std::vector<float> gate(kRows * kCols, 1.5f);
  std::vector<float> memory((kRows + 1) * kStride);
  const size_t past = reinterpret_cast<uintptr_t>(memory.data()) / 4 % 16;
  const AnyMatrix out = {memory.data() + (16 - past), kRows, kCols, kStride};
  const int32_t offsets[] = {static_cast<int32_t>(kRows - kComputed),
                             static_cast<int32_t>(kRows)};
  for (const Activation activation : kActivations) {
    const ConstAnyMatrix view = {gate.data(), kRows, kCols};
    ActivateInputs in = {view, view};
    in.offsets = {offsets, 2};
    CountEarlyReturns(
        "activation " + std::to_string(static_cast<int>(activation)), in, out,
        Plain(activation), 300);
  }
  ExpectNoneWasEarly();
}

}  // namespace
}  // namespace switchyard::testing_support
