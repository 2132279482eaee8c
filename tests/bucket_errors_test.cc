// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of bucket.h and its message; nothing is written.

#include "src/calls/bucket.h"
#include "src/calls/hyper.h"
#include "src/calls/map.h"
#include "switchyard/bucket.h"
#include "switchyard/hyper.h"
#include "switchyard/map.h"
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

// Every invalid argument of BucketAligned and MapPairs and its message; nothing
// is written.

// 4 tokens of 2 pairs and 3 experts.
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
  EXPECT_ERROR("tokens_per_expert: no experts",
               c.out.tokens_per_expert.size = 0);
  EXPECT_ERROR("tokens_per_expert: more than 2^31 - 1 experts",
               c.out.tokens_per_expert.size = size_t{1} << 31);
}

TEST_F(AlignedErrors, Options) {
  EXPECT_ERROR("options: block_size is 0", c.options.block_size = 0);
  for (const size_t size : {size_t{1} << 31, SIZE_MAX, size_t{1} << 30}) {
    EXPECT_ERROR("options: block_size: more than 2^31 - 1 padded pairs",
                 c.options.block_size = size);
  }
}

// The same with lists of pairs and of tokens, and 2 destinations.
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
    // Far enough from each other that one in the place of another overlaps no
    // third.
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
      return MapRows{counts, offsets, list, counts64, offsets64};
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
  EXPECT_ERROR("pairs.counts: no destinations", c.out.pairs.counts.size = 0);
  EXPECT_ERROR("pairs.counts: more than 2^31 - 1 destinations",
               c.out.pairs.counts.size = size_t{1} << 31);
  EXPECT_ERROR("pairs.rows: given without offsets", c.out.pairs.offsets = {});
  EXPECT_ERROR("pairs.element_offsets: given without offsets",
               c.out.pairs.offsets = {};
               c.out.pairs.rows = {});
  EXPECT_ERROR("tokens.counts: size is not num_destinations",
               c.out.tokens.counts.size = 1);
  EXPECT_ERROR("tokens.counts: not given, with tokens.offsets",
               c.out.tokens.counts = {});
  EXPECT_ERROR("tokens.offsets: not given, with tokens.counts",
               c.out.tokens.offsets = {});
  EXPECT_ERROR("tokens.element_counts: given without counts",
               c.out.tokens.counts = c.out.tokens.offsets = {};
               c.out.tokens.rows = {}; c.out.tokens.element_offsets = {});
}

TEST_F(MapErrors, Indices) {
  EXPECT_ERROR("pair_index: given without pairs.rows", c.out.pairs.offsets = {};
               c.out.pairs.rows = {}; c.out.pairs.element_offsets = {});
  EXPECT_ERROR("copy_index: given without tokens.rows", c.out.tokens = {});
  EXPECT_ERROR("return_index: given without tokens.rows", c.out.tokens = {};
               c.out.copy_index = {});
}

TEST_F(MapErrors, Options) {
  EXPECT_ERROR("options: experts_per_destination: given with destinations",
               c.options.experts_per_destination = 2);
  EXPECT_ERROR(
      "destinations: neither a table nor options.experts_per_destination",
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

// 65537 destinations are fine for pairs.
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

// Every invalid argument of hyper.h and its message; nothing is written.

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

TEST_F(HyperErrors, Shapes) {
  const std::string count =
      "options: num_streams is 0 or more than kMaxStreams";
  EXPECT_ERROR(count, c.options.num_streams = 0);
  EXPECT_ERROR(count, c.options.num_streams = kMaxStreams + 1);
  EXPECT_ERROR("streams: rows is not tokens * num_streams",
               c.in.streams.rows = 5);
  EXPECT_ERROR("block: not given", c.in.block = {});
  EXPECT_ERROR("post: not given", c.in.post = {});
  EXPECT_ERROR("block: not given", c.in.block = {}, c.in.post = {});
  EXPECT_SIZE_ERRORS(
      "pre: is not [tokens, num_streams] or [tokens * num_streams, hidden]",
      c.in.pre, 2, 1);
  EXPECT_ERROR("pre: not given, with out or normed", c.in.pre = {});
  EXPECT_ERROR("pre: given without out and normed", c.out.out = {},
               c.out.normed = {}, c.in.norm_weight = {});
  EXPECT_ERROR("normed: not given", c.out.normed = {});
  EXPECT_ERROR("norm_weight: not given", c.in.norm_weight = {});
}

TEST_F(HyperErrors, Overlaps) {
  EXPECT_ERROR("outputs.streams: overlaps streams without being the same view",
               c.in.streams.data = streams_.data() + 1);
}

TEST_F(HyperErrors, NothingToDoIsFine) {
  HyperOptions options;
  options.num_streams = 4;
  EXPECT_OK(HyperConnect({}, {}, options));
}

}  // namespace
}  // namespace switchyard::testing_support
