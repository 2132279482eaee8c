// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of bucket.h and its message; nothing is written.

#include "src/calls/bucket.h"
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
    EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
                 c.in.topk_ids.rows = size_t{1} << 30);
    EXPECT_ERROR("tokens_per_expert: no experts",
                 c.out.tokens_per_expert.size = 0);
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
