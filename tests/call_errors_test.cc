// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests every invalid argument of combine.h and its message. The call must
// write nothing.

#include "tests/call_errors.h"

#include "src/calls/bucket.h"
#include "src/calls/combine.h"
#include "src/calls/gather.h"
#include "src/calls/hyper.h"
#include "src/calls/map.h"
#include "src/calls/quantize.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/hyper.h"
#include "switchyard/map.h"
#include "switchyard/quantize.h"
#include "tests/combine_case.h"
#include "tests/rows_case.h"

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

  // Expects `message` from the call with the norm. If the message is not
  // about the norm, also expects it from the call without the norm.
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
  // Replaces the rows by codes with scales and sums.
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

// Combine reads rows of f32, bf16 and f16, or codes with a scale per row.
TEST_F(CombineErrors, QuantizedRows) {
  const auto spoil = [&](const std::string& message, const ConstAnyRows& rows) {
    EXPECT_ERROR("rows" + message, c.in.rows = rows);
  };
  const std::string takes =
      ": has to be f32, bf16 or f16, or codes with f32 scales [num_rows, 1]";
  const std::vector<float> scales(12);
  const void* const data = case_.rows.data();
  const ConstAnyMatrix one(scales.data(), 6, 1);
  spoil(".scales: given, but the rows' type has none",
        {ConstAnyMatrix(case_.rows.data(), 6, 5), one});
  // quantize.h has these formats, but Combine does not read them.
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

// `normed` may have a quantised format, with scales and sums.
TEST_F(CombineErrors, QuantizedNormed) {
  float* const n = normed_.data();
  call_.out.normed = {AnyMatrix(static_cast<void*>(n), Type::kI8, 3, 5, 5),
                      AnyMatrix(n + 8, 3, 1),
                      AnyMatrix(reinterpret_cast<int32_t*>(n) + 12, 3, 1)};
  EXPECT_OK(Run(call_));
  EXPECT_NE(n[8], FromBits(kCanary));
}

TEST_F(CombineErrors, Shapes) {
  EXPECT_ERROR("topk_weights: top_k (cols) is 0", c.in.topk_weights.cols = 0);
  EXPECT_ERROR("rows: is not [tokens * top_k, hidden]",
               c.in.row_index = RowIndex::kTokenOrder, c.in.rows.rows = 5);
  EXPECT_ERROR("rows: is not [tokens * top_k, hidden]",
               c.in.row_index = RowIndex::kTokenOrder, c.in.rows.cols = 4);
  EXPECT_ERROR("shared.kind: is not a known SharedGate",
               c.in.shared.kind = static_cast<SharedGate>(9));
  EXPECT_ERROR("shared.gate: given with SharedGate::kNone",
               c.in.shared.kind = SharedGate::kNone);
}

TEST_F(CombineErrors, Overlaps) {
  float* const o = out_.data();
  EXPECT_ERROR("out: overlaps residual without being the same view",
               c.in.residual.data = o, c.in.residual.stride = 6);
  // `out` begins where residual begins, but has another type.
  EXPECT_ERROR("out: overlaps residual without being the same view",
               c.in.residual = {reinterpret_cast<BFloat16*>(o), 3, 5});
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

// A call that has all inputs of Combine, including two shared experts.
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

// Calls without routed experts.
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
              "Combine: rows: none of rows, shared.rows, identity.rows and "
              "residual is given");
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

// If `out` is not given, `normed` may be the same view as the residual, but
// may not overlap it otherwise.
TEST_F(CombineFormErrors, NormedAlone) {
  float* const n = normed_.data();
  EXPECT_ERROR("normed: overlaps residual without being the same view",
               c.out.out = {}, c.in.residual.data = n,
               c.in.residual.stride = 6);
  EXPECT_ERROR("normed: overlaps shared.rows without being the same view",
               c.out.out = {}, c.in.shared.rows.data = n + 1);
}

// Tests that Quantize, GatherRows and ScatterRows refuse invalid arguments,
// also for quantised rows. (gather_test.cc tests the other arguments of
// GatherRows.)

constexpr size_t kRows = 3, kCols = 40;

// A format with all parts: i8 codes, a scale per 32 columns, and sums.
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
  // Memory that is large enough for rows of any format.
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
  const std::string scales =
      "rows.scales: is not [rows, 1] or one for 32, 64 or 128 columns (e8m0: "
      "32)";
  EXPECT_SIZE_ERRORS(scales, c.out.rows.scales, 2, 3);
  EXPECT_ERROR(scales, c.out.rows.scales.cols = 0);
  EXPECT_ERROR(scales, c.out.rows.rows = 2);
  EXPECT_ERROR(scales, c.out.rows.cols = 32; c.in.from.cols = 32);
  EXPECT_ERROR(scales, c.out.rows.type = Type::kF8E4M3; c.out.rows.sums = {};
               c.out.rows.scales.type = Type::kE8M0;
               c.out.rows.scales.cols = 1);
}

TEST_F(QuantizeErrors, SumsThatCouldOverflow) {
  const size_t cols = (size_t{1} << 24) + 1;
  EXPECT_ERROR("rows.sums: of more than 2^24 columns", c.in.from.cols = cols;
               c.in.from.stride = cols; c.out.rows.cols = cols;
               c.out.rows.stride = cols;
               c.out.rows.scales.cols = c.out.rows.scales.stride = 1);
}

// The message names the output, because callers choose the shapes of outputs
// to fit the inputs.
TEST_F(QuantizeErrors, BlamesATransposedOutput) {
  EXPECT_ERROR(
      "rows: is not [from.rows, from.cols]",
      c.in.from = ConstAnyMatrix(from_.view().data, Type::kF32, 3, 40, 40);
      c.out.rows = AnyMatrix(other_.view().data, Type::kF32, 40, 3, 3));
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
    EXPECT_ERROR("rows.scales: given, but the rows' type has none",
                 c.out.rows.scales = set(c).scales);
    EXPECT_ERROR("rows.sums: given, but the rows' type has none",
                 c.out.rows.sums = set(c).sums);
  }
  for (const Type type : {Type::kF8E4M3, Type::kF8E5M2}) {
    EXPECT_ERROR("rows.sums: given, but the rows' type has none",
                 c.out.rows.type = type);
  }
  for (const Type type : {Type::kI8, Type::kU8}) {
    EXPECT_ERROR("rows.scales: has to be f32, or e8m0 with f8",
                 c.out.rows.type = type;
                 c.out.rows.scales.type = Type::kE8M0);
  }
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
  const std::string message = "from: no kernel converts from its format";
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

TEST_F(ScatterErrors, FormatsThatNothingConverts) {
  EXPECT_ERROR("packed: no kernel converts from its format",
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
  // Without packed rows, the only valid index is -1.
  std::vector<float> out(16, 1.0f);
  ExpectError(ScatterRows({{none, 0, 4}, {index_.data(), 2, 2}},
                          {{out.data(), 4, 4}, &report}),
              "ScatterRows: row_index: outside [-1, num_rows), and "
              "options.allow_skipped is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_EQ(report.skipped, 3u);
  EXPECT_EQ(out, std::vector<float>(16));
}

// The errors of GatherRows that gather_test.cc does not test.
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

TEST_F(GatherPartsErrors, FormatsThatNothingConverts) {
  EXPECT_ERROR("tokens: no kernel converts from its format",
               c.in.tokens = AnyRows(
                   AnyMatrix(tokens_.view().data, Type::kQ8_0, 3, 32, 32));
               c.out.rows.cols = 32; c.out.rows.scales.cols = 1);
}

// Tests every invalid argument of bucket.h and its message. The call must
// write nothing.

// A call with 4 tokens, 2 pairs per token and 3 experts, for BucketPacked and
// BucketStrided.
template <class Out>
class BucketErrors : public CallErrors<BucketInputs, Out, BucketOptions> {
 protected:
  using Base = CallErrors<BucketInputs, Out, BucketOptions>;
  using Base::call_, Base::Expect;
  using typename Base::Call;

  BucketErrors(const char* name, typename Base::Function function)
      : Base(name, function), ids_(4, 2), counts_(1, 3), scratch_(1, 16) {
    ids_.Fill({0, 1, 2, 0, 1, 2, 0, 1});
    call_.in = {ids_.view(), scratch_.span()};
    call_.out.tokens_per_expert = counts_.span();
    call_.out.report = &this->report_;
  }
  void ExpectUntouched() const override {
    counts_.ExpectUntouched("tokens_per_expert");
    scratch_.ExpectUntouched("scratch");
  }

  void ExpectCommonErrors() const {
    EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
                 c.in.topk_ids.rows = size_t{1} << 30);
    EXPECT_ERROR("tokens_per_expert: more than 2^31 - 1 experts",
                 c.out.tokens_per_expert.size = size_t{1} << 31);
  }

  const Guarded<int32_t> ids_, counts_, scratch_;
};

class BucketPackedErrors : public BucketErrors<PackedBuckets> {
 protected:
  BucketPackedErrors()
      : BucketErrors("BucketPacked", BucketPacked),
        offsets_(1, 4),
        pairs_(1, 8),
        row_index_(4, 2) {
    call_.out.offsets = offsets_.span();
    call_.out.pairs = pairs_.span();
    call_.out.row_index = row_index_.view();
  }
  void ExpectUntouched() const override {
    BucketErrors::ExpectUntouched();
    offsets_.ExpectUntouched("offsets");
    pairs_.ExpectUntouched("pairs");
    row_index_.ExpectUntouched("row_index");
  }

  const Guarded<int32_t> offsets_, pairs_, row_index_;
};

TEST_F(BucketPackedErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::PackedCall>();
  ExpectCommonErrors();
}

// Only tokens_per_expert and offsets depend on the number of experts. If they
// disagree, either may be wrong, and the message names the shorter array.
TEST_F(BucketPackedErrors, NamesTheArrayThatIsTooShort) {
  for (const size_t missing : {1u, 2u}) {
    EXPECT_ERROR("tokens_per_expert: size is not num_experts",
                 c.out.tokens_per_expert.size -= missing);
    EXPECT_ERROR("offsets: size is not num_experts + 1",
                 c.out.offsets.size -= missing);
  }
  EXPECT_ERROR("tokens_per_expert: size is not num_experts",
               ++c.out.offsets.size);
  EXPECT_ERROR("offsets: size is not num_experts + 1",
               ++c.out.tokens_per_expert.size);
}

TEST_F(BucketPackedErrors, BlamesATransposedOutput) {
  EXPECT_ERROR("row_index: is not [tokens, top_k]",
               c.out.row_index = AnyMatrix(row_index_.data(), 2, 4));
}

class BucketStridedErrors : public BucketErrors<StridedBuckets> {
 protected:
  BucketStridedErrors()
      : BucketErrors("BucketStrided", BucketStrided), table_(1, 24) {
    call_.out.ids = table_.span();
    call_.out.row_stride = 8;
    call_.out.zero_padding = true;
  }
  void ExpectUntouched() const override {
    BucketErrors::ExpectUntouched();
    table_.ExpectUntouched("ids");
  }

  const Guarded<int32_t> table_;
};

TEST_F(BucketStridedErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::StridedCall>();
  ExpectCommonErrors();
  EXPECT_ERROR("row_stride: the table overflows the address space",
               c.out.row_stride = SIZE_MAX / 3);
}

TEST(DispatchArgs, ErrorsNameTheArgumentAndWriteNothing) {
  const Guarded<uint32_t> args(1, 3);
  const auto expect = [&](const DispatchInputs& in, const DispatchOutputs& out,
                          const DispatchOptions& options,
                          const std::string& message) {
    ExpectError(MakeDispatchArgs(in, out, options),
                "MakeDispatchArgs: " + message);
    args.ExpectUntouched("args");
  };
  const DispatchOutputs out = {args.span()};
  expect({1, 3, 2}, {{nullptr, 3}}, {}, "args: data is null");
  expect({1, 3, 2}, {{args.data(), 2}}, {}, "args: size is not 3");
  expect({1, 3, 2}, out, {0, 64}, "options: tile_pairs is 0");
  expect({1, 3, 2}, out, {32, 0}, "options: tile_features is 0");
  expect({size_t{1} << 40, 3, 2}, out, {32, 1},
         "max_rows: more than 2^32 - 1 tiles");
  expect({1, size_t{1} << 32, 3}, out, {}, "num_experts: more than 2^32 - 1");
  expect({1, 0, 3}, out, {}, "num_experts: is 0");
  expect({1, 3, size_t{1} << 40}, out, {32, 1},
         "features: more than 2^32 - 1 tiles");
}

TEST(DispatchArgs, TilesMatter) {
  std::vector<uint32_t> args(3);
  ASSERT_OK(MakeDispatchArgs({65, 9, 129}, {args}));
  EXPECT_EQ(args, (std::vector<uint32_t>{3, 3, 9}));
  ASSERT_OK(MakeDispatchArgs({65, 9, 129}, {args}, {16, 32}));
  EXPECT_EQ(args, (std::vector<uint32_t>{5, 5, 9}));
  ASSERT_OK(MakeDispatchArgs({INT32_MAX, 9, 0}, {args}, {1, 1}));
  EXPECT_EQ(args, (std::vector<uint32_t>{INT32_MAX, 0, 9}));
  ASSERT_OK(MakeDispatchArgs({UINT32_MAX, 9, 0}, {args}, {1, 1}));
  EXPECT_EQ(args, (std::vector<uint32_t>{UINT32_MAX, 0, 9}));
}

// Tests every invalid argument of BucketAligned and MapPairs, and its
// message. The calls must write nothing.

// A call with 4 tokens, 2 pairs per token and 3 experts.
class AlignedErrors
    : public CallErrors<AlignedInputs, AlignedBuckets, AlignedOptions> {
 protected:
  AlignedErrors()
      : CallErrors("BucketAligned", BucketAligned),
        ids_(4, 2),
        map_(1, 5),
        scratch_(1, 16),
        counts_(1, 3),
        offsets_(1, 4),
        pairs_(1, 14),
        row_index_(4, 2),
        block_experts_(1, 7),
        row_tokens_(1, 14),
        active_(1, 3) {
    ids_.Fill({0, 1, 2, 0, 1, 2, 0, 1});
    map_.Fill({0, 1, 2, 0, 0});
    call_ = {
        {ids_.view(), map_.span(), scratch_.span()},
        {counts_.span(), offsets_.span(), pairs_.span(), row_index_.view(),
         block_experts_.span(), row_tokens_.span(), active_.span(), &report_},
        {2}};
  }
  void ExpectUntouched() const override {
    for (const Guarded<int32_t>* m :
         {&scratch_, &counts_, &offsets_, &pairs_, &row_index_, &block_experts_,
          &row_tokens_, &active_}) {
      m->ExpectUntouched("an output");
    }
  }

  const Guarded<int32_t> ids_, map_, scratch_, counts_, offsets_, pairs_,
      row_index_, block_experts_, row_tokens_, active_;
};

TEST_F(AlignedErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::AlignedCall>();
  EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
               c.in.topk_ids.rows = size_t{1} << 30);
  EXPECT_ERROR("expert_map: more than 2^31 - 1 ids",
               c.in.expert_map.size = size_t{1} << 31);
  EXPECT_ERROR("expert_map: size overflows the address space",
               c.in.expert_map.size = SIZE_MAX / 2);
  EXPECT_ERROR("tokens_per_expert: more than 2^31 - 1 experts",
               c.out.tokens_per_expert.size = size_t{1} << 31);
}

TEST_F(AlignedErrors, NamesTheArrayThatIsTooShort) {
  EXPECT_ERROR("tokens_per_expert: size is not num_experts",
               --c.out.tokens_per_expert.size;
               c.out.active_experts = {});
  EXPECT_ERROR("offsets: size is not num_experts + 1", --c.out.offsets.size;
               c.out.active_experts = {});
  // active_experts shows whether tokens_per_expert or offsets is wrong.
  EXPECT_ERROR("tokens_per_expert: size is not num_experts",
               ++c.out.tokens_per_expert.size);
  EXPECT_ERROR("offsets: size is not num_experts + 1", ++c.out.offsets.size);
  EXPECT_ERROR("active_experts: size is not num_experts",
               ++c.out.active_experts.size);
}

TEST_F(AlignedErrors, BlamesATransposedOutput) {
  EXPECT_ERROR("row_index: is not [tokens, top_k]",
               c.out.row_index = AnyMatrix(row_index_.data(), 2, 4));
}

// The ids are valid, but expert_map has an invalid element.
TEST_F(AlignedErrors, NamesTheMapThatIsWrong) {
  for (const int32_t wrong : {3, 77, -2, INT32_MIN}) {
    const std::vector<int32_t> map = {0, wrong, 2, 0, 0};
    call_.in.expert_map = map;
    const Status status = Run(call_);
    ExpectError(status,
                "BucketAligned: expert_map: outside [-1, num_experts), and "
                "options.allow_dropped is not set",
                StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.details(),
              "got " + std::to_string(wrong) + " at 1, needs -1 to 2");
    call_.options.allow_dropped = true;
    EXPECT_OK(Run(call_));
    call_.options.allow_dropped = false;
  }
  const std::vector<int32_t> elsewhere = {0, -1, 2, 0, 0};
  call_.in.expert_map = elsewhere;
  const Status status = Run(call_);
  ExpectError(status,
              "BucketAligned: topk_ids: outside [0, num_experts), and "
              "options.allow_dropped is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_STREQ(status.details(), "got 3 of 8");
}

TEST_F(AlignedErrors, Options) {
  for (const size_t size : {size_t{1} << 31, SIZE_MAX, size_t{1} << 30}) {
    EXPECT_ERROR("options: block_size: more than 2^31 - 1 padded pairs",
                 c.options.block_size = size);
  }
}

// A call with 4 tokens, 2 pairs per token and 2 destinations. The call asks
// for a list of pairs and a list of tokens.
class MapErrors : public CallErrors<MapInputs, MapOutputs, MapOptions> {
 protected:
  MapErrors()
      : CallErrors("MapPairs", MapPairs),
        ids_(4, 2),
        table_(1, 5),
        ints_(1, 400),
        longs_(1, 200) {
    ids_.Fill({0, 1, 2, 0, 1, 2, 0, 1});
    table_.Fill({0, 1, 1, 0, 0});
    int32_t* at = ints_.data();
    int64_t* at64 = longs_.data();
    // The views have wide gaps between them. So if a test makes one view begin
    // at the address of another, the two do not reach a third view.
    const auto span = [&](size_t size) {
      at += size + 16;
      return Span<int32_t>(at - size, size);
    };
    const auto span64 = [&](size_t size) {
      at64 += size + 16;
      return Span<int64_t>(at64 - size, size);
    };
    const auto rows = [&] {
      const auto counts = span(2), offsets = span(3), list = span(8);
      const auto counts64 = span64(2), offsets64 = span64(3);
      return switchyard::MapRows{counts, offsets, list, counts64, offsets64};
    };
    const auto index = [&] { return AnyMatrix(span(8).data, 4, 2); };
    call_.in = {ids_.view(), table_.span(), span(16)};
    call_.out.pairs = rows();
    call_.out.pair_index = index();
    call_.out.tokens = rows();
    call_.out.copy_index = index();
    call_.out.return_index = index();
    call_.out.report = &report_;
  }
  void ExpectUntouched() const override {
    ints_.ExpectUntouched("an output");
    longs_.ExpectUntouched("an output of 64 bits");
  }

  const Guarded<int32_t> ids_, table_, ints_;
  const Guarded<int64_t> longs_;
};

TEST_F(MapErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::MapCall>();
  EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
               c.in.topk_ids.rows = size_t{1} << 30);
  EXPECT_ERROR("destinations: more than 2^31 - 1 experts",
               c.in.destinations.size = size_t{1} << 31);
  EXPECT_ERROR("pairs.counts: more than 2^31 - 1 destinations",
               c.out.pairs.counts.size = size_t{1} << 31);
  EXPECT_ERROR("pairs.rows: given without offsets", c.out.pairs.offsets = {});
  EXPECT_ERROR("pairs.element_offsets: given without offsets",
               c.out.pairs.offsets = {};
               c.out.pairs.rows = {});
  EXPECT_ERROR("tokens.counts: not given, but tokens.offsets is",
               c.out.tokens.counts = {});
  EXPECT_ERROR("tokens.offsets: not given, but tokens.counts is",
               c.out.tokens.offsets = {});
  EXPECT_ERROR("tokens.element_counts: given without counts",
               c.out.tokens.counts = c.out.tokens.offsets = {};
               c.out.tokens.rows = {}; c.out.tokens.element_offsets = {});
}

TEST_F(MapErrors, NamesTheTableThatIsWrong) {
  for (const int32_t wrong : {2, -2}) {
    const std::vector<int32_t> table = {0, wrong, 1, 0, 0};
    call_.in.destinations = table;
    const Status status = Run(call_);
    ExpectError(status,
                "MapPairs: destinations: outside [-1, num_destinations), and "
                "options.allow_dropped is not set",
                StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.details(),
              "got " + std::to_string(wrong) + " at 1, needs -1 to 1");
  }
}

TEST_F(MapErrors, Indices) {
  EXPECT_ERROR("pair_index: given without pairs.rows", c.out.pairs.offsets = {};
               c.out.pairs.rows = {}; c.out.pairs.element_offsets = {});
  EXPECT_ERROR("copy_index: given without tokens.rows", c.out.tokens = {});
  EXPECT_ERROR("return_index: given without tokens.rows", c.out.tokens = {};
               c.out.copy_index = {});
}

// In this call only topk_ids and pair_index are [tokens, top_k], so each fits
// the other with rows and columns exchanged. The message has to name the
// output, pair_index.
TEST_F(MapErrors, BlamesATransposedOutput) {
  EXPECT_ERROR("pair_index: is not [tokens, top_k]",
               std::swap(c.out.pair_index.rows, c.out.pair_index.cols);
               c.out.pair_index.stride = 4; c.out.tokens = {};
               c.out.copy_index = {}; c.out.return_index = {});
}

TEST_F(MapErrors, Options) {
  EXPECT_ERROR("options: experts_per_destination: given with destinations",
               c.options.experts_per_destination = 2);
  EXPECT_ERROR(
      "destinations: neither destinations nor options.experts_per_destination "
      "is given",
      c.in.destinations = {});
  for (const size_t many : {size_t{1} << 30, SIZE_MAX}) {
    EXPECT_ERROR("options: experts_per_destination: more than 2^31 - 1 experts",
                 c.in.destinations = {};
                 c.options.experts_per_destination = many);
  }
  for (const size_t many : {size_t{1} << 60, SIZE_MAX}) {
    EXPECT_ERROR("options: row_elements: elements overflow 64 bits",
                 c.options.row_elements = many);
  }
}

// Lists of pairs may have 65537 destinations, but lists of tokens may not.
TEST_F(MapErrors, TokensGoToAtMost65536Destinations) {
  std::vector<int32_t> counts(65537), offsets(65538), tokens(8),
      token_counts(65537), token_offsets(65538);
  MapOutputs out;
  out.pairs.counts = counts;
  EXPECT_OK(MapPairs(call_.in, out));
  out.tokens = {token_counts, token_offsets, tokens};
  ExpectError(MapPairs(call_.in, out),
              "MapPairs: tokens: more than 65536 destinations");
  counts.resize(65536);
  token_counts.resize(65536);
  token_offsets.resize(65537);
  out.pairs.counts = counts;
  out.tokens = {token_counts, token_offsets, tokens};
  EXPECT_OK(MapPairs(call_.in, out));
  EXPECT_EQ(token_offsets.back(), 7);
}

// A call with 4 tokens, 2 pairs per token, and 3 experts with at most 2
// replicas each.
class ReplicaErrors
    : public CallErrors<ReplicaInputs, ReplicaOutputs, ReplicaOptions> {
 protected:
  ReplicaErrors()
      : CallErrors("MapReplicas", MapReplicas),
        ids_(4, 2),
        replicas_(3, 2),
        replica_counts_(1, 3),
        scratch_(1, 16),
        physical_(4, 2),
        tokens_(1, 3) {
    ids_.Fill({0, 1, 2, 0, 1, 2, 0, 1});
    replicas_.Fill({0, 3, 1, 0, 2, 4});
    replica_counts_.Fill({2, 1, 2});
    call_ = {{ids_.view(), replicas_.view(), replica_counts_.span(),
              scratch_.span()},
             {physical_.view(), tokens_.span(), &report_},
             {}};
  }
  void ExpectUntouched() const override {
    for (const Guarded<int32_t>* m : {&scratch_, &physical_, &tokens_}) {
      m->ExpectUntouched("an output");
    }
  }

  const Guarded<int32_t> ids_, replicas_, replica_counts_, scratch_, physical_,
      tokens_;
};

TEST_F(ReplicaErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::ReplicaCall>();
  EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
               c.in.topk_ids.rows = size_t{1} << 30);
  EXPECT_ERROR("replica_counts: more than 2^31 - 1 experts",
               c.in.replica_counts.size = size_t{1} << 31);
  EXPECT_ERROR("replicas: more than 2^31 - 1 columns",
               c.in.replicas.cols = c.in.replicas.stride = size_t{1} << 31);
  for (const size_t first : {size_t{1} << 31, SIZE_MAX}) {
    EXPECT_ERROR("options: first_replica: more than 2^31 - 1",
                 c.options.first_replica = first);
  }
}

TEST_F(ReplicaErrors, NamesTheCountThatIsWrong) {
  for (const int32_t wrong : {3, -1, INT32_MIN}) {
    const std::vector<int32_t> counts = {2, wrong, 2};
    call_.in.replica_counts = counts;
    call_.options.allow_dropped = false;
    const Status status = Run(call_);
    ExpectError(status,
                "MapReplicas: replica_counts: outside [0, max_replicas], and "
                "options.allow_dropped is not set",
                StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.details(),
              "got " + std::to_string(wrong) + " at 1, needs 0 to 2");
    call_.options.allow_dropped = true;
    EXPECT_OK(Run(call_));
    EXPECT_EQ(report_.dropped, 3u);
  }
  const std::vector<int32_t> none = {2, 0, 2};
  call_.in.replica_counts = none;
  call_.options.allow_dropped = false;
  const Status status = Run(call_);
  ExpectError(status,
              "MapReplicas: topk_ids: without a replica, and "
              "options.allow_dropped is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_STREQ(status.details(), "got 3 of 8");
}

// A call by rank 1 of 3 ranks.
class CountsErrors
    : public CallErrors<CountsInputs, CountsOutputs, CountsOptions> {
 protected:
  CountsErrors()
      : CallErrors("MapCounts", RunAlone), counts_(3, 3), longs_(1, 200) {
    counts_.Fill({0, 1, 2, 3, 4, 5, 6, 7, 8});
    int64_t* at = longs_.data();
    const auto span = [&](size_t size) {
      at += size + 16;
      return Span<int64_t>(at - size, size);
    };
    call_.in = {counts_.view()};
    call_.out = {span(3), span(4), span(3), span(4), span(3), &report_};
    call_.options.rank = 1;
  }
  static Status RunAlone(const CountsInputs& in, const CountsOutputs& out,
                         const CountsOptions& options,
                         Executor& /*executor*/) noexcept {
    return MapCounts(in, out, options);
  }
  void ExpectUntouched() const override { longs_.ExpectUntouched("an output"); }

  const Guarded<int32_t> counts_;
  const Guarded<int64_t> longs_;
};

TEST_F(CountsErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::CountsCall>();
  for (const size_t rank : {size_t{3}, SIZE_MAX}) {
    EXPECT_ERROR("options: rank: not below ranks", c.options.rank = rank);
  }
}

TEST_F(CountsErrors, NamesTheRanksOfACountThatIsWrong) {
  std::vector<int64_t> wide = {0, 1, 2, 3, 4, 5, 6, 7, INT64_MIN};
  call_.in.counts = {wide.data(), 3, 3};
  EXPECT_ERROR("counts: is negative", static_cast<void>(c));
  EXPECT_STREQ(Run(call_).details(), "from rank 2 to rank 2");
  // The sum of a column overflows. The column belongs to another rank than
  // options.rank.
  wide[8] = INT64_MAX - 6;
  EXPECT_ERROR("counts: elements overflow 64 bits", static_cast<void>(c));
  EXPECT_STREQ(Run(call_).details(), "rows received by rank 2");
  wide[8] = INT64_MAX / 2;
  EXPECT_ERROR("counts: elements overflow 64 bits", c.options.row_elements = 3);
  // The sum of the row of this rank overflows, but no column does.
  wide = {0, 0, 0, INT64_MAX, 1, 0, 0, 0, 0};
  EXPECT_ERROR("counts: elements overflow 64 bits", static_cast<void>(c));
  EXPECT_STREQ(Run(call_).details(), "rows sent by rank 1");
  call_.options.rank = 0;
  EXPECT_OK(Run(call_));
}

// Tests every invalid argument of hyper.h and its message. The call must
// write nothing.

class HyperErrors : public CallErrors<HyperInputs, HyperOutputs, HyperOptions> {
 protected:
  HyperErrors()
      : CallErrors("HyperConnect", HyperConnect),
        values_(64),
        streams_(6, 5),
        scales_(3, 1),
        out_(3, 5),
        normed_(3, 5),
        normed_scales_(3, 1),
        normed_sums_(3, 1) {
    const float* const v = values_.data();
    call_.in = {{v, 6, 5}, {v, 3, 5}, {v, 3, 2},
                {v, 3, 4}, {v, 3, 2}, {v, 1, 5}};
    call_.out = {streams_.view(), scales_.view(), out_.view(), normed_.view()};
    call_.options.num_streams = 2;
  }
  void ExpectUntouched() const override {
    streams_.ExpectUntouched("streams");
    scales_.ExpectUntouched("scales");
    out_.ExpectUntouched("out");
    normed_.ExpectUntouched("normed");
    normed_scales_.ExpectUntouched("normed.scales");
    normed_sums_.ExpectUntouched("normed.sums");
  }

  const std::vector<float> values_;
  Guarded<float> streams_, scales_, out_, normed_, normed_scales_;
  Guarded<int32_t> normed_sums_;
};

TEST_F(HyperErrors, EveryLineOfItsTable) {
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::HyperCall>();
  float* const n = normed_.data();
  call_.out.normed = {AnyMatrix(static_cast<void*>(n), Type::kI8, 3, 5, 5),
                      normed_scales_.view(), normed_sums_.view()};
  ExpectSpoiltCallsAreRefused<calls::HyperCall>();
}

TEST_F(HyperErrors, WhatGoesTogether) {
  EXPECT_ERROR("block: not given", c.in.block = {}, c.in.post = {});
  EXPECT_ERROR("pre: not given, but out or normed needs it", c.in.pre = {});
  EXPECT_ERROR("pre: given without out or normed", c.out.out = {},
               c.out.normed = {}, c.in.norm_weight = {});
}

// The streams of a token are wrongly in one row. The other arguments are
// right.
TEST_F(HyperErrors, BlamesStreamsThatAreSideBySide) {
  EXPECT_ERROR(
      "streams: is [tokens, num_streams * hidden], and has to be [tokens * "
      "num_streams, hidden]",
      c.in = {};
      c.out.out = AnyMatrix(out_.data(), 2, 5); c.out.streams = {};
      c.out.scales = {}; c.out.normed = {};
      c.in.streams = {values_.data(), 2, 10};
      c.in.block = {values_.data(), 2, 5};
      c.in.post = c.in.pre = {values_.data(), 2, 2});
}

TEST_F(HyperErrors, NothingToDoIsFine) {
  HyperOptions options;
  options.num_streams = 4;
  EXPECT_OK(HyperConnect({}, {}, options));
}

}  // namespace
}  // namespace switchyard::testing_support
