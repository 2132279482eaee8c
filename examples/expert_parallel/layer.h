// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The parts of a layer with its experts spread over the ranks of an MPI
// communicator, in the order of their calls:
//   Dispatch()    sends rows of this rank's tokens to their experts' ranks
//   RunExperts()  runs this rank's experts on rows of all ranks
//   Return()      sends the results back
//   Sum()         sums each token's results
// Each pair of a token and one of its experts is a row of the exchange. All
// sums are computed as in a single process, in the order of a token's slots,
// so the results have the same bits for any number of ranks.

#ifndef SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_
#define SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_

#include <mpi.h>
#include <switchyard/switchyard.h>

#ifdef __cplusplus
extern "C" {
#endif

// The parts of a step's time. kWaiting: for ranks that have more work.
enum Part { kSwitchyard, kWaiting, kExchange, kProducts, kNumParts };
typedef struct Stopwatch {
  double last;
  double seconds[kNumParts];
} Stopwatch;

// Adds the time since the last call to a part.
void Lap(Stopwatch* watch, enum Part part);

// A buffer that keeps its memory from step to step.
typedef struct Buffer {
  void* data;
  size_t bytes;
} Buffer;

// Returns at least `bytes` bytes; their old contents are lost.
void* Reserve(Buffer* buffer, size_t bytes);

// If the call failed, prints its message and ends all ranks.
void CheckStatus(swy_status status);

// The sizes of the layer. Rank r has the experts from r * experts_per_rank
// on.
typedef struct Shape {
  size_t hidden, intermediate, num_experts, top_k, experts_per_rank;
} Shape;

// One rank's side of the exchange.
typedef struct Exchange {
  Shape shape;
  MPI_Comm comm;
  size_t num_ranks;
  // A row on its way to an expert has its codes, their scale if they have
  // one, and the expert's index on its rank, in one message.
  int32_t dispatch_type;
  size_t scale_offset, expert_offset, row_bytes;
  MPI_Datatype dispatch_row;
  int32_t combine_type;  // of a row on its way back: f32, bf16 or f16
  MPI_Datatype combine_row;

  // Written by swy_map_pairs: the rows for each rank, and the position of
  // each pair in this order.
  int32_t *counts, *offsets;
  Buffer rows, pair_index;
  // The rows that each rank sends.
  int32_t *received_counts, *received_offsets;
  // Rows of this rank's pairs, and rows of all ranks for its experts.
  Buffer sent, returned;
  Buffer received, results;
} Exchange;

void MakeExchange(const Shape* shape, MPI_Comm comm, int32_t dispatch_type,
                  int32_t combine_type, Exchange* exchange);
void FreeExchange(Exchange* exchange);

// tokens: f32 [tokens, hidden]. topk_ids: int32 [tokens, top_k].
void Dispatch(Exchange* exchange, swy_matrix tokens, swy_matrix topk_ids,
              Stopwatch* watch);
void Return(Exchange* exchange, Stopwatch* watch);
// out: f32 [tokens, hidden]. topk_weights: f32 [tokens, top_k].
void Sum(Exchange* exchange, swy_matrix topk_weights, swy_matrix out,
         Stopwatch* watch);

// The rows received for this rank's experts, and the expert of each row:
// int32 [rows, 1].
size_t ReceivedRows(const Exchange* exchange);
swy_rows ReceivedTokens(const Exchange* exchange);
swy_matrix ReceivedIds(const Exchange* exchange);
// The results for these rows, in combine_type and in the same order.
swy_matrix ResultRows(Exchange* exchange);

// This rank's experts in f32: up [experts, 2 * intermediate, hidden], gate
// before up, and down [experts, hidden, intermediate].
typedef struct Experts {
  size_t count;
  float *up, *down;
  int32_t *tokens_per_expert, *offsets;
  Buffer pairs, row_index, gathered, gate_up, outputs;
} Experts;

void MakeExperts(const Shape* shape, size_t rank, Experts* experts);
void FreeExperts(Experts* experts);
void RunExperts(Experts* experts, Exchange* exchange, Stopwatch* watch);

// Made-up numbers, the same on every machine: element `index` of a stream,
// uniform in [-1, 1). Expert e's weights are streams 2 * e and 2 * e + 1.
float Uniform(uint32_t stream, uint32_t index);
// The factor for weights that gives products of the size of their inputs.
float WeightScale(size_t inputs);

#ifdef __cplusplus
}
#endif

#endif  // SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_
