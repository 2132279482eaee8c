// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of combine.h and its message; nothing is written.

#include "src/calls/combine.h"
#include "switchyard/combine.h"
#include "tests/combine_case.h"

namespace switchyard::testing_support {
namespace {

class CombineErrors
    : public CallErrors<CombineInputs, CombineOutputs, CombineOptions> {
 protected:
  CombineErrors()
      : CallErrors("Combine", switchyard::Combine,
                   CombineInputs{{}, {}, RowIndex::kTokenOrder}),
        case_(EveryPart(3, 2, 5), 1),
        out_(3, 5),
        normed_(3, 5),
        normed_scales_(3, 1),
        normed_sums_(3, 1) {
    call_.in = case_.Inputs();
    call_.in.norm_weight = case_.norm_weight;
    call_.out = {out_.view(), normed_.view(), &report_};
  }
  void ExpectUntouched() const override {
    out_.ExpectUntouched("out");
    normed_.ExpectUntouched("normed");
    normed_scales_.ExpectUntouched("normed.scales");
    normed_sums_.ExpectUntouched("normed.sums");
  }

  // Spoils the call with the norm and, unless the error is the norm's own,
  // without.
  void Expect(const std::string& message,
              const std::function<void(Call&)>& spoil) const override {
    CallErrors::Expect(message, spoil);
    if (message.find("norm") != std::string::npos) return;
    CallErrors::Expect(message, [&](Call& c) {
      c.in.norm_weight = {};
      c.out.normed = {};
      spoil(c);
    });
  }

  CombineCase case_;
  Guarded<float> out_, normed_, normed_scales_;
  Guarded<int32_t> normed_sums_;
};

TEST_F(CombineErrors, EveryLineOfItsTable) {
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::CombineCall>();
  // Codes, with their scales and sums.
  const Call floats = call_;
  const std::vector<float> parts(64);
  call_.in.rows = {
      ConstAnyMatrix(case_.rows.data(), Type::kI8, 6, 5, 5),
      ConstAnyMatrix(parts.data(), 6, 1),
      ConstAnyMatrix(reinterpret_cast<const int32_t*>(parts.data() + 48), 6,
                     1)};
  float* const n = normed_.data();
  call_.out.normed = {AnyMatrix(static_cast<void*>(n), Type::kI8, 3, 5, 5),
                      normed_scales_.view(), normed_sums_.view()};
  ExpectSpoiltCallsAreRefused<calls::CombineCall>();
  call_ = floats;
  call_.in.norm_weight = {};
  call_.out.normed = {};
  ExpectSpoiltCallsAreRefused<calls::CombineCall>();
}

// Rows are read as f32, bf16 and f16, or codes with a scale for each.
TEST_F(CombineErrors, QuantizedRows) {
  const auto spoil = [&](const std::string& message, const ConstAnyRows& rows) {
    EXPECT_ERROR("rows" + message, c.in.rows = rows);
  };
  const std::string takes =
      ": has to be f32, bf16 or f16, or codes with f32 scales [num_rows, 1]";
  const std::vector<float> scales(12);
  const void* const data = case_.rows.data();
  const ConstAnyMatrix i8(data, Type::kI8, 6, 5, 5), one(scales.data(), 6, 1);
  spoil(".scales: not given", i8);
  spoil(".scales: given with a type without",
        {ConstAnyMatrix(case_.rows.data(), 6, 5), one});
  // quantize.h has these formats, but they are not read here.
  const auto both = [&](const ConstAnyRows& rows, size_t cols) {
    EXPECT_ERROR("rows" + takes, c.in.rows = rows,
                 c.out.out.cols = c.out.out.stride = cols);
  };
  both({data, Type::kQ8_0, 6, 32, 32}, 32);
  both({ConstAnyMatrix(data, Type::kI8, 6, 40, 40),
        ConstAnyMatrix(scales.data(), 6, 2)},
       40);
  const ConstAnyMatrix e8m0(static_cast<const void*>(scales.data()),
                            Type::kE8M0, 6, 1, 1);
  both({ConstAnyMatrix(data, Type::kF8E4M3, 6, 5, 5), e8m0}, 5);
}

// `normed` in a format, with what goes with it; scales overlap as it does.
TEST_F(CombineErrors, QuantizedNormed) {
  float* const n = normed_.data();
  const AnyMatrix i8(static_cast<void*>(n), Type::kI8, 3, 5, 5),
      scales(n + 8, 3, 1), sums(reinterpret_cast<int32_t*>(n) + 12, 3, 1);
  const auto spoil = [&](const std::string& message, const AnyRows& normed) {
    EXPECT_ERROR("normed" + message, c.out.normed = normed);
  };
  Call fine = call_;
  fine.out.normed = {i8, scales, sums};
  EXPECT_OK(Run(fine));
  EXPECT_NE(n[8], FromBits(kCanary));
  normed_.Fill(std::vector<float>(15, FromBits(kCanary)));
  out_.Fill(std::vector<float>(15, FromBits(kCanary)));
  report_ = kUnwritten;
  spoil(".scales: not given", i8);
  spoil(".scales: overlaps normed", {i8, AnyMatrix(n + 3, 3, 1)});
}

TEST_F(CombineErrors, Shapes) {
  EXPECT_ERROR("topk_weights: is not [tokens, top_k]",
               c.in.topk_weights.rows = 2);
  EXPECT_ERROR("topk_weights: top_k (cols) is 0", c.in.topk_weights.cols = 0);
  EXPECT_ERROR("rows: is not [num_rows, hidden]", c.in.rows.cols = 4);
  EXPECT_ERROR("rows: is not [tokens * top_k, hidden]",
               c.in.row_index = RowIndex::kTokenOrder, c.in.rows.rows = 5);
  EXPECT_ERROR("rows: is not [tokens * top_k, hidden]",
               c.in.row_index = RowIndex::kTokenOrder, c.in.rows.cols = 4);
  EXPECT_ERROR("shared.kind: is not a known SharedGate",
               c.in.shared.kind = static_cast<SharedGate>(9));
  EXPECT_ERROR("shared.gate: is not [tokens, 1] or [1, tokens]",
               c.in.shared.gate.cols = 2);
  EXPECT_ERROR("shared.gate: not given", c.in.shared.gate = {});
  EXPECT_ERROR("shared.gate: is not [tokens, 1] or [1, tokens]",
               c.in.shared.gate = {c.in.shared.gate.As<float>().data, 2, 1});
  EXPECT_ERROR("shared.gate: given with SharedGate::kNone",
               c.in.shared.kind = SharedGate::kNone);
  // A gate without rows.
  EXPECT_ERROR("shared.rows: not given", c.in.shared.rows = {});
  EXPECT_ERROR("norm_weight: not given", c.in.norm_weight = {});
  EXPECT_ERROR("normed: not given", c.out.normed = {});
}

TEST_F(CombineErrors, Overlaps) {
  float* const o = out_.data();
  EXPECT_ERROR("out: overlaps shared.rows without being the same view",
               c.in.shared.rows.data = o + 1);
  EXPECT_ERROR("out: overlaps residual without being the same view",
               c.in.residual.data = o, c.in.residual.stride = 6);
  // The same place, in another type.
  EXPECT_ERROR("out: overlaps residual without being the same view",
               c.in.residual = {reinterpret_cast<BFloat16*>(o), 3, 5});
  // normed may be no other view if there is an out.
  EXPECT_ERROR("normed: overlaps shared.rows",
               c.in.shared.rows.data = normed_.data());
  EXPECT_ERROR("normed: overlaps residual",
               c.in.residual.data = normed_.data());
}

TEST_F(CombineErrors, NothingToDoIsFine) {
  CombineInputs in = {{}, {}, RowIndex::kTokenOrder};
  in.topk_weights.cols = 8;
  Report report = kUnwritten;
  EXPECT_OK(Combine(in, {{}, {}, &report}));
  EXPECT_EQ(report.skipped, 0u);
  float* const nowhere = nullptr;
  in.norm_weight = std::vector<float>();
  EXPECT_OK(Combine(in, {{nowhere, 0, 0}, {nowhere, 0, 0}}, {0.0f}));
}

// A call with everything that Combine has, two shared experts among it.
class CombineFormErrors : public CombineErrors {
 protected:
  CombineFormErrors() : shared_(3 * 2 * 5), gate_(3 * 2), vector_(5) {
    CombineInputs& in = call_.in;
    in.shared = {
        {shared_.data(), 6, 5}, {gate_.data(), 3, 2}, SharedGate::kScalar, 2};
    in.identity = {{shared_.data(), 3, 5}, {gate_.data(), 3, 1}};
    in.norms = {vector_, vector_, vector_};
    in.vectors = {vector_, vector_, vector_, vector_};
  }

  const std::vector<float> shared_, gate_, vector_;
};

TEST_F(CombineFormErrors, IsValidByItself) {
  EXPECT_OK(Run(call_));
  call_.out.out = {};
  EXPECT_OK(Run(call_));
}

TEST_F(CombineFormErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::CombineCall>();
}

TEST_F(CombineFormErrors, Shapes) {
  EXPECT_ERROR("identity.rows: not given", c.in.identity.rows = {});
  EXPECT_ERROR("identity.weight: not given", c.in.identity.weight = {});
  EXPECT_ERROR("identity.weight: is not [tokens, 1] or [1, tokens]",
               c.in.identity.weight.rows = 2);
  EXPECT_ERROR("shared.num_shared: is 0 or too large",
               c.in.shared.num_shared = 0);
  EXPECT_ERROR("shared.num_shared: is 0 or too large",
               c.in.shared.num_shared = SIZE_MAX / 2);
  EXPECT_ERROR("norms.routed: given without rows", c.in.rows = {},
               c.in.topk_weights = {}, c.in.identity = {},
               c.in.row_index = RowIndex::kTokenOrder);
  EXPECT_ERROR("norms.shared: given without shared.rows", c.in.shared = {});
  EXPECT_ERROR("vectors.residual_bias: given without residual",
               c.in.residual = {});
  EXPECT_ERROR("vectors.residual_scale: given without residual",
               c.in.residual = {}, c.in.vectors.residual_bias = {});
}

// There are no routed experts.
TEST_F(CombineErrors, NoRows) {
  Call bare = call_;
  bare.in.rows = {};
  bare.in.topk_weights = {};
  bare.in.row_index = RowIndex::kTokenOrder;
  EXPECT_OK(Run(bare));
  bare.in.shared = {};
  EXPECT_OK(Run(bare));
  bare.in.residual = {};
  ExpectError(Run(bare),
              "Combine: rows: not given, nor shared.rows, identity.rows or "
              "residual");
  const auto without = [&](const std::string& message, auto spoil) {
    EXPECT_ERROR(message, c.in.rows = {}, c.in.topk_weights = {},
                 c.in.row_index = RowIndex::kTokenOrder, spoil(c));
  };
  out_.Fill(std::vector<float>(15, FromBits(kCanary)));
  normed_.Fill(std::vector<float>(15, FromBits(kCanary)));
  report_ = kUnwritten;
  const std::string none = "topk_weights: not given";
  without(none, [&](Call& c) { c.in.rows = call_.in.rows; });
  without(none, [&](Call& c) { c.in.row_index = call_.in.row_index; });
  without("topk_weights: top_k (cols) is 0", [&](Call& c) {
    c.in.topk_weights = call_.in.topk_weights;
    c.in.topk_weights.cols = 0;
  });
}

// normed alone may be the residual, but only exactly.
TEST_F(CombineFormErrors, NormedAlone) {
  float* const n = normed_.data();
  EXPECT_ERROR("normed: overlaps residual without being the same view",
               c.out.out = {}, c.in.residual.data = n,
               c.in.residual.stride = 6);
  EXPECT_ERROR("normed: overlaps shared.rows without being the same view",
               c.out.out = {}, c.in.shared.rows.data = n + 1);
}

}  // namespace
}  // namespace switchyard::testing_support
