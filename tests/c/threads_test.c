// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs a layer with quantised weights, beginning with the router's logits. On
// 1 to 64 threads of the caller, each row of a batch has the same bits as if
// it were computed alone.

// C99 has no barriers; POSIX has them.
#define _POSIX_C_SOURCE 200112L

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"

enum { kTokens = 64, kTopK = 2, kExperts = 6, kHidden = 64, kInter = 32 };
enum { kBlock = 34, kMostThreads = 64 };
// A block of q8_0 has an f16 scale and 32 codes.
enum { kBytes = kExperts * kInter * kHidden / 32 * kBlock };

static uint8_t gate[kBytes], up[kBytes], down[kBytes];
static float logits[kTokens * kExperts], hidden[kTokens * kHidden];
static float residual[kTokens * kHidden], norm[kHidden];

static uint32_t state;
static uint32_t Next(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}
static void FillFloats(float* values, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) values[i] = (float)(Next() % 2001) / 500.0f - 2;
}
static void FillBlocks(uint8_t* bytes) {
  size_t i;
  for (i = 0; i < kBytes; ++i) bytes[i] = (uint8_t)Next();
  // Sets the high byte of each block's scale, so that the scale is from 2^-9
  // to 2^-8.
  for (i = 0; i < kBytes; i += kBlock) bytes[i + 1] = 0x18;
}

// The threads that run a call.
struct Pool {
  size_t num_threads, most_threads;
  pthread_barrier_t barrier;
};
struct Share {
  struct Pool* pool;
  swy_body body;
  void* body_context;
  size_t worker, num_workers, count;
};
static void* RunShare(void* context) {
  const struct Share* share = (const struct Share*)context;
  size_t i;
  pthread_barrier_wait(&share->pool->barrier);
  for (i = share->worker; i < share->count; i += share->num_workers) {
    share->body(share->body_context, share->worker, i, i + 1);
  }
  return NULL;
}
// Starts a thread for each index, up to the pool's number of threads. No
// thread begins its work before all have started.
static swy_status RunOnPool(void* context, size_t count, size_t grain,
                            swy_body body, void* body_context) {
  struct Pool* pool = (struct Pool*)context;
  const swy_status ok = {SWY_OK, ""};
  pthread_t threads[kMostThreads];
  struct Share shares[kMostThreads];
  size_t n = count <= grain ? 1 : count, w;
  if (n > pool->num_threads) n = pool->num_threads;
  if (n > pool->most_threads) pool->most_threads = n;
  CHECK(pthread_barrier_init(&pool->barrier, NULL, (unsigned)n) == 0);
  for (w = 0; w < n; ++w) {
    shares[w].pool = pool;
    shares[w].body = body;
    shares[w].body_context = body_context;
    shares[w].worker = w;
    shares[w].num_workers = n;
    shares[w].count = count;
  }
  for (w = 1; w < n; ++w) {
    CHECK(pthread_create(&threads[w], NULL, RunShare, &shares[w]) == 0);
  }
  RunShare(&shares[0]);
  for (w = 1; w < n; ++w) pthread_join(threads[w], NULL);
  pthread_barrier_destroy(&pool->barrier);
  return ok;
}

static swy_expert_weights View(const uint8_t* bytes, size_t rows, size_t cols) {
  swy_expert_weights weights = SWY_NO_EXPERT_WEIGHTS;
  weights.rows = rows;
  weights.cols = cols;
  weights.data = swy_dense((void*)bytes, SWY_U8, kExperts, kBytes / kExperts);
  return weights;
}

struct Result {
  int32_t ids[kTokens * kTopK];
  float weights[kTokens * kTopK];
  float out[kTokens * kHidden], normed[kTokens * kHidden];
};

// Runs `count` tokens, beginning with token `first`.
static void RunLayer(const swy_layer_weights* layer, size_t first, size_t count,
                     size_t workers, const swy_executor* executor,
                     struct Result* result) {
  swy_route_inputs route_in = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs route_out = SWY_ROUTE_OUTPUTS_INIT;
  swy_experts_plan_options shape = SWY_EXPERTS_PLAN_OPTIONS_INIT;
  swy_experts_plan_inputs pairs = SWY_EXPERTS_PLAN_INPUTS_INIT;
  swy_experts_plan_outputs planned = SWY_EXPERTS_PLAN_OUTPUTS_INIT;
  swy_activate_options activate = SWY_ACTIVATE_OPTIONS_INIT;
  swy_experts_options options = SWY_EXPERTS_OPTIONS_INIT;
  swy_combine_inputs combine = SWY_COMBINE_INPUTS_INIT;
  swy_experts_inputs in = SWY_EXPERTS_INPUTS_INIT;
  swy_combine_outputs out = SWY_COMBINE_OUTPUTS_INIT;
  swy_expert_gemm gemm = SWY_EXPERT_GEMM_INIT;
  swy_experts_plan plan;
  memset(result, 0, sizeof *result);

  route_in.logits =
      swy_dense(logits + first * kExperts, SWY_F32, count, kExperts);
  route_out.topk_ids = swy_dense(result->ids, SWY_I32, count, kTopK);
  route_out.topk_weights = swy_dense(result->weights, SWY_F32, count, kTopK);
  CHECK_OK(swy_route_top_k(&route_in, &route_out, NULL, executor));

  shape.num_experts = kExperts;
  shape.hidden = kHidden;
  shape.intermediate = kInter;
  swy_set_costs(SWY_WEIGHTS_Q8_0, &shape);
  shape.workers = workers;
  shape.tile_columns = 16;
  shape.least_cost = 0;
  planned.memory.size = swy_experts_plan_size(count, kTopK, &shape);
  planned.memory.data =
      (int32_t*)malloc(planned.memory.size * sizeof *planned.memory.data);
  planned.plan = &plan;
  pairs.topk_ids = route_out.topk_ids;
  CHECK_OK(swy_plan_experts(&pairs, &planned, &shape, executor));

  activate.layout = SWY_SPLIT;
  options.activate = &activate;
  options.operands = swy_operands_of(SWY_WEIGHTS_Q8_0);
  in.scratch.size = swy_experts_scratch_size(&plan, &options, kMostThreads);
  in.scratch.data = (int32_t*)malloc(in.scratch.size * sizeof *in.scratch.data);
  in.plan = &plan;
  in.hidden = swy_plain_rows(
      swy_dense(hidden + first * kHidden, SWY_F32, count, kHidden));
  combine.topk_weights = route_out.topk_weights;
  combine.residual =
      swy_dense(residual + first * kHidden, SWY_F32, count, kHidden);
  combine.norm_weight = swy_dense(norm, SWY_F32, 1, kHidden);
  in.combine = &combine;
  out.out = swy_dense(result->out, SWY_F32, count, kHidden);
  out.normed =
      swy_plain_rows(swy_dense(result->normed, SWY_F32, count, kHidden));
  gemm.run = swy_multiply_layer;
  gemm.context = (void*)layer;
  CHECK_OK(swy_run_experts(&in, &out, &options, &gemm, executor));
  free(in.scratch.data);
  free(planned.memory.data);
}

void TestThreads(void) {
  static const size_t kThreadCounts[] = {1, 2, 3, 8, 16, 33, 64};
  static struct Result batch, found;
  swy_layer_weights layer = SWY_LAYER_WEIGHTS_INIT;
  size_t i, t;
  state = 1;
  FillBlocks(gate);
  FillBlocks(up);
  FillBlocks(down);
  FillFloats(logits, kTokens * kExperts);
  FillFloats(hidden, kTokens * kHidden);
  FillFloats(residual, kTokens * kHidden);
  FillFloats(norm, kHidden);
  layer.gate = View(gate, kInter, kHidden);
  layer.up = View(up, kInter, kHidden);
  layer.down = View(down, kHidden, kInter);
  RunLayer(&layer, 0, kTokens, 1, NULL, &batch);
  CHECK(batch.out[0] != residual[0] && batch.normed[0] == batch.normed[0]);
  for (i = 0; i < sizeof kThreadCounts / sizeof kThreadCounts[0]; ++i) {
    struct Pool pool = {0};
    swy_executor executor = SWY_EXECUTOR_INIT;
    pool.num_threads = kThreadCounts[i];
    executor.context = &pool;
    executor.concurrency = kThreadCounts[i];
    executor.parallel_for = RunOnPool;
    RunLayer(&layer, 0, kTokens, kThreadCounts[i], &executor, &found);
    CHECK(pool.most_threads == kThreadCounts[i]);
    CHECK(memcmp(&found, &batch, sizeof batch) == 0);
    for (t = 0; t < kTokens; ++t) {
      RunLayer(&layer, t, 1, kThreadCounts[i], &executor, &found);
      CHECK(memcmp(found.ids, batch.ids + t * kTopK, kTopK * 4) == 0);
      CHECK(memcmp(found.weights, batch.weights + t * kTopK, kTopK * 4) == 0);
      CHECK(memcmp(found.out, batch.out + t * kHidden, kHidden * 4) == 0);
      CHECK(memcmp(found.normed, batch.normed + t * kHidden, kHidden * 4) == 0);
    }
  }
}
