// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of bucket.h and its message; nothing is written.

#include "switchyard/bucket.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

// 4 tokens of 2 pairs and 3 experts: what both functions have.
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
    this->ExpectViewErrors(
        "topk_ids", [](Call& c) { return &c.in.topk_ids; }, kTakesIds);
    EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
                 c.in.topk_ids.rows = size_t{1} << 30);
    EXPECT_ERROR("tokens_per_expert: data is null",
                 c.out.tokens_per_expert.data = nullptr);
    EXPECT_ERROR("tokens_per_expert: no experts",
                 c.out.tokens_per_expert.size = 0);
    EXPECT_ERROR("tokens_per_expert: more than 2^31 - 1 experts",
                 c.out.tokens_per_expert.size = size_t{1} << 31);
    EXPECT_ERROR("scratch: data is null", c.in.scratch.data = nullptr);
    EXPECT_ERROR("options: order is not a known BucketOrder",
                 c.options.order = static_cast<BucketOrder>(2));
    EXPECT_ERROR("tokens_per_expert: overlaps topk_ids",
                 c.in.topk_ids = {counts_.data() + 2, 4, 2});
    EXPECT_ERROR("tokens_per_expert: overlaps scratch",
                 c.in.scratch.data = counts_.data() - 15);
    // Half of an int64 id is enough.
    EXPECT_ERROR("scratch: overlaps topk_ids",
                 c.in.topk_ids = {
                     reinterpret_cast<int64_t*>(scratch_.data() + 15), 4, 2});
    EXPECT_ERROR("scratch: overlaps topk_ids",
                 c.in.topk_ids = {scratch_.data() + 15, 4, 2});
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

TEST_F(BucketPackedErrors, Views) {
  ExpectCommonErrors();
  ExpectViewErrors(
      "row_index", [](Call& c) { return &c.out.row_index; }, kTakesI32);
  EXPECT_ERROR("offsets: data is null", c.out.offsets.data = nullptr);
  EXPECT_ERROR("offsets: size is not num_experts + 1", c.out.offsets.size = 3);
  EXPECT_ERROR("pairs: data is null", c.out.pairs.data = nullptr);
  EXPECT_ERROR("pairs: fewer than tokens * top_k elements",
               c.out.pairs.size = 7);
  EXPECT_SIZE_ERRORS("row_index: is not [tokens, top_k]", c.out.row_index, 3,
                     1);
}

TEST_F(BucketPackedErrors, Overlaps) {
  int32_t *const counts = counts_.data(), *const offsets = offsets_.data();
  int32_t *const pairs = pairs_.data(), *const rows = row_index_.data();
  EXPECT_ERROR("tokens_per_expert: overlaps offsets",
               c.out.offsets.data = counts - 3);
  EXPECT_ERROR("tokens_per_expert: overlaps pairs",
               c.out.tokens_per_expert.data = pairs + 7);
  EXPECT_ERROR("tokens_per_expert: overlaps row_index",
               c.out.row_index.data = counts + 1);
  EXPECT_ERROR("offsets: overlaps topk_ids",
               c.in.topk_ids = {offsets + 3, 4, 2});
  EXPECT_ERROR("offsets: overlaps pairs", c.out.pairs.data = offsets);
  EXPECT_ERROR("offsets: overlaps row_index", c.out.offsets.data = rows + 5);
  EXPECT_ERROR("offsets: overlaps scratch", c.in.scratch.data = offsets + 2);
  EXPECT_ERROR("pairs: overlaps topk_ids", c.in.topk_ids = {pairs + 1, 4, 2});
  EXPECT_ERROR("pairs: overlaps row_index", c.out.row_index.data = pairs + 7);
  EXPECT_ERROR("pairs: overlaps scratch", c.in.scratch.data = pairs + 7);
  EXPECT_ERROR("row_index: overlaps topk_ids", c.in.topk_ids = {rows, 4, 2});
  EXPECT_ERROR("row_index: overlaps scratch", c.in.scratch.data = rows - 15);
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

TEST_F(BucketStridedErrors, Views) {
  ExpectCommonErrors();
  EXPECT_ERROR("ids: data is null", c.out.ids.data = nullptr);
  EXPECT_ERROR("row_stride: the table overflows the address space",
               c.out.row_stride = SIZE_MAX / 3);
}

TEST_F(BucketStridedErrors, Overlaps) {
  EXPECT_ERROR("tokens_per_expert: overlaps ids",
               c.out.tokens_per_expert.data = table_.data() + 23);
  EXPECT_ERROR("ids: overlaps topk_ids",
               c.in.topk_ids = {table_.data() + 3, 4, 2});
  EXPECT_ERROR("ids: overlaps scratch", c.in.scratch.data = table_.data() + 23);
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

}  // namespace
}  // namespace switchyard::testing_support
