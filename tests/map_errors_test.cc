// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of BucketAligned and MapPairs and its message; nothing
// is written.

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

TEST_F(AlignedErrors, Views) {
  ExpectViewErrors(
      "topk_ids", [](Call& c) { return &c.in.topk_ids; }, kTakesIds);
  ExpectViewErrors(
      "row_index", [](Call& c) { return &c.out.row_index; }, kTakesI32);
  EXPECT_SIZE_ERRORS("row_index: is not [tokens, top_k]", c.out.row_index, 3,
                     1);
  EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
               c.in.topk_ids.rows = size_t{1} << 30);
  EXPECT_ERROR("expert_map: data is null", c.in.expert_map.data = nullptr);
  EXPECT_ERROR("expert_map: more than 2^31 - 1 ids",
               c.in.expert_map.size = size_t{1} << 31);
  EXPECT_ERROR("expert_map: size overflows the address space",
               c.in.expert_map.size = SIZE_MAX / 2);
  EXPECT_ERROR("scratch: data is null", c.in.scratch.data = nullptr);
  EXPECT_ERROR("tokens_per_expert: data is null",
               c.out.tokens_per_expert.data = nullptr);
  EXPECT_ERROR("tokens_per_expert: no experts",
               c.out.tokens_per_expert.size = 0);
  EXPECT_ERROR("tokens_per_expert: more than 2^31 - 1 experts",
               c.out.tokens_per_expert.size = size_t{1} << 31);
  EXPECT_ERROR("offsets: data is null", c.out.offsets.data = nullptr);
  EXPECT_ERROR("offsets: size is not num_experts + 1", c.out.offsets.size = 3);
  EXPECT_ERROR("pairs: data is null", c.out.pairs.data = nullptr);
  // 8 pairs of 3 experts in blocks of 2: at most 10 elements.
  EXPECT_ERROR("pairs: fewer than BucketAlignedSize elements",
               c.out.pairs.size = 9);
  EXPECT_ERROR("block_experts: data is null",
               c.out.block_experts.data = nullptr);
  EXPECT_ERROR(
      "block_experts: fewer than BucketAlignedSize / block_size elements",
      c.out.block_experts.size = 4);
  EXPECT_ERROR("row_tokens: data is null", c.out.row_tokens.data = nullptr);
  EXPECT_ERROR("row_tokens: fewer than BucketAlignedSize elements",
               c.out.row_tokens.size = 9);
  EXPECT_ERROR("active_experts: data is null",
               c.out.active_experts.data = nullptr);
  EXPECT_ERROR("active_experts: size is not num_experts",
               c.out.active_experts.size = 2);
}

TEST_F(AlignedErrors, Options) {
  EXPECT_ERROR("options: block_size is 0", c.options.block_size = 0);
  for (const size_t size : {size_t{1} << 31, SIZE_MAX, size_t{1} << 30}) {
    EXPECT_ERROR("options: block_size: more than 2^31 - 1 padded pairs",
                 c.options.block_size = size);
  }
}

TEST_F(AlignedErrors, Overlaps) {
  const auto text = [](const char* name) {
    return std::string(name) + ": overlaps another argument";
  };
  const std::pair<const char*, Span<int32_t>> outputs[] = {
      {"scratch", scratch_.span()},
      {"tokens_per_expert", counts_.span()},
      {"offsets", offsets_.span()},
      {"pairs", pairs_.span()},
      {"row_index", {row_index_.data(), 8}},
      {"block_experts", block_experts_.span()},
      {"row_tokens", row_tokens_.span()},
      {"active_experts", active_.span()}};
  for (const auto& [name, memory] : outputs) {
    int32_t* const last = memory.data + memory.size - 1;
    EXPECT_ERROR(text(name), c.in.topk_ids = {last, 4, 2});
    EXPECT_ERROR(text(name), c.in.expert_map.data = last);
  }
  // Of two outputs, the later one is named.
  EXPECT_ERROR(text("tokens_per_expert"),
               c.in.scratch.data = counts_.data() + 2);
  EXPECT_ERROR(text("offsets"),
               c.out.tokens_per_expert.data = offsets_.data() + 3);
  EXPECT_ERROR(text("pairs"), c.out.offsets.data = pairs_.data() + 13);
  EXPECT_ERROR(text("row_index"), c.out.pairs.data = row_index_.data() + 7);
  EXPECT_ERROR(text("block_experts"),
               c.out.row_index.data = block_experts_.data() + 6);
  EXPECT_ERROR(text("row_tokens"),
               c.out.block_experts.data = row_tokens_.data() + 13);
  EXPECT_ERROR(text("active_experts"),
               c.out.row_tokens.data = active_.data() + 2);
}

// The same with lists of pairs and of tokens, and 2 destinations.
class MapErrors : public CallErrors<MapInputs, MapOutputs, MapOptions> {
 protected:
  MapErrors()
      : CallErrors("MapPairs", MapPairs),
        ids_(4, 2),
        table_(1, 5),
        ints_(1, 100),
        longs_(1, 20) {
    ids_.Fill({0, 1, 2, 0, 1, 2, 0, 1});
    table_.Fill({0, 1, 1, 0, 0});
    int32_t* at = ints_.data();
    int64_t* at64 = longs_.data();
    const auto span = [&](size_t size) {
      at += size;
      return Span<int32_t>(at - size, size);
    };
    const auto span64 = [&](size_t size) {
      at64 += size;
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

  // Of one of the lists.
  template <class List>
  void ExpectListErrors(const std::string& name, const List& list,
                        const std::string& most) {
    EXPECT_ERROR(name + ".counts: data is null", list(c).counts.data = nullptr);
    EXPECT_ERROR(name + ".offsets: data is null",
                 list(c).offsets.data = nullptr);
    EXPECT_ERROR(name + ".rows: data is null", list(c).rows.data = nullptr);
    EXPECT_ERROR(name + ".element_counts: data is null",
                 list(c).element_counts.data = nullptr);
    EXPECT_ERROR(name + ".element_offsets: data is null",
                 list(c).element_offsets.data = nullptr);
    EXPECT_ERROR(name + ".offsets: size is not num_destinations + 1",
                 list(c).offsets.size = 2);
    EXPECT_ERROR(name + ".rows: fewer than " + most + " elements",
                 list(c).rows.size = 7);
    EXPECT_ERROR(name + ".element_counts: size is not num_destinations",
                 list(c).element_counts.size = 1);
    EXPECT_ERROR(name + ".element_offsets: size is not num_destinations + 1",
                 list(c).element_offsets.size = 2);
  }

  const Guarded<int32_t> ids_, table_, ints_;
  const Guarded<int64_t> longs_;
};

TEST_F(MapErrors, Views) {
  ExpectViewErrors(
      "topk_ids", [](Call& c) { return &c.in.topk_ids; }, kTakesIds);
  EXPECT_ERROR("topk_ids: more than 2^31 - 1 pairs",
               c.in.topk_ids.rows = size_t{1} << 30);
  EXPECT_ERROR("scratch: data is null", c.in.scratch.data = nullptr);
  EXPECT_ERROR("destinations: data is null", c.in.destinations.data = nullptr);
  EXPECT_ERROR("destinations: more than 2^31 - 1 experts",
               c.in.destinations.size = size_t{1} << 31);
  ExpectListErrors(
      "pairs", [](Call& c) -> MapRows& { return c.out.pairs; },
      "tokens * top_k");
  ExpectListErrors(
      "tokens", [](Call& c) -> MapRows& { return c.out.tokens; },
      "tokens * min(top_k, num_destinations)");
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
  ExpectViewErrors(
      "pair_index", [](Call& c) { return &c.out.pair_index; }, kTakesI32);
  ExpectViewErrors(
      "copy_index", [](Call& c) { return &c.out.copy_index; }, kTakesI32);
  ExpectViewErrors(
      "return_index", [](Call& c) { return &c.out.return_index; }, kTakesI32);
  EXPECT_SIZE_ERRORS("pair_index: is not [num_tokens, top_k]", c.out.pair_index,
                     3, 1);
  EXPECT_SIZE_ERRORS("copy_index: is not [num_tokens, top_k]", c.out.copy_index,
                     3, 1);
  EXPECT_SIZE_ERRORS("return_index: is not [num_tokens, top_k]",
                     c.out.return_index, 3, 1);
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

TEST_F(MapErrors, Overlaps) {
  const auto text = [](const std::string& name) {
    return name + ": overlaps another argument";
  };
  int32_t* const table = table_.data();
  int64_t* const first64 = longs_.data();
  EXPECT_ERROR(text("scratch"), c.in.scratch.data = table + 4);
  EXPECT_ERROR(text("pairs.counts"), c.out.pairs.counts.data = table + 4);
  EXPECT_ERROR(text("pairs.offsets"),
               c.out.pairs.offsets.data = c.out.pairs.counts.data);
  EXPECT_ERROR(text("pairs.rows"), c.out.pairs.rows.data = table - 7);
  EXPECT_ERROR(text("pairs.element_offsets"),
               c.out.pairs.element_offsets.data = first64 + 1);
  EXPECT_ERROR(text("pairs.element_counts"),
               c.out.pairs.element_counts.data =
                   reinterpret_cast<int64_t*>(c.out.pairs.rows.data + 6));
  EXPECT_ERROR(text("pair_index"),
               c.out.pair_index.data = c.out.pairs.rows.data + 7);
  EXPECT_ERROR(text("tokens.counts"),
               c.out.tokens.counts.data = c.out.pairs.counts.data + 1);
  EXPECT_ERROR(text("tokens.rows"), c.out.tokens.rows.data = table);
  EXPECT_ERROR(text("tokens.element_counts"),
               c.out.tokens.element_counts.data = first64);
  EXPECT_ERROR(text("copy_index"),
               c.out.copy_index.data = c.out.pair_index.data);
  EXPECT_ERROR(text("return_index"),
               c.out.return_index.data = c.out.copy_index.data);
  EXPECT_ERROR(text("return_index"),
               c.in.topk_ids.data = c.out.return_index.data);
}

}  // namespace
}  // namespace switchyard::testing_support
