// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Arguments at the edge of what is valid: nothing to do, one row with any
// stride, optional things that are half there, sizes of every integer type.

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/route.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

// A pool that divides by the grain, and is not to be woken for nothing.
class DividingExecutor final : public Executor {
 public:
  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    EXPECT_GE(count, 1u);
    EXPECT_GE(grain, 1u);
    body(context, 0, 0, count);
    return Status();
  }
};

TEST(NothingToDo, DoesNotReachTheExecutor) {
  DividingExecutor pool;
  float* const f = nullptr;
  int32_t* const i = nullptr;
  std::vector<int32_t> counts(3), offsets(4), table(15);
  for (const size_t tokens : {0u, 5u}) {
    std::vector<float> logits(tokens * 3), weights(tokens * 2);
    std::vector<int32_t> ids(tokens * 2), pairs(tokens * 2);
    EXPECT_OK(RouteTopK({{logits.data(), tokens, 3}},
                        {{ids.data(), tokens, 2}, {weights.data(), tokens, 2}},
                        {}, pool));
    const ConstAnyMatrix topk_ids(ids.data(), tokens, 2);
    EXPECT_OK(BucketPacked({topk_ids}, {counts, offsets, pairs}, {}, pool));
    EXPECT_OK(BucketStrided({topk_ids}, {counts, table, 0, true}, {}, pool));
    EXPECT_OK(GatherRows({{f, tokens, 0}, pairs, topk_ids},
                         {{f, pairs.size(), 0}}, {}, pool));
    EXPECT_OK(
        Activate({{f, tokens, 0}, {f, tokens, 0}}, {{f, tokens, 0}}, {}, pool));
    EXPECT_OK(Combine({{f, tokens * 2, 0},
                       {weights.data(), tokens, 2},
                       RowIndex::kTokenOrder},
                      {{f, tokens, 0}}, {}, pool));
  }
  EXPECT_OK(Activate({{f, 0, 5}, {f, 0, 5}}, {{f, 0, 5}}, {}, pool));
  const std::vector<float> hidden(20);
  EXPECT_OK(GatherRows({{hidden.data(), 4, 5}, {i, 0}, {table.data(), 4, 2}},
                       {{f, 0, 5}}, {}, pool));
  EXPECT_OK(Combine({{f, 0, 5}, {f, 0, 2}, RowIndex::kTokenOrder}, {{f, 0, 5}},
                    {}, pool));
}

// A single row is as long as its columns, whatever its stride.
TEST(OneRow, OverlapsWhateverItsStride) {
  std::vector<float> floats(64, 1.0f);
  float* const f = floats.data();
  for (const size_t stride :
       {size_t{6}, size_t{PTRDIFF_MAX}, SIZE_MAX, SIZE_MAX / 4, size_t{0}}) {
    ExpectError(Activate({{f, 1, 6, stride}, {f + 40, 1, 6}}, {{f + 2, 1, 6}}),
                "Activate: out: overlaps gate without being the same view");
    ExpectError(Activate({{f, 1, 6}, {f + 40, 1, 6}}, {{f + 2, 1, 6, stride}}),
                "Activate: out: overlaps gate without being the same view");
    EXPECT_OK(Activate({{f, 1, 6, stride}, {f + 40, 1, 6, stride}},
                       {{f + 6, 1, 6, stride}}));
    // In place.
    EXPECT_OK(Activate({{f, 1, 6, stride}, {f + 40, 1, 6}}, {{f, 1, 6}}));
  }
}

// Two views of different types are compared, too.
TEST(Overlaps, AreCountedInBytes) {
  std::vector<float> floats(128, 1.0f);
  float* const f = floats.data();
  BFloat16* const b = reinterpret_cast<BFloat16*>(f);
  const std::string message =
      "Activate: out: overlaps gate without being the same view";
  const ConstAnyMatrix up(f + 96, 1, 6);
  // The upper half of a float, and the one behind.
  ExpectError(Activate({{f + 8, 1, 6}, up}, {{b + 27, 1, 6}}), message);
  EXPECT_OK(Activate({{f + 8, 1, 6}, up}, {{b + 28, 1, 6}}));
  ExpectError(Activate({{f + 8, 1, 6}, up}, {{b + 11, 1, 6}}), message);
  EXPECT_OK(Activate({{f + 8, 1, 6}, up}, {{b + 10, 1, 6}}));
  // Rows of f32 and of bf16, side by side in one buffer.
  const ConstAnyMatrix wide(f, 4, 5, 8), other(f + 64, 4, 5);
  EXPECT_OK(Activate({wide, other}, {{b + 10, 4, 5, 16}}));
  ExpectError(Activate({wide, other}, {{b + 9, 4, 5, 16}}), message);
  ExpectError(Activate({wide, other}, {{b + 12, 4, 5, 16}}), message);
}

class HalfThere : public testing::Test {
 protected:
  static constexpr size_t kTokens = 3, kTopK = 2, kHidden = 4;
  Status Run(const CombineInputs& in) {
    return Combine(in, {{out_.data(), kTokens, kHidden}});
  }

  std::vector<float> rows_ = std::vector<float>(24, 1.0f), weights_ = rows_,
                     out_ = std::vector<float>(12);
  CombineInputs in_ = {{rows_.data(), 6, kHidden},
                       {weights_.data(), kTokens, kTopK},
                       RowIndex::kTokenOrder};
  float* const nowhere_ = nullptr;
  int32_t* const no_ints_ = nullptr;
};

TEST_F(HalfThere, IsAnErrorAndNotAbsent) {
  CombineInputs in = in_;
  EXPECT_OK(Run(in));
  const std::string residual = "Combine: residual: ";
  in.residual = {nowhere_, 5, 0};
  ExpectError(Run(in), residual + "is not [tokens, hidden]");
  in.residual = {nowhere_, 0, kHidden};
  ExpectError(Run(in), residual + "is not [tokens, hidden]");
  in.residual = {nowhere_, kTokens, kHidden};
  ExpectError(Run(in), residual + "data is null");
  in = in_;
  const std::string scales = "Combine: rows.scales: ";
  in.rows.scales = {nowhere_, 0, 1};
  ExpectError(Run(in), scales + "given with a type without");
  in.rows.type = Type::kI8;
  ExpectError(Run(in), scales +
                           "is not [rows, 1] or one for 32, 64 or 128 columns "
                           "(e8m0: 32)");
  in.rows.scales = {nowhere_, 6, 1};
  ExpectError(Run(in), scales + "data is null");
  in = in_;
  in.shared.rows = {nowhere_, 9, 0};
  in.shared.kind = SharedGate::kNone;
  ExpectError(Run(in), "Combine: shared.rows: is not [tokens, hidden]");
  in = in_;
  in.row_index = {no_ints_, 0, 7};
  ExpectError(Run(in), "Combine: row_index: is not [tokens, top_k]");
  in.row_index = std::vector<int32_t>();
  const std::string neither =
      "Combine: row_index: not given, nor RowIndex::kTokenOrder";
  ExpectError(Run(in), neither);
  in.row_index = {};
  ExpectError(Run(in), neither);
  // A pointer without sizes.
  in.row_index = {no_ints_ + 64, 0, 0};
  ExpectError(Run(in), "Combine: row_index: is not [tokens, top_k]");

  std::vector<int32_t> ids(6), counts(3), offsets(4), pairs(6);
  const ConstAnyMatrix topk_ids(ids.data(), 3, 2);
  const auto pack = [&](const AnyMatrix& row_index) {
    return BucketPacked({topk_ids}, {counts, offsets, pairs, row_index});
  };
  EXPECT_OK(pack({}));
  ExpectError(pack({no_ints_, 0, 7}),
              "BucketPacked: row_index: is not [tokens, top_k]");
  ExpectError(pack({no_ints_, 3, 2}), "BucketPacked: row_index: data is null");
}

// Engines pass a batch that came to nothing like this: vectors resized to 0.
TEST_F(HalfThere, NoTokensAreFine) {
  const CombineOutputs no_tokens = {{nowhere_, 0, kHidden}};
  CombineInputs in = {{rows_.data(), 6, kHidden},  // rows left over
                      {nowhere_, 0, kTopK},
                      {no_ints_, 0, kTopK}};
  EXPECT_OK(Combine(in, no_tokens));
  in.residual = {nowhere_, 0, kHidden};
  in.shared = {{nowhere_, 0, kHidden}, {nowhere_, 0, 1}};
  EXPECT_OK(Combine(in, no_tokens));
  in.shared.gate = std::vector<float>();
  EXPECT_OK(Combine(in, no_tokens));
  // A shared expert of no columns, with its gate.
  in = {{nowhere_, 6, 0},
        {weights_.data(), kTokens, kTopK},
        RowIndex::kTokenOrder};
  in.shared = {{nowhere_, kTokens, 0}, {weights_.data(), kTokens, 1}};
  EXPECT_OK(Combine(in, {{nowhere_, kTokens, 0}}));
}

// Which of the two has to be said (above), but in C++17 field by field as well.
static_assert(std::is_default_constructible_v<RowIndex>);
static_assert(!RowIndex().token_order);
static_assert(std::is_constructible_v<RowIndex, AnyMatrix>);
static_assert(std::is_constructible_v<RowIndex, ConstAnyMatrix>);
static_assert(std::is_constructible_v<RowIndex, Matrix<int32_t>>);
static_assert(std::is_constructible_v<RowIndex, std::vector<int32_t>&>);

// ggml's sizes are int64_t; braces would not narrow them.
TEST(Sizes, OfAnyIntegerType) {
  const int64_t tokens = 3, top_k = 2, experts = 4;
  std::vector<int32_t> ids(6, 3), counts(4), offsets(5), pairs(6), index(6);
  const PackedBuckets buckets{{counts.data(), experts},
                              {offsets.data(), experts + 1},
                              {pairs.data(), tokens * top_k}};
  EXPECT_OK(BucketPacked({{ids.data(), tokens, top_k}}, buckets));
  EXPECT_EQ(counts, (std::vector<int32_t>{0, 0, 0, 6}));
  const Matrix<int32_t> rows{index.data(), tokens, top_k, top_k};
  EXPECT_OK(BucketPacked({{ids.data(), tokens, top_k}},
                         {counts, offsets, pairs, rows}));
  EXPECT_EQ(index, (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  // Constants as C has them.
  enum { kTokens = 3, kTopK = 2 };
  EXPECT_OK(BucketPacked({{ids.data(), kTokens, kTopK}},
                         {counts, offsets, {pairs.data(), kTokens * kTopK}}));
  // Negative ones are far too large.
  ExpectError(BucketPacked({{ids.data(), tokens, int64_t{-1}}}, buckets),
              "BucketPacked: topk_ids: size overflows the address space");
  ExpectError(BucketPacked({{ids.data(), tokens, top_k}},
                           {counts, offsets, {pairs.data(), int64_t{-6}}}),
              "BucketPacked: pairs: size overflows the address space");
}

}  // namespace
}  // namespace switchyard::testing_support
