// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of combine.h and its message; nothing is written.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/combine.h"
#include "testing/guarded_buffer.h"
#include "tests/combine_case.h"

namespace switchyard {
namespace testing_support {
namespace {

// A valid call of which one thing is then spoilt.
struct Call {
  CombineInputs in;
  Span<const float> norm_weight;
  float eps = 1e-6f;
  Matrix<float> out, normed;
};

class CombineErrors : public testing::Test {
 protected:
  CombineErrors() : case_(Shape(), 1), out_(3, 5), normed_(3, 5) {
    call_.in = case_.Inputs();
    call_.norm_weight = case_.norm_weight;
    call_.out = out_.view();
    call_.normed = normed_.view();
  }
  static CombineShape Shape() {
    CombineShape s;
    s.tokens = 3;
    s.top_k = 2;
    s.hidden = 5;
    s.row_index = true;
    s.shared = true;
    s.residual = true;
    return s;
  }

  // Both functions, unless only the norm's arguments are spoilt.
  void Expect(const char* message, const std::function<void(Call&)>& spoil,
              bool norm_only = false) {
    Call call = call_;
    spoil(call);
    size_t skipped = 77;
    Status status =
        WeightedSumRmsNorm(call.in, call.norm_weight, call.eps, call.out,
                           call.normed, SerialExecutor(), &skipped);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_STREQ(status.message(), message);
    if (!norm_only) {
      status = WeightedSum(call.in, call.out, SerialExecutor(), &skipped);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
      EXPECT_STREQ(status.message(), message);
    }
    EXPECT_EQ(skipped, 77u);
    out_.ExpectUntouched("out");
    normed_.ExpectUntouched("normed");
  }

  CombineCase case_;
  Guarded<float> out_, normed_;
  Call call_;
};

TEST_F(CombineErrors, Views) {
  Expect("combine: rows: data is null",
         [](Call& c) { c.in.rows.data = nullptr; });
  Expect("combine: rows: stride is smaller than cols",
         [](Call& c) { c.in.rows.stride = 4; });
  Expect("combine: rows: size overflows the address space",
         [](Call& c) { c.in.rows.stride = SIZE_MAX / 8; });
  Expect("combine: weights: data is null",
         [](Call& c) { c.in.weights.data = nullptr; });
  Expect("combine: weights: stride is smaller than cols",
         [](Call& c) { c.in.weights.stride = 1; });
  Expect("combine: row_index: data is null",
         [](Call& c) { c.in.row_index.data = nullptr; });
  Expect("combine: row_index: stride is smaller than cols",
         [](Call& c) { c.in.row_index.stride = 1; });
  Expect("combine: shared.rows: data is null",
         [](Call& c) { c.in.shared.rows.data = nullptr; });
  Expect("combine: shared.gate: data is null",
         [](Call& c) { c.in.shared.gate.data = nullptr; });
  Expect("combine: residual: data is null",
         [](Call& c) { c.in.residual.data = nullptr; });
  Expect("combine: out: data is null", [](Call& c) { c.out.data = nullptr; });
  Expect("combine: out: stride is smaller than cols",
         [](Call& c) { c.out.stride = 4; });
  Expect(
      "combine: norm_weight: data is null",
      [](Call& c) { c.norm_weight.data = nullptr; }, true);
  Expect(
      "combine: normed: data is null", [](Call& c) { c.normed.data = nullptr; },
      true);
  Expect(
      "combine: normed: stride is smaller than cols",
      [](Call& c) { c.normed.stride = 4; }, true);
}

TEST_F(CombineErrors, Shapes) {
  Expect("combine: weights: rows differ from out's",
         [](Call& c) { c.in.weights.rows = 2; });
  Expect("combine: weights: top_k is 0",
         [](Call& c) { c.in.weights.cols = 0; });
  Expect("combine: rows: cols differ from out's",
         [](Call& c) { c.in.rows.cols = 4; });
  Expect("combine: rows: not tokens * top_k without a row_index", [](Call& c) {
    c.in.row_index = {};
    c.in.rows.rows = 5;
  });
  Expect("combine: row_index: rows differ from out's",
         [](Call& c) { c.in.row_index.rows = 2; });
  Expect("combine: row_index: cols differ from weights'",
         [](Call& c) { c.in.row_index.cols = 1; });
  Expect("combine: shared.rows: rows differ from out's",
         [](Call& c) { c.in.shared.rows.rows = 2; });
  Expect("combine: shared.rows: cols differ from out's",
         [](Call& c) { c.in.shared.rows.cols = 4; });
  Expect("combine: shared.kind: not a SharedGate",
         [](Call& c) { c.in.shared.kind = static_cast<SharedGate>(9); });
  Expect("combine: shared.gate: size is not out's rows (0 for kNone)",
         [](Call& c) { c.in.shared.gate.size = 2; });
  Expect("combine: shared.gate: size is not out's rows (0 for kNone)",
         [](Call& c) { c.in.shared.kind = SharedGate::kNone; });
  Expect("combine: shared.gate: given without shared.rows",
         [](Call& c) { c.in.shared.rows = {}; });
  Expect("combine: residual: rows differ from out's",
         [](Call& c) { c.in.residual.rows = 2; });
  Expect("combine: residual: cols differ from out's",
         [](Call& c) { c.in.residual.cols = 4; });
  Expect(
      "combine: norm_weight: size is not out's cols",
      [](Call& c) { c.norm_weight.size = 4; }, true);
  Expect(
      "combine: eps: negative or NaN", [](Call& c) { c.eps = -1e-9f; }, true);
  Expect(
      "combine: eps: negative or NaN", [](Call& c) { c.eps = kNaN; }, true);
  Expect(
      "combine: normed: rows differ from out's",
      [](Call& c) { c.normed.rows = 2; }, true);
  Expect(
      "combine: normed: cols differ from out's",
      [](Call& c) { c.normed.cols = 4; }, true);
}

TEST_F(CombineErrors, Overlaps) {
  float* o = out_.data();
  const auto as_index = [&] { return reinterpret_cast<const int32_t*>(o); };
  Expect("combine: out: overlaps rows", [&](Call& c) {
    c.in.rows.data = o + 14;  // by one element
  });
  Expect("combine: out: overlaps weights",
         [&](Call& c) { c.in.weights.data = o + 3; });
  Expect("combine: out: overlaps row_index",
         [&](Call& c) { c.in.row_index.data = as_index(); });
  Expect("combine: out: overlaps shared.gate",
         [&](Call& c) { c.in.shared.gate.data = o + 12; });
  Expect("combine: out: overlaps shared.rows without being the same view",
         [&](Call& c) { c.in.shared.rows.data = o + 1; });
  Expect("combine: out: overlaps residual without being the same view",
         [&](Call& c) {
           c.in.residual.data = o;
           c.in.residual.stride = 6;
         });
  Expect(
      "combine: out: overlaps norm_weight",
      [&](Call& c) { c.norm_weight.data = o + 10; }, true);
  float* n = normed_.data();
  Expect(
      "combine: normed: overlaps out", [&](Call& c) { c.normed.data = o; },
      true);
  Expect(
      "combine: normed: overlaps rows", [&](Call& c) { c.in.rows.data = n; },
      true);
  Expect(
      "combine: normed: overlaps weights",
      [&](Call& c) { c.in.weights.data = n; }, true);
  Expect(
      "combine: normed: overlaps row_index",
      [&](Call& c) {
        c.in.row_index.data = reinterpret_cast<const int32_t*>(n);
      },
      true);
  Expect(
      "combine: normed: overlaps shared.rows",
      [&](Call& c) { c.in.shared.rows.data = n; }, true);
  Expect(
      "combine: normed: overlaps shared.gate",
      [&](Call& c) { c.in.shared.gate.data = n; }, true);
  Expect(
      "combine: normed: overlaps residual",
      [&](Call& c) { c.in.residual.data = n; }, true);
  Expect(
      "combine: normed: overlaps norm_weight",
      [&](Call& c) { c.norm_weight.data = n; }, true);
}

TEST_F(CombineErrors, NothingToDoIsFine) {
  CombineInputs in;
  in.weights.cols = 8;
  size_t skipped = 77;
  EXPECT_TRUE(WeightedSum(in, {}, SerialExecutor(), &skipped).ok());
  EXPECT_EQ(skipped, 0u);
  EXPECT_TRUE(WeightedSumRmsNorm(in, {}, 0.0f, {}, {}).ok());
}

TEST_F(CombineErrors, AnExecutorThatFailsIsReported) {
  class Failing final : public Executor {
   public:
    size_t Concurrency() const noexcept override { return 1; }
    Status ParallelFor(size_t, size_t, void (*)(void*, size_t, size_t),
                       void*) noexcept override {
      return Status(StatusCode::kOutOfMemory, "no memory");
    }
  } failing;
  const Status status = WeightedSum(call_.in, call_.out, failing);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_STREQ(status.message(), "no memory");
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
