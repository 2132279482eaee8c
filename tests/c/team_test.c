// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Calls that two threads make together: what is written is there for both when
// each returns, the report included.

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "tests/c/check.h"

// Enough pairs for two threads: 1024 experts' are those of both halves.
#define TOKENS 16384
#define EXPERTS 16
#define EACH (TOKENS / EXPERTS)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int waiting, rounds, second_is_through;
// Holds the first thread in each barrier until the second is in the next one,
// or has looked at the results: it then misses what the first writes behind the
// last barrier. Without, ThreadSanitizer sees that as a race.
static int first_is_late;

struct Member {
  size_t thread;
  void (*call)(const swy_team* team);
};
static void Barrier(void* context) {
  const struct Member* member = (const struct Member*)context;
  pthread_mutex_lock(&mutex);
  if (++waiting == 2) {
    waiting = 0;
    ++rounds;
    pthread_cond_broadcast(&moved);
  } else {
    const int round = rounds;
    pthread_cond_broadcast(&moved);
    while (round == rounds) pthread_cond_wait(&moved, &mutex);
  }
  while (first_is_late && member->thread == 0 && waiting == 0 &&
         !second_is_through) {
    pthread_cond_wait(&moved, &mutex);
  }
  pthread_mutex_unlock(&mutex);
}
static void* RunMember(void* context) {
  struct Member* member = (struct Member*)context;
  swy_team team = SWY_TEAM_INIT;
  team.thread = member->thread;
  team.num_threads = 2;
  team.barrier = Barrier;
  team.context = member;
  member->call(&team);
  if (member->thread == 1) {
    pthread_mutex_lock(&mutex);
    second_is_through = 1;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

// Memory of both threads.
static int32_t ids[TOKENS], tpe[EXPERTS], offsets[EXPERTS + 1];
static int32_t pairs[2 * TOKENS], table[TOKENS], scratch[1 << 16];
static int32_t counts[2], rows[TOKENS];
static swy_report report;

static swy_i32_span Ints(int32_t* data, size_t size) {
  swy_i32_span span;
  span.data = data;
  span.size = size;
  return span;
}
// The fields that the call is named for; the others are as they were.
static void CheckReport(size_t max_rows, size_t row_stride, size_t dropped,
                        size_t over_capacity, size_t active_experts) {
  CHECK(report.max_rows == max_rows);
  CHECK(report.row_stride == row_stride);
  CHECK(report.dropped == dropped);
  CHECK(report.over_capacity == over_capacity);
  CHECK(report.active_experts == active_experts);
  CHECK(report.invalid_ids == 71 && report.elsewhere == 72);
  CHECK(report.invalid == 76 && report.skipped == 77 && report.tiles == 80);
}

static void CallPacked(const swy_team* team) {
  swy_bucket_inputs in = SWY_BUCKET_INPUTS_INIT;
  swy_packed_buckets out = SWY_PACKED_BUCKETS_INIT;
  in.topk_ids = swy_dense(ids, SWY_I32, TOKENS, 1);
  in.scratch =
      Ints(scratch, swy_bucket_scratch_size_team(TOKENS, EXPERTS, team));
  CHECK(in.scratch.size > 0 && in.scratch.size <= 1 << 16);
  out.tokens_per_expert = Ints(tpe, EXPERTS);
  out.offsets = Ints(offsets, EXPERTS + 1);
  out.pairs = Ints(pairs, TOKENS);
  out.report = &report;
  CHECK_OK(swy_bucket_packed_team(&in, &out, NULL, team));
  CheckReport(EACH, 74, 0, 78, 79);
}
// A pair is dropped, which is an error that comes after the report.
static void CallPackedWithout(const swy_team* team) {
  swy_bucket_inputs in = SWY_BUCKET_INPUTS_INIT;
  swy_packed_buckets out = SWY_PACKED_BUCKETS_INIT;
  in.topk_ids = swy_dense(ids, SWY_I32, TOKENS, 1);
  in.scratch = Ints(scratch, 1 << 16);
  out.tokens_per_expert = Ints(tpe, EXPERTS - 1);
  out.offsets = Ints(offsets, EXPERTS);
  out.pairs = Ints(pairs, TOKENS);
  out.report = &report;
  CHECK_FAILED(swy_bucket_packed_team(&in, &out, NULL, team),
               "BucketPacked: topk_ids: outside [0, num_experts), and "
               "options.allow_dropped is not set");
  CheckReport(EACH, 74, EACH, 78, 79);
}
static swy_status Strided(size_t table_size, const swy_team* team) {
  swy_bucket_inputs in = SWY_BUCKET_INPUTS_INIT;
  swy_strided_buckets out = SWY_STRIDED_BUCKETS_INIT;
  in.topk_ids = swy_dense(ids, SWY_I32, TOKENS, 1);
  in.scratch = Ints(scratch, 1 << 16);
  out.tokens_per_expert = Ints(tpe, EXPERTS);
  out.ids = Ints(table, table_size);
  out.report = &report;
  return swy_bucket_strided_team(&in, &out, NULL, team);
}
static void CallStrided(const swy_team* team) {
  CHECK_OK(Strided(TOKENS, team));
  CheckReport(EACH, EACH, 0, 78, 79);
}
static void CallStridedTooSmall(const swy_team* team) {
  CHECK_FAILED(Strided(TOKENS - 1, team),
               "BucketStrided: ids: too small for num_experts rows");
  CheckReport(EACH, EACH, 0, 78, 79);
}
static void Aligned(size_t capacity, const swy_team* team) {
  swy_aligned_inputs in = SWY_ALIGNED_INPUTS_INIT;
  swy_aligned_buckets out = SWY_ALIGNED_BUCKETS_INIT;
  swy_aligned_options options = SWY_ALIGNED_OPTIONS_INIT;
  in.topk_ids = swy_dense(ids, SWY_I32, TOKENS, 1);
  in.scratch = Ints(scratch, 1 << 16);
  out.tokens_per_expert = Ints(tpe, EXPERTS);
  out.offsets = Ints(offsets, EXPERTS + 1);
  out.pairs = Ints(pairs, 2 * TOKENS);
  out.report = &report;
  options.capacity = capacity;
  CHECK_OK(swy_bucket_aligned_team(&in, &out, &options, team));
}
static void CallAligned(const swy_team* team) {
  Aligned(SWY_NO_CAPACITY, team);
  CheckReport(EACH, 74, 0, 0, EXPERTS);
}
static void CallAlignedWithCapacity(const swy_team* team) {
  Aligned(EACH - 1, team);
  CheckReport(EACH - 1, 74, 0, EXPERTS, EXPERTS);
}
// A report of an older caller ends before what the function has to say.
static void CallAlignedOlder(const swy_team* team) {
  Aligned(SWY_NO_CAPACITY, team);
  CheckReport(EACH, 74, 0, 78, 79);
}
static void CallMap(const swy_team* team) {
  swy_map_inputs in = SWY_MAP_INPUTS_INIT;
  swy_map_outputs out = SWY_MAP_OUTPUTS_INIT;
  swy_map_options options = SWY_MAP_OPTIONS_INIT;
  in.topk_ids = swy_dense(ids, SWY_I32, TOKENS, 1);
  in.scratch = Ints(scratch, 1 << 16);
  out.pairs.counts = Ints(counts, 2);
  out.pairs.offsets = Ints(offsets, 3);
  out.pairs.rows = Ints(rows, TOKENS);
  out.report = &report;
  options.experts_per_destination = EXPERTS / 2;
  CHECK_OK(swy_map_pairs_team(&in, &out, &options, team));
  CheckReport(TOKENS / 2, 74, 0, 78, 79);
}

static void RunTeam(void (*call)(const swy_team* team), size_t report_size) {
  const swy_report before = {
      (uint32_t)sizeof(swy_report), 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81};
  struct Member first, second;
  first.thread = 0;
  second.thread = 1;
  first.call = second.call = call;
  for (first_is_late = 0; first_is_late < 2; ++first_is_late) {
    pthread_t thread;
    memset(tpe, 0, sizeof tpe);
    memset(pairs, 0, sizeof pairs);
    memset(table, 0, sizeof table);
    report = before;
    report.size = (uint32_t)report_size;
    waiting = rounds = second_is_through = 0;
    CHECK(pthread_create(&thread, NULL, RunMember, &second) == 0);
    RunMember(&first);
    pthread_join(thread, NULL);
    CHECK(rounds > 0);
  }
}
static void CheckBuckets(const int32_t* found) {
  size_t e, i, wrong = 0;
  for (e = 0; e < EXPERTS; ++e) {
    CHECK(tpe[e] == EACH);
    for (i = 0; i < EACH; ++i) {
      wrong += found[e * EACH + i] != (int32_t)(i * EXPERTS + e);
    }
  }
  CHECK(wrong == 0);
}

void TestTeams(void) {
  size_t i;
  for (i = 0; i < TOKENS; ++i) ids[i] = (int32_t)(i % EXPERTS);
  RunTeam(CallPacked, sizeof report);
  CheckBuckets(pairs);
  RunTeam(CallPackedWithout, sizeof report);
  RunTeam(CallStrided, sizeof report);
  CheckBuckets(table);
  RunTeam(CallStridedTooSmall, sizeof report);
  RunTeam(CallAligned, sizeof report);
  CheckBuckets(pairs);
  RunTeam(CallAlignedWithCapacity, sizeof report);
  RunTeam(CallAlignedOlder, offsetof(swy_report, over_capacity));
  RunTeam(CallMap, sizeof report);
  CHECK(counts[0] == TOKENS / 2 && counts[1] == TOKENS / 2);
  CHECK(rows[0] == 0 && rows[TOKENS / 2] == EXPERTS / 2);
}
