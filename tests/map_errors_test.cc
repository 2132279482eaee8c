// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of BucketAligned and MapPairs and its message; nothing
// is written.

#include "src/calls/bucket.h"
#include "src/calls/map.h"
#include "switchyard/map.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

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

}  // namespace
}  // namespace switchyard::testing_support
