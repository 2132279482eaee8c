// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests every option of activate.h. A call with the option has to give the
// same bits as a call without it, on rows to which the test has applied the
// option itself.

#include <cmath>
#include <iterator>

#include "fuzz/any_activate.h"
#include "tests/activate_case.h"
#include "tests/row_types.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class ActivateOptionsTest : public IsaTest {};
class ActivateOptionsPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(ActivateOptionsTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ActivateOptionsPoolTest);

// Draws the options, the types, the layout and the place of the output from
// `seed`, and tests the call. In three of four calls all sums and products are
// exact.
void TestDrawn(uint64_t seed, size_t cols, Executor& executor) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  fuzz::Asked asked;
  asked.coarse = seed % 4 != 3;
  asked.hidden = cols;
  fuzz::TestAny<fuzz::AnyActivate>(random, asked, executor);
}

TEST_P(ActivateOptionsTest, AreWhatPlainCallsMakeOfPreparedRows) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    TestDrawn(seed, seed % 40 == 0 ? 1 + seed : 0, SerialExecutor());
  }
}

TEST_P(ActivateOptionsPoolTest, SameBitsOnEveryThread) {
  for (uint64_t seed = 0; seed < 3; ++seed) TestDrawn(seed, 1499, executor());
}

// Tests every format of the output. The longest rows are computed in several
// tiles.
TEST_P(ActivateOptionsTest, EveryFormat) {
  Random random(2);
  const size_t rows = 2;
  for (const size_t cols : {64u, 768u, 17408u}) {
    const std::vector<float> gate = random.Uniforms(rows * cols, -9.0f, 9.0f);
    const std::vector<float> up = random.Uniforms(rows * cols, -9.0f, 9.0f);
    for (const Activation activation :
         {Activation::kGeluTanh, Activation::kSwigluOai}) {
      ActivateOptions options = Plain(activation);
      options.limit = 7.0f;
      const std::vector<float> acted = ApplyToBoth(options, gate, up);
      for (const Format& format : kFormats) {
        if (format.Cols(cols) != cols) continue;
        SCOPED_TRACE(testing::Message() << format.name << ", " << cols);
        const GuardedRows out(format, rows, cols, 1, 3);
        ASSERT_OK(Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
                           {out.view()}, options));
        out.ExpectIntact("out");
        ExpectSameRows(out.Values(),
                       reference::Quantize(acted, rows, cols, format));
      }
    }
  }
}

// The test computes the expected result by one operation after the other, and
// rounds each intermediate result to the model's type.
TEST_P(ActivateOptionsTest, RoundsLikeUnfused) {
  Random random(3);
  const size_t n = 3000;
  const std::vector<float> raw_gate = random.Uniforms(n, -9.0f, 9.0f);
  const std::vector<float> raw_up = random.Uniforms(n, -9.0f, 9.0f);
  const std::vector<float> raw_bias = random.Uniforms(n, -2.0f, 2.0f);
  const float scale = 0.7f;
  for (const Type type : kFloatTypes) {
    const auto M = [&](std::vector<float> values) {
      return Rounded(type, values);
    };
    const auto map = [&](const std::vector<float>& a,
                         const std::vector<float>& b, auto f) {
      std::vector<float> made(n);
      for (size_t i = 0; i < n; ++i) made[i] = f(a[i], b[i]);
      return M(made);
    };
    const std::vector<float> gate = M(raw_gate), up = M(raw_up);
    const std::vector<float> bias = M(raw_bias);
    for (const Activation activation : kActivations) {
      SCOPED_TRACE(testing::Message()
                   << type << " activation " << static_cast<int>(activation));
      const auto run = [&](bool unfused) {
        Stored g(type, gate), u(type, up), b(type, bias);
        std::vector<float> out(n);
        ActivateOptions options = Plain(activation);
        options.limit = 5.5f;
        options.round_like_unfused = unfused;
        EXPECT_OK(Activate({g.View(1, n),
                            u.View(1, n),
                            b.View(1, n),
                            b.View(1, n),
                            {&scale, 1, 1}},
                           {{out.data(), 1, n}}, options));
        return out;
      };
      const std::vector<float> actual = run(true);
      const auto add = [](float x, float y) { return x + y; };
      const auto times = [](float x, float y) { return x * y; };
      std::vector<float> g = map(gate, bias, add), u = map(up, bias, add);
      for (float& x : g) x = std::min(x, 5.5f);
      for (float& x : u) x = std::max(-5.5f, std::min(x, 5.5f));
      std::vector<float> product;
      if (activation == Activation::kSitu) {
        // Models with kSitu do not round between the operations.
        EXPECT_EQ(CanonicalBits(actual), CanonicalBits(run(false)));
        continue;
      }
      if (activation == Activation::kSwigluOai) {
        const auto x = map(g, g, [](float v, float) { return v * 1.702f; });
        const auto s = map(x, x, [](float v, float) {
          return static_cast<float>(reference::Sigmoid(static_cast<double>(v)));
        });
        const auto v = map(u, u, [](float w, float) { return w + 1.0f; });
        product = map(map(g, s, times), v, times);
      } else {
        product = map(M(ApplyToGate(Plain(activation), g)), u, times);
      }
      size_t off = 0;
      for (size_t i = 0; i < n; ++i) off += actual[i] != product[i] * scale;
      // For kSwigluOai the reference's sigmoid differs from the library's. So
      // any f32 result, and up to 1 % of the bf16 and f16 results, may round
      // differently.
      const bool exact = activation != Activation::kSwigluOai;
      EXPECT_LE(off, exact ? 0 : type == Type::kF32 ? n : n / 100);
      if (type != Type::kF32) {
        EXPECT_NE(actual, run(false));
      }
    }
  }
}

// Tests each invalid argument of activate.h and its message. The call must
// write nothing.

constexpr GateUpLayout kFusedLayouts[] = {GateUpLayout::kConcatenated,
                                          GateUpLayout::kInterleaved};

class ActivateErrors
    : public CallErrors<ActivateInputs, ActivateOutputs, ActivateOptions> {
 protected:
  ActivateErrors()
      : CallErrors("Activate", Activate),
        gate_(64, 1.0f),
        up_(64, 1.0f),
        out_(4, 8),
        scales_(4, 1),
        sums_(4, 1) {
    call_ = {{{gate_.data(), 4, 8}, {up_.data(), 4, 8}}, {out_.view()}, {}};
  }
  void ExpectUntouched() const override {
    out_.ExpectUntouched("out");
    scales_.ExpectUntouched("out.scales");
    sums_.ExpectUntouched("out.sums");
  }

  // Moves gate and up into one matrix, `gate`.
  void Fuse(GateUpLayout layout) {
    call_.in = {{gate_.data(), 4, 16}};
    call_.options.layout = layout;
  }

  std::vector<float> gate_, up_;
  Guarded<float> out_, scales_;
  Guarded<int32_t> sums_;
};

TEST_F(ActivateErrors, EveryLineOfItsTable) {
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::ActivateCall>();
}

TEST_F(ActivateErrors, TypesThatDoNotMatch) {
  EXPECT_ERROR("up: its type differs from gate's", c.in.up.type = Type::kBF16);
  EXPECT_ERROR("up: its type differs from gate's", c.in.gate.type = Type::kF16);
}

// Only a quantised output may have scales and sums.
TEST_F(ActivateErrors, QuantizedOut) {
  float* const o = out_.data();
  const auto spoil = [&](const std::string& message, const AnyRows& out) {
    EXPECT_ERROR("out" + message, c.out.out = out);
  };
  const AnyMatrix i8(static_cast<void*>(o), Type::kI8, 4, 8, 8);
  const AnyMatrix f32(o, 4, 8),
      q8_0(static_cast<void*>(o), Type::kQ8_0, 4, 8, 8);
  const AnyMatrix scales(o + 16, 4, 1),
      sums(reinterpret_cast<int32_t*>(o) + 24, 4, 1);
  EXPECT_OK(Run({call_.in, {{i8, scales, sums}}, {}}));
  out_.Fill(std::vector<float>(32, FromBits(kCanary)));
  spoil(".scales: given, but the rows' type has none", {f32, scales});
  spoil(".sums: given, but the rows' type has none", {f32, {}, sums});
  spoil(": cols or stride is not a multiple of its block", q8_0);
}

TEST_F(ActivateErrors, Shapes) {
  EXPECT_ERROR("up: not given", c.in.up = {}, c.in.gate.type = Type::kBF16);
  // `gate` holds both gate and up, but the layout says that they are two
  // matrices.
  EXPECT_ERROR(
      "up: not given, and gate has twice the columns of out: set "
      "options.layout to kConcatenated or kInterleaved",
      c.in.up = {}, c.in.gate.cols *= 2, c.in.gate.stride *= 2);
  EXPECT_ERROR("gate: not given", c.in.gate = {}, c.in.up.type = Type::kBF16);
  for (const GateUpLayout layout : kFusedLayouts) {
    Fuse(layout);
    EXPECT_OK(Run({call_.in, {{up_.data(), 4, 8}}, call_.options}));
    EXPECT_ERROR("gate: is not [rows, 2 * cols]", c.in.gate.cols = 8);
    EXPECT_ERROR("gate: is not [rows, 2 * cols]", c.in.gate.cols = 15);
    const std::string either =
        "out: is not [rows, cols] for gate of [rows, 2 * cols]";
    EXPECT_ERROR(either, c.in.gate.rows = 3);
    EXPECT_SIZE_ERRORS(either, c.out.out, 3, 7);
    EXPECT_ERROR("gate: not given", c.in.gate = {});
    EXPECT_ERROR("out: not given", c.out.out = {});
    EXPECT_ERROR("up: given, but gate already contains up",
                 c.in.up = {up_.data(), 4, 8});
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
  // Two views begin at the same address but differ in type.
  expect(other_gate, {o, 4, 8}, {up_.data(), 4, 8},
         {reinterpret_cast<BFloat16*>(o), 4, 8});
  // `up` and `out` are columns of one wider matrix, and share one column.
  expect(other_up, {gate_.data(), 2, 8, 16}, {o, 2, 8, 16}, {o + 7, 2, 8, 16});
  Fuse(GateUpLayout::kConcatenated);
  // `out` covers half of gate and half of up.
  expect(other_gate, {o, 2, 16}, {}, {o + 4, 2, 8, 16});
  expect(other_gate, {o, 1, 16}, {}, {o + 9, 1, 8});
  // If gate and up are interleaved, `out` cannot be a part of gate.
  Fuse(GateUpLayout::kInterleaved);
  for (const size_t first : {0u, 1u, 8u}) {
    expect("gate", {o, 2, 16}, {}, {o + first, 2, 8, 16});
  }
  expect("gate", {o, 1, 16}, {}, {o + 15, 1, 8});
}

// Some activations do more with `up` than multiply by it. They refuse
// kUngated and ActivatePlace::kAfter.
TEST_F(ActivateErrors, ActivationsOfBoth) {
  EXPECT_TRUE(IsOfGate(Activation::kIdentity));
  EXPECT_FALSE(IsOfGate(Activation::kSwigluOai));
  for (const Activation activation : kActivations) {
    call_.options.activation = activation;
    if (IsOfGate(activation)) {
      auto c = call_;
      c.in.up = {};
      c.options.layout = GateUpLayout::kUngated;
      c.options.limit_place = ActivatePlace::kAfter;
      EXPECT_OK(Activate(c.in, c.out, c.options));
      out_.Fill(std::vector<float>(32, FromBits(kCanary)));
      continue;
    }
    EXPECT_ERROR(
        "options: limit_place: kAfter needs an activation that only multiplies "
        "by up",
        c.options.limit_place = ActivatePlace::kAfter);
    EXPECT_ERROR(
        "options: layout: kUngated has no up, which this activation needs",
        c.in.up = {};
        c.options.layout = GateUpLayout::kUngated);
  }
}

TEST_F(ActivateErrors, Ungated) {
  call_.in.up = {};
  call_.options.layout = GateUpLayout::kUngated;
  EXPECT_ERROR("up: given with kUngated", c.in.up = {up_.data(), 4, 8});
  EXPECT_SIZE_ERRORS("out: is not [rows, cols] of gate", c.in.gate, 3, 7);
  EXPECT_SIZE_ERRORS("out: is not [rows, cols] of gate", c.out.out, 3, 7);
  EXPECT_ERROR("up_bias: given without up", c.in.up_bias = {up_.data(), 1, 8});
}

TEST_F(ActivateErrors, WhatIsGivenBesides) {
  const std::vector<float> more(64, 1.0f);
  const float* const m = more.data();
  const std::vector<int32_t> offsets = {0, 1, 4}, counts = {2, 0};
  call_.in.gate_bias = {m, 2, 8};
  call_.in.up_bias = {m + 16, 2, 8};
  call_.in.row_scale = {m + 32, 4, 1};
  call_.in.offsets = offsets;
  float* const o = out_.data();
  call_.out.out = {AnyMatrix(static_cast<void*>(o), Type::kI8, 4, 8, 8),
                   scales_.view(), sums_.view()};
  ExpectSpoiltCallsAreRefused<calls::ActivateCall>();
  EXPECT_ERROR("offsets: given together with tokens_per_expert",
               c.in.tokens_per_expert = counts);
  EXPECT_ERROR(
      "offsets: biases of several experts need offsets or tokens_per_expert",
      c.in.offsets = {});
  call_.in.offsets = {};
  call_.in.tokens_per_expert = counts;
  ExpectSpoiltCallsAreRefused<calls::ActivateCall>();
  EXPECT_ERROR("tokens_per_expert: size does not divide the rows",
               c.in.tokens_per_expert.size = 0);
}

// Passes invalid values in offsets and tokens_per_expert. The call must write
// nothing.
TEST_F(ActivateErrors, ListsThatAreNoRows) {
  const auto expect = [&](Span<const int32_t> ActivateInputs::*list,
                          std::vector<int32_t> wrong,
                          const std::string& message) {
    Call c = call_;
    c.in.*list = wrong;
    ExpectError(Run(c), "Activate: " + message,
                StatusCode::kFailedPrecondition);
    ExpectUntouched();
  };
  const std::string ascending =
      "offsets: not ascending from 0 or more to rows or less";
  expect(&ActivateInputs::offsets, {0, 3, 2}, ascending);
  expect(&ActivateInputs::offsets, {-1, 3, 4}, ascending);
  expect(&ActivateInputs::offsets, {0, 3, 5}, ascending);
  const std::string most =
      "tokens_per_expert: not from 0 to rows / num_experts";
  expect(&ActivateInputs::tokens_per_expert, {2, 3}, most);
  expect(&ActivateInputs::tokens_per_expert, {-1, 2}, most);
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

}  // namespace
}  // namespace switchyard::testing_support
