// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The parts of a layer with experts spread over the ranks of an MPI
// communicator, in the order of their calls:
//   Dispatch()    sends the rows of this rank's tokens to the ranks that have
//                 their experts
//   RunExperts()  runs this rank's experts on the rows of all ranks
//   Return()      sends the results back
//   Sum()         adds up each token's results
// A row of the exchange is a pair of a token and one of its experts. All sums
// are computed as in a single process, in the order of a token's slots. So
// the results have the same bits for any number of ranks.

#ifndef SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_
#define SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_

#include <mpi.h>
#include <switchyard/switchyard.h>

#ifdef __cplusplus
extern "C" {
#endif

// The parts of a step's time. kWaiting is the time that a rank waits for
// ranks with more work.
enum Part { kSwitchyard, kWaiting, kExchange, kProducts, kNumParts };
typedef struct Stopwatch {
  double last;
  double seconds[kNumParts];
} Stopwatch;

// Adds the time since the last call to `part`.
void Lap(Stopwatch* watch, enum Part part);

// A buffer that keeps its memory from one step to the next.
typedef struct Buffer {
  void* data;
  size_t bytes;
} Buffer;

// Returns at least `bytes` bytes; their old contents are lost.
void* Reserve(Buffer* buffer, size_t bytes);

// If `status` is an error, prints its message and ends all ranks.
void CheckStatus(swy_status status);

// The sizes of the layer. Rank r has experts_per_rank experts, beginning with
// r * experts_per_rank.
typedef struct Shape {
  size_t hidden, intermediate, num_experts, top_k, experts_per_rank;
} Shape;

// The exchange, as one rank sees it.
typedef struct Exchange {
  Shape shape;
  MPI_Comm comm;
  size_t num_ranks;
  // The layout of a row on its way to an expert. In one message it has its
  // codes, their scale if the type has one, and the index that the expert has
  // on its rank.
  int32_t dispatch_type;
  size_t scale_offset, expert_offset, row_bytes;
  MPI_Datatype dispatch_row;
  int32_t combine_type;  // of a row on its way back: f32, bf16 or f16
  MPI_Datatype combine_row;

  // swy_map_pairs writes how many rows each rank gets, and the position of
  // each pair in the order of ranks.
  int32_t *counts, *offsets;
  Buffer rows, pair_index;
  // How many rows each rank sends to this one, and where they begin.
  int32_t *received_counts, *received_offsets;
  // `sent` has the rows of this rank's pairs. `returned` has their results.
  Buffer sent, returned;
  Buffer received, results;
} Exchange;

void MakeExchange(const Shape* shape, MPI_Comm comm, int32_t dispatch_type,
                  int32_t combine_type, Exchange* exchange);
void FreeExchange(Exchange* exchange);

// `tokens` is f32 [tokens, hidden], and `topk_ids` is int32 [tokens, top_k].
void Dispatch(Exchange* exchange, swy_matrix tokens, swy_matrix topk_ids,
              Stopwatch* watch);
void Return(Exchange* exchange, Stopwatch* watch);
// `out` is f32 [tokens, hidden], and `topk_weights` is f32 [tokens, top_k].
void Sum(Exchange* exchange, swy_matrix topk_weights, swy_matrix out,
         Stopwatch* watch);

// The rows that this rank has received for its experts, and the expert of
// each row, int32 [rows, 1].
size_t ReceivedRows(const Exchange* exchange);
swy_rows ReceivedTokens(const Exchange* exchange);
swy_matrix ReceivedIds(const Exchange* exchange);
// The results for the received rows, in combine_type and in the same order.
swy_matrix ResultRows(Exchange* exchange);

// This rank's experts in f32. `up` is [experts, 2 * intermediate, hidden],
// with gate before up. `down` is [experts, hidden, intermediate].
typedef struct Experts {
  size_t count;
  float *up, *down;
  int32_t *tokens_per_expert, *offsets;
  Buffer pairs, row_index, gathered, gate_up, outputs;
} Experts;

void MakeExperts(const Shape* shape, size_t rank, Experts* experts);
void FreeExperts(Experts* experts);
void RunExperts(Experts* experts, Exchange* exchange, Stopwatch* watch);

// Returns a made-up number, which is the same on every machine: element
// `index` of a stream, uniform in [-1, 1). The weights of expert e are
// streams 2 * e and 2 * e + 1.
float Uniform(uint32_t stream, uint32_t index);
// Returns a factor for weights. With it, products have the size of their
// inputs.
float WeightScale(size_t inputs);

#ifdef __cplusplus
}
#endif

#endif  // SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_
