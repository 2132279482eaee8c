// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <stdlib.h>

#include "layer.h"

void Lap(Stopwatch* watch, enum Part part) {
  const double now = MPI_Wtime();
  watch->seconds[part] += now - watch->last;
  watch->last = now;
}

void CheckStatus(swy_status status) {
  if (status.code == SWY_OK) return;
  fprintf(stderr, "expert_parallel: %s\n", status.message);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void* Reserve(Buffer* buffer, size_t bytes) {
  if (buffer->bytes < bytes || buffer->data == NULL) {
    free(buffer->data);
    // Reserves 1.5 times the bytes, because a rank may get more rows in the
    // next step.
    buffer->bytes = bytes + bytes / 2 + 1;
    buffer->data = malloc(buffer->bytes);
    if (buffer->data == NULL) {
      fprintf(stderr, "expert_parallel: out of memory\n");
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  return buffer->data;
}

static int32_t* NewInts(size_t count) {
  Buffer buffer = {NULL, 0};
  return Reserve(&buffer, count * sizeof(int32_t));
}

static swy_i32_span Ints(void* data, size_t count) {
  swy_i32_span span;
  span.data = data;
  span.size = count;
  return span;
}

static int HasScale(int32_t type) {
  return type == SWY_I8 || type == SWY_U8 || type == SWY_F8E4M3 ||
         type == SWY_F8E5M2;
}

static MPI_Datatype NewRowType(size_t bytes) {
  MPI_Datatype type;
  MPI_Type_contiguous((int)bytes, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  return type;
}

void MakeExchange(const Shape* shape, MPI_Comm comm, int32_t dispatch_type,
                  int32_t combine_type, Exchange* exchange) {
  const Exchange none = {0};
  int num_ranks;
  MPI_Comm_size(comm, &num_ranks);
  *exchange = none;
  exchange->shape = *shape;
  exchange->comm = comm;
  exchange->num_ranks = (size_t)num_ranks;
  exchange->dispatch_type = dispatch_type;
  exchange->combine_type = combine_type;
  exchange->scale_offset = swy_bytes_of(dispatch_type, shape->hidden);
  exchange->expert_offset =
      exchange->scale_offset + (HasScale(dispatch_type) ? sizeof(float) : 0);
  exchange->row_bytes = exchange->expert_offset + sizeof(int32_t);
  exchange->dispatch_row = NewRowType(exchange->row_bytes);
  exchange->combine_row = NewRowType(swy_bytes_of(combine_type, shape->hidden));
  exchange->counts = NewInts(exchange->num_ranks);
  exchange->offsets = NewInts(exchange->num_ranks + 1);
  exchange->received_counts = NewInts(exchange->num_ranks);
  exchange->received_offsets = NewInts(exchange->num_ranks + 1);
}

void FreeExchange(Exchange* exchange) {
  MPI_Type_free(&exchange->dispatch_row);
  MPI_Type_free(&exchange->combine_row);
  free(exchange->counts);
  free(exchange->offsets);
  free(exchange->received_counts);
  free(exchange->received_offsets);
  free(exchange->rows.data);
  free(exchange->pair_index.data);
  free(exchange->sent.data);
  free(exchange->returned.data);
  free(exchange->received.data);
  free(exchange->results.data);
}

// TokensIn() returns a view of the values and scales of the rows in a message.
// IdsIn() returns a view of the experts' indices in the rows.
static swy_rows TokensIn(const Exchange* x, void* message, size_t rows) {
  unsigned char* const bytes = message;
  swy_rows tokens =
      swy_plain_rows(swy_strided(bytes, x->dispatch_type, rows, x->shape.hidden,
                                 x->row_bytes / swy_size_of(x->dispatch_type)));
  if (HasScale(x->dispatch_type)) {
    tokens.scales = swy_strided(bytes + x->scale_offset, SWY_F32, rows, 1,
                                x->row_bytes / sizeof(float));
  }
  return tokens;
}
static swy_matrix IdsIn(const Exchange* x, void* message, size_t rows) {
  unsigned char* const bytes = message;
  return swy_strided(bytes + x->expert_offset, SWY_I32, rows, 1,
                     x->row_bytes / sizeof(int32_t));
}

// Waits for the other ranks, so that the time of the exchange does not include
// the waiting time. An engine needs no such barrier.
static void Wait(const Exchange* x, Stopwatch* watch) {
  MPI_Barrier(x->comm);
  Lap(watch, kWaiting);
}

void Dispatch(Exchange* x, swy_matrix tokens, swy_matrix topk_ids,
              Stopwatch* watch) {
  const size_t pairs = topk_ids.rows * topk_ids.cols;
  int32_t* const rows = Reserve(&x->rows, pairs * sizeof(int32_t));
  int32_t* const pair_index = Reserve(&x->pair_index, pairs * sizeof(int32_t));
  void* const sent = Reserve(&x->sent, pairs * x->row_bytes);
  const swy_matrix sent_ids = IdsIn(x, sent, pairs);
  const int32_t* const ids = topk_ids.data;
  int32_t* sent_id = sent_ids.data;
  swy_map_inputs map_in = SWY_MAP_INPUTS_INIT;
  swy_map_outputs map_out = SWY_MAP_OUTPUTS_INIT;
  swy_map_options map_options = SWY_MAP_OPTIONS_INIT;
  swy_gather_inputs in = SWY_GATHER_INPUTS_INIT;
  swy_gather_outputs out = SWY_GATHER_OUTPUTS_INIT;
  size_t i;

  // Sorts the pairs by the ranks that hold their experts.
  map_in.topk_ids = topk_ids;
  map_out.pairs.counts = Ints(x->counts, x->num_ranks);
  map_out.pairs.offsets = Ints(x->offsets, x->num_ranks + 1);
  map_out.pairs.rows = Ints(rows, pairs);
  map_out.pair_index =
      swy_dense(pair_index, SWY_I32, topk_ids.rows, topk_ids.cols);
  map_options.experts_per_destination = x->shape.experts_per_rank;
  CheckStatus(swy_map_pairs(&map_in, &map_out, &map_options, NULL));

  // Gathers the rows of the pairs into the message, and quantises them on the
  // way. With row_index, the library quantises each token once, and copies the
  // result to the token's other rows.
  in.tokens = swy_plain_rows(tokens);
  in.pairs = map_out.pairs.rows;
  in.topk_ids = topk_ids;
  in.row_index = map_out.pair_index;
  out.rows = TokensIn(x, sent, pairs);
  CheckStatus(swy_gather_rows(&in, &out, NULL, NULL));
  for (i = 0; i < pairs; ++i, sent_id += sent_ids.stride) {
    *sent_id = ids[rows[i]] % (int32_t)x->shape.experts_per_rank;
  }
  Lap(watch, kSwitchyard);
  Wait(x, watch);

  // Tells each rank how many rows it gets from this rank.
  MPI_Alltoall(x->counts, 1, MPI_INT32_T, x->received_counts, 1, MPI_INT32_T,
               x->comm);
  x->received_offsets[0] = 0;
  for (i = 0; i < x->num_ranks; ++i) {
    x->received_offsets[i + 1] = x->received_offsets[i] + x->received_counts[i];
  }
  Reserve(&x->received, ReceivedRows(x) * x->row_bytes);
  MPI_Alltoallv(sent, x->counts, x->offsets, x->dispatch_row, x->received.data,
                x->received_counts, x->received_offsets, x->dispatch_row,
                x->comm);
  Lap(watch, kExchange);
}

size_t ReceivedRows(const Exchange* x) {
  return (size_t)x->received_offsets[x->num_ranks];
}
swy_rows ReceivedTokens(const Exchange* x) {
  return TokensIn(x, x->received.data, ReceivedRows(x));
}
swy_matrix ReceivedIds(const Exchange* x) {
  return IdsIn(x, x->received.data, ReceivedRows(x));
}
swy_matrix ResultRows(Exchange* x) {
  const size_t rows = ReceivedRows(x);
  const size_t bytes = rows * swy_bytes_of(x->combine_type, x->shape.hidden);
  return swy_dense(Reserve(&x->results, bytes), x->combine_type, rows,
                   x->shape.hidden);
}

void Return(Exchange* x, Stopwatch* watch) {
  const size_t pairs = (size_t)x->offsets[x->num_ranks];
  Reserve(&x->returned, pairs * swy_bytes_of(x->combine_type, x->shape.hidden));
  Wait(x, watch);
  // Sends the results back, with the counts and offsets of Dispatch(). The
  // counts and offsets of sending and receiving are swapped.
  MPI_Alltoallv(x->results.data, x->received_counts, x->received_offsets,
                x->combine_row, x->returned.data, x->counts, x->offsets,
                x->combine_row, x->comm);
  Lap(watch, kExchange);
}

void Sum(Exchange* x, swy_matrix topk_weights, swy_matrix out,
         Stopwatch* watch) {
  swy_combine_inputs combine_in = SWY_COMBINE_INPUTS_INIT;
  swy_combine_outputs combine_out = SWY_COMBINE_OUTPUTS_INIT;
  combine_in.rows = swy_plain_rows(swy_dense(x->returned.data, x->combine_type,
                                             (size_t)x->offsets[x->num_ranks],
                                             x->shape.hidden));
  combine_in.topk_weights = topk_weights;
  combine_in.row_index = swy_dense(x->pair_index.data, SWY_I32,
                                   topk_weights.rows, topk_weights.cols);
  combine_out.out = out;
  CheckStatus(swy_combine(&combine_in, &combine_out, NULL, NULL));
  Lap(watch, kSwitchyard);
}
