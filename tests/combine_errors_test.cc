// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of combine.h and its message; nothing is written.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/combine.h"
#include "testing/guarded_buffer.h"
#include "tests/call_errors.h"
#include "tests/combine_case.h"

namespace switchyard {
namespace testing_support {
namespace {

class CombineErrors
    : public CallErrors<CombineInputs, CombineOutputs, CombineOptions> {
 protected:
  CombineErrors()
      : CallErrors("Combine", switchyard::Combine),
        case_(MakeShape(), 1),
        out_(3, 5),
        normed_(3, 5) {
    call_.in = case_.Inputs();
    call_.in.norm_weight = case_.norm_weight;
    call_.out = {out_.view(), normed_.view(), &report_};
  }
  static CombineShape MakeShape() {
    CombineShape s = {3, 2, 5};
    s.row_index = s.shared = s.residual = true;
    return s;
  }
  void ExpectUntouched() const override {
    out_.ExpectUntouched("out");
    normed_.ExpectUntouched("normed");
  }

  // With the norm and without.
  void ExpectBoth(const std::string& message,
                  const std::function<void(Call&)>& spoil) const {
    Expect(message, spoil);
    Expect(message, [&](Call& c) {
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
      "row_index", [](Call& c) { return &c.in.row_index; }, {Type::kI32},
      "int32");
  ExpectViewErrors("shared.rows", [](Call& c) { return &c.in.shared.rows; });
  ExpectViewErrors("shared.gate", [](Call& c) { return &c.in.shared.gate; });
  ExpectViewErrors("residual", [](Call& c) { return &c.in.residual; });
  ExpectViewErrors("norm_weight", [](Call& c) { return &c.in.norm_weight; });
  ExpectViewErrors("out", [](Call& c) { return &c.out.out; });
  ExpectViewErrors("normed", [](Call& c) { return &c.out.normed; });
  // The norm's arguments are no condition for the checks of the others.
  call_.in.norm_weight = {};
  call_.out.normed = {};
  ExpectViewErrors("rows", [](Call& c) { return &c.in.rows; });
  ExpectViewErrors("out", [](Call& c) { return &c.out.out; });
}

TEST_F(CombineErrors, Shapes) {
  ExpectBoth("topk_weights: is not [tokens, top_k]",
             [](Call& c) { c.in.topk_weights.rows = 2; });
  ExpectBoth("topk_weights: top_k (cols) is 0",
             [](Call& c) { c.in.topk_weights.cols = 0; });
  ExpectBoth("rows: is not [num_rows, hidden]",
             [](Call& c) { c.in.rows.cols = 4; });
  ExpectBoth("rows: is not [tokens * top_k, hidden]", [](Call& c) {
    c.in.row_index = {};
    c.in.rows.rows = 5;
  });
  ExpectBoth("rows: is not [tokens * top_k, hidden]", [](Call& c) {
    c.in.row_index = {};
    c.in.rows.cols = 4;
  });
  ExpectBoth("row_index: is not [tokens, top_k]",
             [](Call& c) { c.in.row_index.rows = 2; });
  ExpectBoth("row_index: is not [tokens, top_k]",
             [](Call& c) { c.in.row_index.cols = 1; });
  ExpectBoth("shared.rows: is not [tokens, hidden]",
             [](Call& c) { c.in.shared.rows.rows = 2; });
  ExpectBoth("shared.rows: is not [tokens, hidden]",
             [](Call& c) { c.in.shared.rows.cols = 4; });
  ExpectBoth("shared.kind: is not a known SharedGate",
             [](Call& c) { c.in.shared.kind = static_cast<SharedGate>(9); });
  ExpectBoth("shared.gate: is not [tokens, 1] or [1, tokens]",
             [](Call& c) { c.in.shared.gate.cols = 2; });
  ExpectBoth("shared.gate: is not [tokens, 1] or [1, tokens]",
             [](Call& c) { c.in.shared.gate = {}; });
  ExpectBoth("shared.gate: is not [tokens, 1] or [1, tokens]", [](Call& c) {
    c.in.shared.gate = {c.in.shared.gate.As<float>().data, 2, 1};
  });
  ExpectBoth("shared.gate: given with SharedGate::kNone",
             [](Call& c) { c.in.shared.kind = SharedGate::kNone; });
  // A gate without rows.
  ExpectBoth("shared.rows: is not [tokens, hidden]",
             [](Call& c) { c.in.shared.rows = {}; });
  ExpectBoth("residual: is not [tokens, hidden]",
             [](Call& c) { c.in.residual.rows = 2; });
  ExpectBoth("residual: is not [tokens, hidden]",
             [](Call& c) { c.in.residual.cols = 4; });
  Expect("norm_weight: is not [1, hidden]",
         [](Call& c) { c.in.norm_weight.cols = 4; });
  Expect("norm_weight: is not [1, hidden]",
         [](Call& c) { c.in.norm_weight = {}; });
  Expect("normed: is not [tokens, hidden]",
         [](Call& c) { c.out.normed.rows = 2; });
  Expect("normed: is not [tokens, hidden]",
         [](Call& c) { c.out.normed.cols = 4; });
  Expect("normed: is not [tokens, hidden]", [](Call& c) { c.out.normed = {}; });
  for (const float eps : {-1e-9f, -kInf, kNaN}) {
    ExpectBoth("options: eps is negative or NaN",
               [&](Call& c) { c.options.eps = eps; });
  }
}

TEST_F(CombineErrors, Overlaps) {
  float* const o = out_.data();
  ExpectBoth("out: overlaps rows", [&](Call& c) {
    c.in.rows.data = o + 14;  // by one element
  });
  ExpectBoth("out: overlaps topk_weights",
             [&](Call& c) { c.in.topk_weights.data = o + 3; });
  ExpectBoth("out: overlaps row_index",
             [&](Call& c) { c.in.row_index.data = o; });
  ExpectBoth("out: overlaps shared.gate",
             [&](Call& c) { c.in.shared.gate.data = o + 12; });
  ExpectBoth("out: overlaps shared.rows without being the same view",
             [&](Call& c) { c.in.shared.rows.data = o + 1; });
  ExpectBoth("out: overlaps residual without being the same view",
             [&](Call& c) {
               c.in.residual.data = o;
               c.in.residual.stride = 6;
             });
  Expect("out: overlaps norm_weight",
         [&](Call& c) { c.in.norm_weight.data = o + 10; });
  float* const n = normed_.data();
  Expect("normed: overlaps out", [&](Call& c) { c.out.normed.data = o; });
  Expect("normed: overlaps rows", [&](Call& c) { c.in.rows.data = n; });
  Expect("normed: overlaps topk_weights",
         [&](Call& c) { c.in.topk_weights.data = n; });
  Expect("normed: overlaps row_index",
         [&](Call& c) { c.in.row_index.data = n; });
  Expect("normed: overlaps shared.rows",
         [&](Call& c) { c.in.shared.rows.data = n; });
  Expect("normed: overlaps shared.gate",
         [&](Call& c) { c.in.shared.gate.data = n; });
  Expect("normed: overlaps residual", [&](Call& c) { c.in.residual.data = n; });
  Expect("normed: overlaps norm_weight",
         [&](Call& c) { c.in.norm_weight.data = n; });
}

TEST_F(CombineErrors, NothingToDoIsFine) {
  CombineInputs in;
  in.topk_weights.cols = 8;
  Report report = kUnwritten;
  EXPECT_TRUE(Combine(in, {{}, {}, &report}).ok());
  EXPECT_EQ(report.skipped, 0u);
  float* const nowhere = nullptr;
  in.norm_weight = std::vector<float>();
  EXPECT_TRUE(Combine(in, {{nowhere, 0, 0}, {nowhere, 0, 0}}, {0.0f}).ok());
}

TEST_F(CombineErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
