// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of combine.h and its message; nothing is written.

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
        normed_(3, 5) {
    call_.in = case_.Inputs();
    call_.in.norm_weight = case_.norm_weight;
    call_.out = {out_.view(), normed_.view(), &report_};
  }
  void ExpectUntouched() const override {
    out_.ExpectUntouched("out");
    normed_.ExpectUntouched("normed");
  }

  // With the norm and, unless the error is the norm's own, without.
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
  Guarded<float> out_, normed_;
};

TEST_F(CombineErrors, Views) {
  ExpectViewErrors(
      "rows", [](Call& c) { return &c.in.rows; }, kTakesRows);
  ExpectViewErrors(
      "row_index", [](Call& c) { return &c.in.row_index; }, kTakesI32);
  const auto floats = [&](const std::string& name, const auto& view) {
    ExpectViewErrors(name, view, kTakesFloats);
  };
  floats("topk_weights", [](Call& c) { return &c.in.topk_weights; });
  floats("shared.rows", [](Call& c) { return &c.in.shared.rows; });
  floats("shared.gate", [](Call& c) { return &c.in.shared.gate; });
  floats("residual", [](Call& c) { return &c.in.residual; });
  floats("norm_weight", [](Call& c) { return &c.in.norm_weight; });
  floats("out", [](Call& c) { return &c.out.out; });
  ExpectViewErrors(
      "normed", [](Call& c) { return &c.out.normed; }, kTakesRows);
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
  // As quantize.h has them, but not here.
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
  const auto over = [&](const std::string& name, const ConstAnyMatrix& other) {
    void* const data = const_cast<void*>(other.data);
    spoil(".scales: overlaps " + name,
          {i8, AnyMatrix(data, Type::kF32, 3, 1, 1)});
    spoil(".sums: overlaps " + name,
          {i8, scales, AnyMatrix(data, Type::kI32, 3, 1, 1)});
  };
  const CombineInputs& in = call_.in;
  over("out", call_.out.out);
  over("rows", in.rows);
  over("topk_weights", in.topk_weights);
  over("row_index", in.row_index);
  over("residual", in.residual);
  over("norm_weight", in.norm_weight);
  over("shared.rows", in.shared.rows);
  over("shared.gate", in.shared.gate);
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
  EXPECT_SIZE_ERRORS("row_index: is not [tokens, top_k]", c.in.row_index, 2, 1);
  EXPECT_SIZE_ERRORS("shared.rows: is not [tokens, hidden]", c.in.shared.rows,
                     2, 4);
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
  EXPECT_SIZE_ERRORS("residual: is not [tokens, hidden]", c.in.residual, 2, 4);
  EXPECT_ERROR("norm_weight: is not [1, hidden]", c.in.norm_weight.cols = 4);
  EXPECT_ERROR("norm_weight: not given", c.in.norm_weight = {});
  EXPECT_SIZE_ERRORS("normed: is not [tokens, hidden]", c.out.normed, 2, 4);
  EXPECT_ERROR("normed: not given", c.out.normed = {});
  for (const float eps : {-1e-9f, -kInf, kNaN}) {
    EXPECT_ERROR("options: eps is negative or NaN", c.options.eps = eps);
  }
}

TEST_F(CombineErrors, Overlaps) {
  float* const o = out_.data();
  EXPECT_ERROR("out: overlaps rows", c.in.rows.data = o + 14);  // by one
  EXPECT_ERROR("out: overlaps topk_weights", c.in.topk_weights.data = o + 3);
  EXPECT_ERROR("out: overlaps row_index", c.in.row_index.data = o);
  EXPECT_ERROR("out: overlaps shared.gate", c.in.shared.gate.data = o + 12);
  EXPECT_ERROR("out: overlaps shared.rows without being the same view",
               c.in.shared.rows.data = o + 1);
  EXPECT_ERROR("out: overlaps residual without being the same view",
               c.in.residual.data = o, c.in.residual.stride = 6);
  // The same place, in another type.
  EXPECT_ERROR("out: overlaps residual without being the same view",
               c.in.residual = {reinterpret_cast<BFloat16*>(o), 3, 5});
  EXPECT_ERROR("out: overlaps rows.scales", c.in.rows.type = Type::kI8,
               c.in.rows.scales = {o + 9, 6, 1});
  const std::vector<float> scales(6);
  const auto sums = [](float* p) {
    return ConstAnyMatrix(reinterpret_cast<int32_t*>(p), 6, 1);
  };
  EXPECT_ERROR("out: overlaps rows.sums", c.in.rows.type = Type::kI8,
               c.in.rows.scales = {scales.data(), 6, 1},
               c.in.rows.sums = sums(o + 9));
  EXPECT_ERROR("out: overlaps norm_weight", c.in.norm_weight.data = o + 10);
  float* const n = normed_.data();
  EXPECT_ERROR("normed: overlaps out", c.out.normed.data = o);
  EXPECT_ERROR("normed: overlaps rows", c.in.rows.data = n);
  EXPECT_ERROR("normed: overlaps topk_weights", c.in.topk_weights.data = n);
  EXPECT_ERROR("normed: overlaps row_index", c.in.row_index.data = n);
  EXPECT_ERROR("normed: overlaps shared.rows", c.in.shared.rows.data = n);
  EXPECT_ERROR("normed: overlaps shared.gate", c.in.shared.gate.data = n);
  EXPECT_ERROR("normed: overlaps residual", c.in.residual.data = n);
  EXPECT_ERROR("normed: overlaps norm_weight", c.in.norm_weight.data = n);
  EXPECT_ERROR("normed: overlaps rows.scales", c.in.rows.type = Type::kI8,
               c.in.rows.scales = {n + 9, 6, 1});
  EXPECT_ERROR("normed: overlaps rows.sums", c.in.rows.type = Type::kI8,
               c.in.rows.scales = {scales.data(), 6, 1},
               c.in.rows.sums = sums(n + 9));
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

TEST_F(CombineErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
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

  static constexpr const char* kVectors[] = {
      "norms.routed",           "norms.shared",        "norms.block",
      "vectors.block_bias",     "vectors.block_scale", "vectors.residual_bias",
      "vectors.residual_scale",
  };
  static ConstAnyMatrix& Vector(Call& c, size_t i) {
    BlockNorms& norms = c.in.norms;
    CombineVectors& vectors = c.in.vectors;
    ConstAnyMatrix* const all[] = {
        &norms.routed,           &norms.shared,        &norms.block,
        &vectors.block_bias,     &vectors.block_scale, &vectors.residual_bias,
        &vectors.residual_scale,
    };
    return *all[i];
  }

  const std::vector<float> shared_, gate_, vector_;
};

TEST_F(CombineFormErrors, IsValidByItself) {
  EXPECT_OK(Run(call_));
  call_.out.out = {};
  EXPECT_OK(Run(call_));
}

TEST_F(CombineFormErrors, Views) {
  for (size_t i = 0; i < std::size(kVectors); ++i) {
    ExpectViewErrors(kVectors[i], [&](Call& c) { return &Vector(c, i); });
    const std::string shape = std::string(kVectors[i]) + ": is not [1, hidden]";
    Expect(shape, [&](Call& c) { Vector(c, i).cols = 4; });
    Expect(shape, [&](Call& c) { Vector(c, i).rows = 2; });
  }
  ExpectViewErrors("identity.rows",
                   [](Call& c) { return &c.in.identity.rows; });
  ExpectViewErrors("identity.weight",
                   [](Call& c) { return &c.in.identity.weight; });
}

TEST_F(CombineFormErrors, Shapes) {
  EXPECT_SIZE_ERRORS("identity.rows: is not [tokens, hidden]",
                     c.in.identity.rows, 2, 4);
  EXPECT_ERROR("identity.rows: not given", c.in.identity.rows = {});
  EXPECT_ERROR("identity.weight: not given", c.in.identity.weight = {});
  EXPECT_ERROR("identity.weight: is not [tokens, 1] or [1, tokens]",
               c.in.identity.weight.rows = 2);
  EXPECT_SIZE_ERRORS("shared.rows: is not [tokens * num_shared, hidden]",
                     c.in.shared.rows, 5, 4);
  EXPECT_SIZE_ERRORS("shared.gate: is not [tokens, num_shared]",
                     c.in.shared.gate, 2, 1);
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

// Without routed experts.
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

TEST_F(CombineFormErrors, Options) {
  for (const float eps : {-1e-9f, -kInf, kNaN}) {
    EXPECT_ERROR("options: block_eps is negative or NaN",
                 c.options.block_eps = eps);
  }
  for (const float scale : {kInf, -kInf, kNaN}) {
    EXPECT_ERROR("options: scales.routed is not finite",
                 c.options.scales.routed = scale);
    EXPECT_ERROR("options: scales.block is not finite",
                 c.options.scales.block = scale);
    EXPECT_ERROR("options: scales.residual is not finite",
                 c.options.scales.residual = scale);
    EXPECT_ERROR("options: scales.out is not finite",
                 c.options.scales.out = scale);
  }
  EXPECT_ERROR("options: norm is not a NormKind for normed",
               c.options.norm = NormKind::kPlusOneFirst);
  EXPECT_ERROR("options: norm is not a NormKind for normed",
               c.options.norm = static_cast<NormKind>(7));
  for (const int kind : {-1, 4}) {
    EXPECT_ERROR("options: block_norm is not a known NormKind",
                 c.options.block_norm = static_cast<NormKind>(kind));
  }
}

TEST_F(CombineFormErrors, Overlaps) {
  float* const o = out_.data();
  float* const n = normed_.data();
  for (size_t i = 0; i < std::size(kVectors); ++i) {
    const std::string name = kVectors[i];
    Expect("out: overlaps " + name,
           [&](Call& c) { Vector(c, i).data = o + 10; });
    Expect("normed: overlaps " + name,
           [&](Call& c) { Vector(c, i).data = n + 10; });
  }
  EXPECT_ERROR("out: overlaps identity.rows", c.in.identity.rows.data = o);
  EXPECT_ERROR("out: overlaps identity.weight", c.in.identity.weight.data = o);
  EXPECT_ERROR("normed: overlaps identity.rows", c.in.identity.rows.data = n);
  EXPECT_ERROR("normed: overlaps identity.weight",
               c.in.identity.weight.data = n);
  // Without out, normed may be the residual, but only exactly.
  EXPECT_ERROR("normed: overlaps residual without being the same view",
               c.out.out = {}, c.in.residual.data = n,
               c.in.residual.stride = 6);
  EXPECT_ERROR("normed: overlaps shared.rows without being the same view",
               c.out.out = {}, c.in.shared.rows.data = n + 1);
  // Scales and sums of a quantised one.
  const AnyMatrix i8(static_cast<void*>(n), Type::kI8, 3, 5, 5);
  const std::vector<float> other(64);
  const auto over = [&](const std::string& name, const ConstAnyMatrix& view) {
    void* const data = const_cast<void*>(view.data);
    const AnyMatrix scales(n + 8, 3, 1);
    EXPECT_ERROR("normed.scales: overlaps " + name,
                 c.out.normed = {i8, AnyMatrix(data, Type::kF32, 3, 1, 1)});
    EXPECT_ERROR(
        "normed.sums: overlaps " + name,
        c.out.normed = {i8, scales, AnyMatrix(data, Type::kI32, 3, 1, 1)});
  };
  call_.in.identity.rows.data = other.data();
  over("identity.rows", call_.in.identity.rows);
  call_.in.identity.rows.data = shared_.data();
  call_.in.identity.weight.data = other.data();
  over("identity.weight", call_.in.identity.weight);
  call_.in.identity.weight.data = gate_.data();
  for (size_t i = 0; i < std::size(kVectors); ++i) {
    Vector(call_, i).data = other.data();
    over(kVectors[i], Vector(call_, i));
    Vector(call_, i).data = vector_.data();
  }
}

}  // namespace
}  // namespace switchyard::testing_support
