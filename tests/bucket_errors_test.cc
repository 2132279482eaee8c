// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of bucket.h and its message; nothing is written.

#include <cstdint>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/bucket.h"
#include "testing/guarded_buffer.h"

namespace switchyard {
namespace testing_support {
namespace {

// A valid call, 4 tokens of 2 pairs and 3 experts, to be spoilt.
class BucketErrors : public testing::Test {
 protected:
  struct Call {
    Matrix<const int32_t> selected;
    PackedBuckets packed;
    StridedBuckets strided;
    Span<int32_t> scratch;
  };
  BucketErrors()
      : ids_(4, 2),
        tpe_(1, 3),
        offsets_(1, 4),
        pairs_(1, 8),
        row_index_(4, 2),
        scratch_(1, 16),
        table_(1, 24) {
    ids_.Fill({0, 1, 2, 0, 1, 2, 0, 1});
    call_.selected = ids_.view();
    call_.packed = {tpe_.span(), offsets_.span(), pairs_.span(),
                    row_index_.view()};
    call_.strided = {tpe_.span(), table_.span(), 8, true};
    call_.scratch = scratch_.span();
  }

  void ExpectUntouched() {
    tpe_.ExpectUntouched("tpe");
    offsets_.ExpectUntouched("offsets");
    pairs_.ExpectUntouched("pairs");
    row_index_.ExpectUntouched("row_index");
    scratch_.ExpectUntouched("scratch");
    table_.ExpectUntouched("ids");
  }
  void Packed(const char* message, const std::function<void(Call&)>& spoil) {
    Call c = call_;
    spoil(c);
    BucketSummary summary = {77, 77, 77};
    const Status status = BucketPacked(c.selected, BucketOrder::kAscending,
                                       c.packed, c.scratch, &summary);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_STREQ(status.message(), message);
    EXPECT_EQ(summary.max_tpe, 77);
    ExpectUntouched();
  }
  void Strided(const char* message, const std::function<void(Call&)>& spoil) {
    Call c = call_;
    spoil(c);
    BucketSummary summary = {77, 77, 77};
    const Status status = BucketStrided(c.selected, BucketOrder::kAscending,
                                        c.strided, c.scratch, &summary);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_STREQ(status.message(), message);
    EXPECT_EQ(summary.max_tpe, 77);
    ExpectUntouched();
  }

  Guarded<int32_t> ids_, tpe_, offsets_, pairs_, row_index_, scratch_, table_;
  Call call_;
};

TEST_F(BucketErrors, Packed) {
  Packed("BucketPacked: selected: data is null",
         [](Call& c) { c.selected.data = nullptr; });
  Packed("BucketPacked: selected: stride is smaller than cols",
         [](Call& c) { c.selected.stride = 1; });
  Packed("BucketPacked: selected: size overflows the address space",
         [](Call& c) { c.selected.stride = SIZE_MAX / 4; });
  Packed("BucketPacked: selected: more than 2^31 - 1 pairs",
         [](Call& c) { c.selected.rows = size_t{1} << 30; });
  Packed("BucketPacked: tpe: data is null",
         [](Call& c) { c.packed.tpe.data = nullptr; });
  Packed("BucketPacked: tpe: no experts",
         [](Call& c) { c.packed.tpe.size = 0; });
  Packed("BucketPacked: tpe: more than 2^31 - 1 experts",
         [](Call& c) { c.packed.tpe.size = size_t{1} << 31; });
  Packed("BucketPacked: offsets: data is null",
         [](Call& c) { c.packed.offsets.data = nullptr; });
  Packed("BucketPacked: offsets: size is not num_experts + 1",
         [](Call& c) { c.packed.offsets.size = 3; });
  Packed("BucketPacked: pairs: data is null",
         [](Call& c) { c.packed.pairs.data = nullptr; });
  Packed("BucketPacked: pairs: fewer than tokens * top_k elements",
         [](Call& c) { c.packed.pairs.size = 7; });
  Packed("BucketPacked: row_index: data is null",
         [](Call& c) { c.packed.row_index.data = nullptr; });
  Packed("BucketPacked: row_index: stride is smaller than cols",
         [](Call& c) { c.packed.row_index.stride = 1; });
  Packed("BucketPacked: row_index: rows differ from selected's",
         [](Call& c) { c.packed.row_index.rows = 3; });
  Packed("BucketPacked: row_index: cols differ from selected's",
         [](Call& c) { c.packed.row_index.cols = 1; });
  Packed("BucketPacked: scratch: data is null",
         [](Call& c) { c.scratch.data = nullptr; });
  Packed("BucketPacked: tpe: overlaps another view",
         [&](Call& c) { c.packed.tpe.data = pairs_.data() + 7; });
  Packed("BucketPacked: offsets: overlaps another view",
         [&](Call& c) { c.packed.offsets.data = row_index_.data() + 5; });
  Packed("BucketPacked: pairs: overlaps another view",
         [&](Call& c) { c.selected.data = pairs_.data() + 1; });
  Packed("BucketPacked: row_index: overlaps another view",
         [&](Call& c) { c.selected.data = row_index_.data(); });
  Packed("BucketPacked: scratch: overlaps selected",
         [&](Call& c) { c.selected.data = scratch_.data() + 15; });
}

TEST_F(BucketErrors, Strided) {
  Strided("BucketStrided: selected: data is null",
          [](Call& c) { c.selected.data = nullptr; });
  Strided("BucketStrided: selected: more than 2^31 - 1 pairs",
          [](Call& c) { c.selected.rows = size_t{1} << 30; });
  Strided("BucketStrided: tpe: data is null",
          [](Call& c) { c.strided.tpe.data = nullptr; });
  Strided("BucketStrided: tpe: no experts",
          [](Call& c) { c.strided.tpe.size = 0; });
  Strided("BucketStrided: ids: data is null",
          [](Call& c) { c.strided.ids.data = nullptr; });
  Strided("BucketStrided: row_stride: the table overflows the address space",
          [](Call& c) { c.strided.row_stride = SIZE_MAX / 3; });
  Strided("BucketStrided: tpe: overlaps another view",
          [&](Call& c) { c.strided.tpe.data = table_.data() + 23; });
  Strided("BucketStrided: ids: overlaps another view",
          [&](Call& c) { c.selected.data = table_.data() + 3; });
  Strided("BucketStrided: scratch: overlaps selected",
          [&](Call& c) { c.selected.data = scratch_.data() + 15; });
}

TEST_F(BucketErrors, DispatchArgs) {
  const Guarded<uint32_t> args(1, 3);
  const auto expect = [&](const Status& status, const char* message) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_STREQ(status.message(), message);
    args.ExpectUntouched("args");
  };
  const Span<uint32_t> out = args.span();
  expect(MakeDispatchArgs(1, 2, 3, {}, {nullptr, 3}),
         "MakeDispatchArgs: args: data is null");
  expect(MakeDispatchArgs(1, 2, 3, {}, {out.data, 2}),
         "MakeDispatchArgs: args: size is not 3");
  expect(MakeDispatchArgs(-1, 2, 3, {}, out),
         "MakeDispatchArgs: max_tpe: is negative");
  expect(MakeDispatchArgs(1, 2, 3, {0, 64}, out),
         "MakeDispatchArgs: tile: pairs is 0");
  expect(MakeDispatchArgs(1, 2, 3, {32, 0}, out),
         "MakeDispatchArgs: tile: features is 0");
  expect(MakeDispatchArgs(1, size_t{1} << 32, 3, {}, out),
         "MakeDispatchArgs: num_experts: more than 2^32 - 1");
  expect(MakeDispatchArgs(1, 2, size_t{1} << 40, {32, 1}, out),
         "MakeDispatchArgs: features: more than 2^32 - 1 tiles");
}

TEST_F(BucketErrors, TilesMatter) {
  std::vector<uint32_t> args(3);
  ASSERT_TRUE(MakeDispatchArgs(65, 9, 129, {}, args).ok());
  EXPECT_EQ(args, (std::vector<uint32_t>{3, 3, 9}));
  ASSERT_TRUE(MakeDispatchArgs(65, 9, 129, {16, 32}, args).ok());
  EXPECT_EQ(args, (std::vector<uint32_t>{5, 5, 9}));
  ASSERT_TRUE(MakeDispatchArgs(INT32_MAX, 9, 0, {1, 1}, args).ok());
  EXPECT_EQ(args, (std::vector<uint32_t>{INT32_MAX, 0, 9}));
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
