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
  ExpectViewErrors("rows", [](Call& c) { return &c.in.rows; });
  ExpectViewErrors("topk_weights", [](Call& c) { return &c.in.topk_weights; });
  ExpectViewErrors(
      "row_index", [](Call& c) { return &c.in.row_index; }, kTakesI32);
  ExpectViewErrors("shared.rows", [](Call& c) { return &c.in.shared.rows; });
  ExpectViewErrors("shared.gate", [](Call& c) { return &c.in.shared.gate; });
  ExpectViewErrors("residual", [](Call& c) { return &c.in.residual; });
  ExpectViewErrors("norm_weight", [](Call& c) { return &c.in.norm_weight; });
  ExpectViewErrors("out", [](Call& c) { return &c.out.out; });
  ExpectViewErrors("normed", [](Call& c) { return &c.out.normed; });
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
  EXPECT_ERROR("shared.gate: is not [tokens, 1] or [1, tokens]",
               c.in.shared.gate = {});
  EXPECT_ERROR("shared.gate: is not [tokens, 1] or [1, tokens]",
               c.in.shared.gate = {c.in.shared.gate.As<float>().data, 2, 1});
  EXPECT_ERROR("shared.gate: given with SharedGate::kNone",
               c.in.shared.kind = SharedGate::kNone);
  // A gate without rows.
  EXPECT_ERROR("shared.rows: is not [tokens, hidden]", c.in.shared.rows = {});
  EXPECT_SIZE_ERRORS("residual: is not [tokens, hidden]", c.in.residual, 2, 4);
  EXPECT_ERROR("norm_weight: is not [1, hidden]", c.in.norm_weight.cols = 4);
  EXPECT_ERROR("norm_weight: is not [1, hidden]", c.in.norm_weight = {});
  EXPECT_SIZE_ERRORS("normed: is not [tokens, hidden]", c.out.normed, 2, 4);
  EXPECT_ERROR("normed: is not [tokens, hidden]", c.out.normed = {});
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

}  // namespace
}  // namespace switchyard::testing_support
