// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Refusals of Quantize, GatherRows and ScatterRows for rows that may be
// quantised. (gather_test.cc has the other arguments of GatherRows.)

#include "src/calls/gather.h"
#include "src/calls/quantize.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kRows = 3, kCols = 40;

// Rows of i8 of 32 columns, with sums: every part there is.
const Format kParts = {"", Type::kI8, 32, Type::kF32, true};

class QuantizeErrors
    : public CallErrors<QuantizeInputs, QuantizeOutputs, QuantizeOptions> {
 protected:
  QuantizeErrors() : CallErrors("Quantize", Quantize) {
    call_ = {{from_.view()}, {rows_.view()}, {}};
  }
  void ExpectUntouched() const override { rows_.ExpectUntouched("rows"); }

  const GuardedRows from_{RowsOf(kF32Rows, {0, 1, 2}, kCols, 1), 0, 1};
  const GuardedRows rows_{kParts, kRows, kCols, 0, 1};
  // Memory of any format, large enough for its rows.
  const GuardedRows other_{kF32Rows, kRows, 512, 0, 0};

  AnyRows Other(Type type, size_t cols) const {
    return AnyMatrix(other_.view().data, type, kRows, cols, cols);
  }
};

TEST_F(QuantizeErrors, EveryLineOfItsTable) {
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::QuantizeCall>();
}

TEST_F(QuantizeErrors, Shapes) {
  EXPECT_SIZE_ERRORS("rows: is not [from.rows, from.cols]", c.in.from, 2, 39);
  const std::string scales =
      "rows.scales: is not [rows, 1] or one for 32, 64 or 128 columns (e8m0: "
      "32)";
  EXPECT_SIZE_ERRORS(scales, c.out.rows.scales, 2, 3);
  EXPECT_ERROR(scales, c.out.rows.scales.cols = 0);
  EXPECT_ERROR("rows.scales: not given", c.out.rows.scales = {});
  EXPECT_ERROR(scales, c.out.rows.rows = 2);
  EXPECT_ERROR(scales, c.out.rows.cols = 32; c.in.from.cols = 32);
  EXPECT_ERROR(scales, c.out.rows.type = Type::kF8E4M3; c.out.rows.sums = {};
               c.out.rows.scales.type = Type::kE8M0;
               c.out.rows.scales.cols = 1);
  EXPECT_SIZE_ERRORS("rows.sums: is not [rows, 1]", c.out.rows.sums, 2, 0);
}

TEST_F(QuantizeErrors, PartsThatTheTypeHasNot) {
  for (const Type type : {Type::kF32, Type::kBF16, Type::kQ8_0, Type::kQ8_K}) {
    const AnyRows other = Other(type, 256);
    const auto set = [&](Call& c) {
      c.in.from = Other(Type::kF32, 256);
      c.in.from.data = from_.view().data;
      const AnyRows parts = c.out.rows;
      c.out.rows = other;
      return parts;
    };
    EXPECT_ERROR("rows.scales: given with a type without",
                 c.out.rows.scales = set(c).scales);
    EXPECT_ERROR("rows.sums: given with a type without",
                 c.out.rows.sums = set(c).sums);
  }
  for (const Type type : {Type::kF8E4M3, Type::kF8E5M2}) {
    EXPECT_ERROR("rows.sums: given with a type without",
                 c.out.rows.type = type);
  }
  for (const Type type : {Type::kI8, Type::kU8}) {
    EXPECT_ERROR("rows.scales: has to be f32, or e8m0 with f8",
                 c.out.rows.type = type;
                 c.out.rows.scales.type = Type::kE8M0);
  }
  EXPECT_ERROR("rows: has to be f32, bf16, f16 or quantised",
               c.out.rows.type = Type::kE8M0);
}

TEST_F(QuantizeErrors, PartsOfBlocks) {
  const std::string message =
      "rows: cols or stride is not a multiple of its block";
  EXPECT_ERROR(message, c.out.rows = Other(Type::kQ8_0, kCols));
  EXPECT_ERROR(message, c.out.rows = Other(Type::kQ8_1, 32 + 16));
  EXPECT_ERROR(message, c.out.rows = Other(Type::kQ8_K, 32));
  EXPECT_ERROR(message, c.out.rows = Other(Type::kQ8_0, 64);
               c.out.rows.stride = 65);
}

TEST_F(QuantizeErrors, FormatsThatNothingConverts) {
  const std::string message = "from: nothing converts from its format";
  for (const Type type : {Type::kQ8_0, Type::kQ8_1, Type::kQ8_K}) {
    EXPECT_ERROR(
        message, c.in.from = Other(type, 256);
        c.out.rows = AnyMatrix(rows_.view().data, Type::kF32, kRows, 256, 256));
  }
  const GuardedRows mx({"", Type::kF8E4M3, 32, Type::kE8M0}, kRows, kCols, 0,
                       0);
  EXPECT_ERROR(message, c.in.from = mx.view());
}

TEST_F(QuantizeErrors, NothingToDoIsFine) {
  for (const Format& to : kFormats) {
    for (const size_t rows : {0u, 3u}) {
      const size_t cols = rows == 0 ? to.Cols(5) : 0;
      const GuardedRows from(kF32Rows, rows, cols, 0, 0);
      const GuardedRows out(to, rows, cols, 0, 0);
      EXPECT_OK(Quantize({from.view()}, {out.view()})) << to.name;
      out.ExpectUntouched(to.name);
    }
  }
}

class ScatterErrors
    : public CallErrors<ScatterInputs, ScatterOutputs, ScatterOptions> {
 protected:
  ScatterErrors() : CallErrors("ScatterRows", ScatterRows) {
    call_ = {
        {packed_.view(), {index_.data(), 2, 2}}, {rows_.view(), &report_}, {}};
  }
  void ExpectUntouched() const override { rows_.ExpectUntouched("rows"); }

  const std::vector<int32_t> index_ = {0, 1, 2, -1};
  const GuardedRows packed_{RowsOf(kParts, {0, 1, 2}, kCols, 1), 0, 1};
  const GuardedRows rows_{kParts, 4, kCols, 0, 1};
};

TEST_F(ScatterErrors, EveryLineOfItsTable) {
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::ScatterCall>();
}

TEST_F(ScatterErrors, Shapes) {
  const std::string shape = "rows: is not [tokens * top_k, hidden]";
  EXPECT_SIZE_ERRORS(shape, c.in.row_index, 1, 1);
  EXPECT_ERROR(shape, c.in.packed.cols = 33);
  EXPECT_ERROR("packed: nothing converts from its format",
               c.in.packed = AnyRows(
                   AnyMatrix(packed_.view().data, Type::kQ8_0, 1, 32, 32));
               c.out.rows.cols = 32; c.out.rows.scales.cols = 1);
}

TEST_F(ScatterErrors, NothingToDoIsFine) {
  float* const nowhere = nullptr;
  const float* const none = nullptr;
  Report report = kUnwritten;
  EXPECT_OK(ScatterRows({{none, 2, 0}, {index_.data(), 2, 2}},
                        {{nowhere, 4, 0}, &report}));
  EXPECT_EQ(report.skipped, 0u);
  EXPECT_OK(ScatterRows({{none, 0, 4}, {index_.data(), 0, 2}},
                        {{nowhere, 0, 4}, &report}));
  // No packed rows at all: -1 is fine, all else is not.
  std::vector<float> out(16, 1.0f);
  ExpectError(ScatterRows({{none, 0, 4}, {index_.data(), 2, 2}},
                          {{out.data(), 4, 4}, &report}),
              "ScatterRows: row_index: outside [-1, num_rows), and "
              "options.allow_skipped is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_EQ(report.skipped, 3u);
  EXPECT_EQ(out, std::vector<float>(16));
}

// The errors of GatherRows that gather_test.cc has not.
class GatherPartsErrors
    : public CallErrors<GatherInputs, GatherOutputs, GatherOptions> {
 protected:
  GatherPartsErrors() : CallErrors("GatherRows", GatherRows) {
    call_ = {{tokens_.view(), pairs_, {ids_.data(), 3, 2}, {ids_.data(), 3, 2}},
             {rows_.view(), &report_},
             {}};
  }
  void ExpectUntouched() const override { rows_.ExpectUntouched("rows"); }

  const std::vector<int32_t> pairs_ = {0, 1, 2, 5}, ids_ = {0, 1, 2, 3, 4, 5};
  const GuardedRows tokens_{RowsOf(kParts, {0, 1, 2}, kCols, 1), 0, 1};
  const GuardedRows rows_{kParts, 4, kCols, 0, 1};
};

TEST_F(GatherPartsErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::GatherCall>();
}

TEST_F(GatherPartsErrors, Shapes) {
  EXPECT_SIZE_ERRORS("row_index: is not [num_tokens, top_k]", c.in.row_index, 2,
                     1);
  EXPECT_ERROR("tokens: nothing converts from its format",
               c.in.tokens = AnyRows(
                   AnyMatrix(tokens_.view().data, Type::kQ8_0, 3, 32, 32));
               c.out.rows.cols = 32; c.out.rows.scales.cols = 1);
}

}  // namespace
}  // namespace switchyard::testing_support
