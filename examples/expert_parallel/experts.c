// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the experts of this rank. An engine already has this part. The rows come
// from all ranks, ordered by rank and by pair. After a sort by expert, an
// expert has the same rows in the same order as in a single process, so each
// product has the same bits.

#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

#include "layer.h"

// Mixes 32 bits so that different inputs give different outputs. Each input bit
// flips each output bit about half of the time.
static uint32_t Mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return x;
}

float Uniform(uint32_t stream, uint32_t index) {
  const uint32_t bits = Mix(Mix(index) ^ Mix(20260117u + stream));
  return (float)((int32_t)(bits >> 8) - (1 << 23)) / (float)(1 << 23);
}

float WeightScale(size_t inputs) { return sqrtf(3.0f / (float)inputs); }

static float* NewWeights(size_t experts, size_t first_stream, size_t outputs,
                         size_t inputs) {
  const float scale = WeightScale(inputs);
  Buffer buffer = {NULL, 0};
  float* const weights =
      Reserve(&buffer, experts * outputs * inputs * sizeof(float));
  size_t e, i;
  for (e = 0; e < experts; ++e) {
    float* const expert = weights + e * outputs * inputs;
    for (i = 0; i < outputs * inputs; ++i) {
      expert[i] =
          scale * Uniform((uint32_t)(first_stream + 2 * e), (uint32_t)i);
    }
  }
  return weights;
}

void MakeExperts(const Shape* shape, size_t rank, Experts* experts) {
  const Experts none = {0};
  const size_t first = rank * shape->experts_per_rank;
  const size_t there =
      first < shape->num_experts ? shape->num_experts - first : 0;
  Buffer counts = {NULL, 0}, offsets = {NULL, 0};
  *experts = none;
  experts->count =
      there < shape->experts_per_rank ? there : shape->experts_per_rank;
  experts->up = NewWeights(experts->count, 2 * first, 2 * shape->intermediate,
                           shape->hidden);
  experts->down = NewWeights(experts->count, 2 * first + 1, shape->hidden,
                             shape->intermediate);
  // Reserves memory for one more expert, because swy_bucket_packed needs at
  // least one, and a rank may have no experts.
  experts->tokens_per_expert =
      Reserve(&counts, (experts->count + 1) * sizeof(int32_t));
  experts->offsets = Reserve(&offsets, (experts->count + 2) * sizeof(int32_t));
}

void FreeExperts(Experts* experts) {
  free(experts->up);
  free(experts->down);
  free(experts->tokens_per_expert);
  free(experts->offsets);
  free(experts->pairs.data);
  free(experts->row_index.data);
  free(experts->gathered.data);
  free(experts->gate_up.data);
  free(experts->outputs.data);
}

// Computes out[r, o] = sum over i of rows[r, i] * weights[o, i]. The rows of
// both matrices are dense.
static void Multiply(const float* rows, size_t count, size_t inputs,
                     const float* weights, size_t outputs, float* out) {
  const dnnl_status_t status =
      dnnl_sgemm('N', 'T', (dnnl_dim_t)count, (dnnl_dim_t)outputs,
                 (dnnl_dim_t)inputs, 1.0f, rows, (dnnl_dim_t)inputs, weights,
                 (dnnl_dim_t)inputs, 0.0f, out, (dnnl_dim_t)outputs);
  if (status == dnnl_success) return;
  fprintf(stderr, "expert_parallel: dnnl_sgemm: status %d\n", (int)status);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void RunExperts(Experts* experts, Exchange* exchange, Stopwatch* watch) {
  const size_t hidden = exchange->shape.hidden;
  const size_t intermediate = exchange->shape.intermediate;
  const size_t count = experts->count > 0 ? experts->count : 1;
  const size_t rows = ReceivedRows(exchange);
  float* const gathered =
      Reserve(&experts->gathered, rows * hidden * sizeof(float));
  float* const gate_up =
      Reserve(&experts->gate_up, rows * 3 * intermediate * sizeof(float));
  float* const activated = gate_up + rows * 2 * intermediate;
  float* const outputs =
      Reserve(&experts->outputs, rows * hidden * sizeof(float));
  swy_bucket_inputs sort_in = SWY_BUCKET_INPUTS_INIT;
  swy_packed_buckets sort_out = SWY_PACKED_BUCKETS_INIT;
  swy_gather_inputs gather_in = SWY_GATHER_INPUTS_INIT;
  swy_gather_outputs gather_out = SWY_GATHER_OUTPUTS_INIT;
  swy_activate_inputs activate_in = SWY_ACTIVATE_INPUTS_INIT;
  swy_activate_outputs activate_out = SWY_ACTIVATE_OUTPUTS_INIT;
  swy_activate_options activate_options = SWY_ACTIVATE_OPTIONS_INIT;
  swy_scatter_inputs scatter_in = SWY_SCATTER_INPUTS_INIT;
  swy_scatter_outputs scatter_out = SWY_SCATTER_OUTPUTS_INIT;
  size_t e;

  sort_in.topk_ids = ReceivedIds(exchange);
  sort_out.tokens_per_expert.data = experts->tokens_per_expert;
  sort_out.tokens_per_expert.size = count;
  sort_out.offsets.data = experts->offsets;
  sort_out.offsets.size = count + 1;
  sort_out.pairs.data = Reserve(&experts->pairs, rows * sizeof(int32_t));
  sort_out.pairs.size = rows;
  sort_out.row_index = swy_dense(
      Reserve(&experts->row_index, rows * sizeof(int32_t)), SWY_I32, rows, 1);
  CheckStatus(swy_bucket_packed(&sort_in, &sort_out, NULL, NULL));
  gather_in.tokens = ReceivedTokens(exchange);
  gather_in.pairs = sort_out.pairs;
  gather_in.topk_ids = sort_in.topk_ids;
  gather_out.rows = swy_plain_rows(swy_dense(gathered, SWY_F32, rows, hidden));
  CheckStatus(swy_gather_rows(&gather_in, &gather_out, NULL, NULL));
  Lap(watch, kSwitchyard);

  for (e = 0; e < experts->count; ++e) {
    const size_t first = (size_t)experts->offsets[e];
    const size_t n = (size_t)experts->tokens_per_expert[e];
    if (n == 0) continue;
    Multiply(gathered + first * hidden, n, hidden,
             experts->up + e * 2 * intermediate * hidden, 2 * intermediate,
             gate_up + first * 2 * intermediate);
    Lap(watch, kProducts);
    activate_options.layout = SWY_CONCATENATED;
    activate_in.gate = swy_dense(gate_up + first * 2 * intermediate, SWY_F32, n,
                                 2 * intermediate);
    activate_out.out = swy_plain_rows(
        swy_dense(activated + first * intermediate, SWY_F32, n, intermediate));
    CheckStatus(
        swy_activate(&activate_in, &activate_out, &activate_options, NULL));
    Lap(watch, kSwitchyard);
    Multiply(activated + first * intermediate, n, intermediate,
             experts->down + e * hidden * intermediate, hidden,
             outputs + first * hidden);
    Lap(watch, kProducts);
  }

  // Puts the results into the order of the received rows, and converts them to
  // the type that is sent back.
  scatter_in.packed = swy_plain_rows(swy_dense(outputs, SWY_F32, rows, hidden));
  scatter_in.row_index = sort_out.row_index;
  scatter_out.rows = swy_plain_rows(ResultRows(exchange));
  CheckStatus(swy_scatter_rows(&scatter_in, &scatter_out, NULL, NULL));
  Lap(watch, kSwitchyard);
}
