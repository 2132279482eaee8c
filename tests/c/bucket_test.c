// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "tests/c/check.h"

// Four tokens with two slots to three experts; the last pair has no expert.
static int32_t ids[4][2] = {{2, 0}, {0, 1}, {2, 0}, {0, 9}};
static const int32_t kTpe[3] = {4, 1, 2};
static const int32_t kOffsets[4] = {0, 4, 5, 7};
static const int32_t kPairs[7] = {1, 2, 5, 6, 3, 0, 4};
static const int32_t kRowIndex[8] = {5, 0, 1, 4, 6, 2, 3, -1};

// Arguments of a call, and memory for its results.
struct Packed {
  swy_bucket_inputs in;
  swy_packed_buckets out;
  swy_bucket_options options;
  swy_report report;
  int32_t tpe[3], offsets[4], pairs[8], row_index[8];
};
static void MakePacked(struct Packed* p) {
  const swy_bucket_inputs in = SWY_BUCKET_INPUTS_INIT;
  const swy_packed_buckets out = SWY_PACKED_BUCKETS_INIT;
  const swy_bucket_options options = SWY_BUCKET_OPTIONS_INIT;
  const swy_report report = SWY_REPORT_INIT;
  memset(p, 0, sizeof *p);
  p->in = in;
  p->in.topk_ids = swy_dense(ids, SWY_I32, 4, 2);
  p->out = out;
  p->out.tokens_per_expert.data = p->tpe;
  p->out.tokens_per_expert.size = 3;
  p->out.offsets.data = p->offsets;
  p->out.offsets.size = 4;
  p->out.pairs.data = p->pairs;
  p->out.pairs.size = 8;
  p->out.row_index = swy_dense(p->row_index, SWY_I32, 4, 2);
  p->out.report = &p->report;
  p->options = options;
  p->options.allow_dropped = 1;
  p->report = report;
}
static void CheckPacked(const struct Packed* p) {
  CHECK_INTS(p->tpe, kTpe, 3);
  CHECK_INTS(p->offsets, kOffsets, 4);
  CHECK_INTS(p->pairs, kPairs, 7);
  CHECK_INTS(p->row_index, kRowIndex, 8);
  CHECK(p->report.max_rows == 4 && p->report.dropped == 1);
}

static void TestStrided(void) {
  const int32_t tight[12] = {1, 2, 5, 6, 3, 0, 0, 0, 0, 4, 0, 0};
  int32_t tpe[3], table[12];
  swy_report report = SWY_REPORT_INIT;
  swy_bucket_inputs in = SWY_BUCKET_INPUTS_INIT;
  swy_strided_buckets out = SWY_STRIDED_BUCKETS_INIT;
  swy_bucket_options options = SWY_BUCKET_OPTIONS_INIT;
  size_t i;
  for (i = 0; i < 12; ++i) table[i] = 77;
  in.topk_ids = swy_dense(ids, SWY_I32, 4, 2);
  out.tokens_per_expert.data = tpe;
  out.tokens_per_expert.size = 3;
  out.ids.data = table;
  out.ids.size = 9;
  out.row_stride = 3;
  out.report = &report;
  options.allow_dropped = 1;
  // Too short: the stride that it needs, and nothing in the table.
  CHECK_FAILED(
      swy_bucket_strided(&in, &out, &options, NULL),
      "BucketStrided: row_stride: smaller than the busiest expert's pairs");
  CHECK(report.row_stride == 4 && report.max_rows == 4 && table[0] == 77);
  // Tight, with zeros behind.
  out.ids.size = 12;
  out.row_stride = SWY_TIGHT_STRIDE;
  out.zero_padding = 1;
  CHECK_OK(swy_bucket_strided(&in, &out, &options, &kThreads));
  CHECK_INTS(table, tight, 12);
  CHECK_INTS(tpe, kTpe, 3);
  {
    uint32_t args[3] = {0, 0, 0};
    swy_dispatch_inputs counts = SWY_DISPATCH_INPUTS_INIT;
    swy_dispatch_outputs dispatch = SWY_DISPATCH_OUTPUTS_INIT;
    swy_dispatch_options tiles = SWY_DISPATCH_OPTIONS_INIT;
    counts.max_rows = report.max_rows;
    counts.num_experts = 3;
    counts.features = 768;
    dispatch.args.data = args;
    dispatch.args.size = 3;
    tiles.tile_pairs = 3;
    tiles.tile_features = 100;
    CHECK_OK(swy_make_dispatch_args(&counts, &dispatch, &tiles));
    CHECK(args[0] == 2 && args[1] == 8 && args[2] == 3);
  }
}

static void TestAligned(void) {
  // Blocks of three; 8 is the sentinel.
  const int32_t pairs[12] = {1, 2, 5, 6, 8, 8, 3, 8, 8, 0, 4, 8};
  const int32_t tokens[12] = {0, 1, 2, 3, 4, 4, 1, 4, 4, 0, 2, 4};
  const int32_t offsets[4] = {0, 6, 9, 12};
  const int32_t blocks[4] = {0, 0, 1, 2};
  const int32_t active[3] = {0, 1, 2};
  int32_t found_tpe[3], found_offsets[4], found_pairs[24], found_index[8];
  int32_t found_blocks[8], found_tokens[24], found_active[3];
  int32_t map[10] = {0, 1, 2, -1, -1, -1, -1, -1, -1, -1};
  swy_report report = SWY_REPORT_INIT;
  swy_aligned_inputs in = SWY_ALIGNED_INPUTS_INIT;
  swy_aligned_buckets out = SWY_ALIGNED_BUCKETS_INIT;
  swy_aligned_options options = SWY_ALIGNED_OPTIONS_INIT;
  in.topk_ids = swy_dense(ids, SWY_I32, 4, 2);
  in.expert_map.data = map;
  in.expert_map.size = 10;
  options.block_size = 3;
  options.allow_dropped = 1;
  options.fill_unused = 1;
  CHECK(swy_bucket_aligned_size(8, 3, &options) == 12);
  CHECK(swy_bucket_aligned_size(8, 3, NULL) == 8);
  out.tokens_per_expert.data = found_tpe;
  out.tokens_per_expert.size = 3;
  out.offsets.data = found_offsets;
  out.offsets.size = 4;
  out.pairs.data = found_pairs;
  out.pairs.size = 12;
  out.row_index = swy_dense(found_index, SWY_I32, 4, 2);
  out.block_experts.data = found_blocks;
  out.block_experts.size = 4;
  out.row_tokens.data = found_tokens;
  out.row_tokens.size = 12;
  out.active_experts.data = found_active;
  out.active_experts.size = 3;
  out.report = &report;
  CHECK_OK(swy_bucket_aligned(&in, &out, &options, NULL));
  CHECK_INTS(found_tpe, kTpe, 3);
  CHECK_INTS(found_offsets, offsets, 4);
  CHECK_INTS(found_pairs, pairs, 12);
  CHECK_INTS(found_tokens, tokens, 12);
  CHECK_INTS(found_blocks, blocks, 4);
  CHECK_INTS(found_active, active, 3);
  CHECK(found_index[0] == 9 && found_index[7] == -1);
  CHECK(report.active_experts == 3 && report.over_capacity == 0);
}

void TestBucket(void) {
  struct Packed p;
  MakePacked(&p);
  CHECK_OK(swy_bucket_packed(&p.in, &p.out, &p.options, NULL));
  CheckPacked(&p);
  MakePacked(&p);
  CHECK_FAILED(swy_bucket_packed(&p.in, &p.out, NULL, &kThreads),
               "BucketPacked: topk_ids: outside [0, num_experts), and "
               "options.allow_dropped is not set");
  CheckPacked(&p);
  TestStrided();
  TestAligned();
}

static swy_i32_span Ints(int32_t* data, size_t size) {
  swy_i32_span span;
  span.data = data;
  span.size = size;
  return span;
}

void TestMap(void) {
  // Experts 0 and 1 at destination 1, 2 at 0; the pair of 9 goes nowhere.
  int32_t destinations[3] = {1, 1, 0};
  const int32_t counts[2] = {2, 5}, offsets[3] = {0, 2, 7};
  const int32_t rows[7] = {0, 4, 1, 2, 3, 5, 6};
  const int32_t index[8] = {0, 2, 3, 4, 1, 5, 6, -1};
  const int32_t token_counts[2] = {2, 4}, tokens[6] = {0, 2, 0, 1, 2, 3};
  const int32_t copies[8] = {0, 2, 3, 3, 1, 4, 5, -1};
  const int32_t returns[8] = {0, 2, 3, -1, 1, 4, 5, -1};
  int32_t found[7][8];
  int64_t elements[2] = {0, 0};
  swy_report report = SWY_REPORT_INIT;
  swy_map_inputs in = SWY_MAP_INPUTS_INIT;
  swy_map_outputs out = SWY_MAP_OUTPUTS_INIT;
  swy_map_options options = SWY_MAP_OPTIONS_INIT;
  int32_t token_offsets[3], token_rows[8], found_copies[8], found_returns[8];
  in.topk_ids = swy_dense(ids, SWY_I32, 4, 2);
  in.destinations = Ints(destinations, 3);
  out.pairs.counts = Ints(found[0], 2);
  out.pairs.offsets = Ints(found[1], 3);
  out.pairs.rows = Ints(found[2], 8);
  out.pairs.element_counts.data = elements;
  out.pairs.element_counts.size = 2;
  out.pair_index = swy_dense(found[3], SWY_I32, 4, 2);
  out.tokens.counts = Ints(found[4], 2);
  out.tokens.offsets = Ints(token_offsets, 3);
  out.tokens.rows = Ints(token_rows, 8);
  out.copy_index = swy_dense(found_copies, SWY_I32, 4, 2);
  out.return_index = swy_dense(found_returns, SWY_I32, 4, 2);
  out.report = &report;
  options.row_elements = 100;
  options.allow_dropped = 1;
  CHECK_OK(swy_map_pairs(&in, &out, &options, NULL));
  CHECK_INTS(found[0], counts, 2);
  CHECK_INTS(found[1], offsets, 3);
  CHECK_INTS(found[2], rows, 7);
  CHECK_INTS(found[3], index, 8);
  CHECK_INTS(found[4], token_counts, 2);
  CHECK_INTS(token_rows, tokens, 6);
  CHECK_INTS(found_copies, copies, 8);
  CHECK_INTS(found_returns, returns, 8);
  CHECK(elements[0] == 200 && elements[1] == 500);
  CHECK(report.max_rows == 5 && report.dropped == 1);
}
