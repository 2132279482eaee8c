// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "tests/c/check.h"

// There are four tokens with two slots each, and three experts. The last id,
// 9, is invalid.
static int32_t ids[4][2] = {{2, 0}, {0, 1}, {2, 0}, {0, 9}};
static const int32_t kTpe[3] = {4, 1, 2};
static const int32_t kOffsets[4] = {0, 4, 5, 7};
static const int32_t kPairs[7] = {1, 2, 5, 6, 3, 0, 4};
static const int32_t kRowIndex[8] = {5, 0, 1, 4, 6, 2, 3, -1};

// The arguments of a call, and memory for its results.
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

static void TestDispatch(void) {
  uint32_t args[3] = {0, 0, 0};
  swy_dispatch_inputs in = SWY_DISPATCH_INPUTS_INIT;
  swy_dispatch_outputs out = SWY_DISPATCH_OUTPUTS_INIT;
  swy_dispatch_options tiles = SWY_DISPATCH_OPTIONS_INIT;
  in.max_rows = 4;
  in.num_experts = 3;
  in.features = 768;
  out.args.data = args;
  out.args.size = 3;
  tiles.tile_pairs = 3;
  tiles.tile_features = 100;
  CHECK_OK(swy_make_dispatch_args(&in, &out, &tiles));
  CHECK(args[0] == 2 && args[1] == 8 && args[2] == 3);
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
  TestDispatch();
}
