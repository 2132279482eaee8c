// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The parts of a layer with experts spread over the ranks of an MPI
// communicator, in the order of their calls:
//   Dispatch()    sends the rows of this rank's tokens to the ranks that have
//                 their experts
//   RunExperts()  runs this rank's experts on the rows of all ranks
//   Return()      sends the results back
//   Sum()         adds up each token's results
// Each row of the exchange belongs to a pair: a token and one of its experts.
// Sum() adds in the order of a token's slots, as in a single process. So the
// results have the same bits for any number of ranks.

#ifndef SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_
#define SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_

#include <mpi.h>
#include <switchyard/switchyard.h>

#ifdef __cplusplus
extern "C" {
#endif

// The parts of a step's time. During kWaiting, a rank waits for ranks with more
// work.
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

// Returns memory of at least `bytes` bytes. May drop the old contents.
void* Reserve(Buffer* buffer, size_t bytes);

// If `status` is an error, prints the message and ends all ranks.
void CheckStatus(swy_status status);

// The sizes of the layer. Rank r has experts_per_rank experts, beginning with
// r * experts_per_rank.
typedef struct Shape {
  size_t hidden, intermediate, num_experts, top_k, experts_per_rank;
} Shape;

// The state of the exchange on one rank.
typedef struct Exchange {
  Shape shape;
  MPI_Comm comm;
  size_t num_ranks;
  // The layout of a row that is sent to an expert. A row consists of its codes,
  // a scale if the type has scales, and the index of the expert on its rank.
  int32_t dispatch_type;
  size_t scale_offset, expert_offset, row_bytes;
  MPI_Datatype dispatch_row;
  int32_t combine_type;  // type of a row that is sent back: f32, bf16 or f16
  MPI_Datatype combine_row;

  // The results of swy_map_pairs: the number of rows that each rank gets, and
  // the position of each pair in the order of the ranks.
  int32_t *counts, *offsets;
  Buffer rows, pair_index;
  // The number of rows that each rank sends to this rank, and where they begin.
  int32_t *received_counts, *received_offsets;
  // `sent` has the rows of this rank's pairs, and `returned` the results for
  // these rows. `received` has rows from all ranks, and `results` their
  // results.
  Buffer sent, returned;
  Buffer received, results;
} Exchange;

void MakeExchange(const Shape* shape, MPI_Comm comm, int32_t dispatch_type,
                  int32_t combine_type, Exchange* exchange);
void FreeExchange(Exchange* exchange);

// Sends the rows. `tokens` is f32 [tokens, hidden], and `topk_ids` is int32
// [tokens, top_k].
void Dispatch(Exchange* exchange, swy_matrix tokens, swy_matrix topk_ids,
              Stopwatch* watch);
void Return(Exchange* exchange, Stopwatch* watch);
// Computes `out`, f32 [tokens, hidden]. `topk_weights` is f32 [tokens, top_k].
void Sum(Exchange* exchange, swy_matrix topk_weights, swy_matrix out,
         Stopwatch* watch);

// These functions return the number of rows that this rank has received for its
// experts, the rows, and the expert of each row, int32 [rows, 1].
size_t ReceivedRows(const Exchange* exchange);
swy_rows ReceivedTokens(const Exchange* exchange);
swy_matrix ReceivedIds(const Exchange* exchange);
// Returns the memory for the results of the received rows, in combine_type and
// in the order of the rows.
swy_matrix ResultRows(Exchange* exchange);

// This rank's experts in f32. `up` is [experts, 2 * intermediate, hidden],
// where the rows of gate come before the rows of up. `down` is [experts,
// hidden, intermediate].
typedef struct Experts {
  size_t count;
  float *up, *down;
  int32_t *tokens_per_expert, *offsets;
  Buffer pairs, row_index, gathered, gate_up, outputs;
} Experts;

void MakeExperts(const Shape* shape, size_t rank, Experts* experts);
void FreeExperts(Experts* experts);
void RunExperts(Experts* experts, Exchange* exchange, Stopwatch* watch);

// Returns element `index` of a stream of made-up numbers, uniform in [-1, 1).
// Streams are equal on every machine. The weights of expert e are the streams
// 2 * e and 2 * e + 1.
float Uniform(uint32_t stream, uint32_t index);
// Returns the factor for weights that makes products about as large as their
// inputs.
float WeightScale(size_t inputs);

#ifdef __cplusplus
}
#endif

#endif  // SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_LAYER_H_
