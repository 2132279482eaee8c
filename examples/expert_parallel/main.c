// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A Mixture-of-Experts layer over several processes: MPI_Alltoallv with
// Switchyard's kernels before, between and behind, on the C ABI.

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "layer.h"

// This rank's tokens, and all that one step makes of them.
typedef struct Tokens {
  size_t first, count;
  swy_matrix hidden, logits, ids, weights, out;
} Tokens;

static float* NewFloats(size_t count) {
  Buffer buffer = {NULL, 0};
  return Reserve(&buffer, count * sizeof(float));
}

static void MakeTokens(const Arguments* a, size_t rank, size_t num_ranks,
                       Tokens* t) {
  const uint32_t stream = (uint32_t)(2 * a->experts);
  float *hidden, *logits;
  size_t i;
  t->first = a->tokens * rank / num_ranks;
  t->count = a->tokens * (rank + 1) / num_ranks - t->first;
  hidden = NewFloats(t->count * a->hidden);
  logits = NewFloats(t->count * a->experts);
  for (i = 0; i < t->count * a->hidden; ++i) {
    hidden[i] = Uniform(stream, (uint32_t)(t->first * a->hidden + i));
  }
  for (i = 0; i < t->count * a->experts; ++i) {
    logits[i] = 3 * Uniform(stream + 1, (uint32_t)(t->first * a->experts + i));
  }
  t->hidden = swy_dense(hidden, SWY_F32, t->count, a->hidden);
  t->logits = swy_dense(logits, SWY_F32, t->count, a->experts);
  t->ids =
      swy_dense(NewFloats(t->count * a->top_k), SWY_I32, t->count, a->top_k);
  t->weights =
      swy_dense(NewFloats(t->count * a->top_k), SWY_F32, t->count, a->top_k);
  t->out =
      swy_dense(NewFloats(t->count * a->hidden), SWY_F32, t->count, a->hidden);
}

static void FreeTokens(Tokens* t) {
  free(t->hidden.data);
  free(t->logits.data);
  free(t->ids.data);
  free(t->weights.data);
  free(t->out.data);
}

static void Step(Tokens* t, Exchange* exchange, Experts* experts,
                 Stopwatch* watch) {
  swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
  in.logits = t->logits;
  out.topk_ids = t->ids;
  out.topk_weights = t->weights;
  CheckStatus(swy_route_top_k(&in, &out, NULL, NULL));
  Dispatch(exchange, t->hidden, t->ids, watch);
  RunExperts(experts, exchange, watch);
  Return(exchange, watch);
  Sum(exchange, t->weights, t->out, watch);
}

// The largest difference between a token's sums and those of a plain loop in
// double, in parts of the largest sum.
static double DifferenceOfToken(const Shape* shape, const Tokens* t,
                                size_t token) {
  const size_t hidden = shape->hidden, intermediate = shape->intermediate;
  const float* const x = (const float*)t->hidden.data + token * hidden;
  const float* const out = (const float*)t->out.data + token * hidden;
  const float* const weights =
      (const float*)t->weights.data + token * shape->top_k;
  const int32_t* const ids = (const int32_t*)t->ids.data + token * shape->top_k;
  double* const sums = calloc(hidden + intermediate, sizeof(double));
  double difference = 0, largest = 0;
  size_t slot, i, o;
  if (sums == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (slot = 0; slot < shape->top_k; ++slot) {
    const uint32_t stream = 2 * (uint32_t)ids[slot];
    double* const activated = sums + hidden;
    for (o = 0; o < intermediate; ++o) {
      double gate = 0, up = 0;
      for (i = 0; i < hidden; ++i) {
        gate += x[i] * Uniform(stream, (uint32_t)(o * hidden + i));
        up +=
            x[i] * Uniform(stream, (uint32_t)((intermediate + o) * hidden + i));
      }
      gate *= WeightScale(hidden);
      up *= WeightScale(hidden);
      activated[o] = gate / (1 + exp(-gate)) * up;
    }
    for (o = 0; o < hidden; ++o) {
      double sum = 0;
      for (i = 0; i < intermediate; ++i) {
        sum += activated[i] *
               Uniform(stream + 1, (uint32_t)(o * intermediate + i));
      }
      sums[o] += weights[slot] * WeightScale(intermediate) * sum;
    }
  }
  for (o = 0; o < hidden; ++o) {
    difference = fmax(difference, fabs(sums[o] - out[o]));
    largest = fmax(largest, fabs(sums[o]));
  }
  free(sums);
  return difference / largest;
}

// Compares some tokens of all ranks. The bounds are three times the roundings
// of these types at the default sizes.
static int Check(const Arguments* a, const Shape* shape, const Tokens* t,
                 int rank) {
  const double bound = a->dispatch == SWY_F8E4M3 ? 0.2
                       : a->dispatch == SWY_I8   ? 0.06
                       : a->dispatch == SWY_BF16 || a->combine == SWY_BF16
                           ? 0.03
                           : 1e-5;
  double difference = 0, of_all = 0;
  size_t i;
  for (i = 0; i < t->count; i += t->count / 4 + 1) {
    difference = fmax(difference, DifferenceOfToken(shape, t, i));
  }
  MPI_Allreduce(&difference, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("off a plain loop by %.2g of the largest sum, at most %g allowed\n",
           of_all, bound);
  }
  return of_all <= bound;
}

// FNV-1a of all tokens' sums, in the order of tokens, at rank 0.
static uint64_t Digest(const Arguments* a, Tokens* t, int rank, int num_ranks) {
  uint64_t digest = UINT64_C(0xcbf29ce484222325);
  MPI_Datatype row;
  Buffer all = {NULL, 0};
  int *counts = NULL, *offsets = NULL;
  MPI_Type_contiguous((int)a->hidden, MPI_FLOAT, &row);
  MPI_Type_commit(&row);
  if (rank == 0) {
    const size_t bytes = a->tokens * a->hidden * sizeof(float);
    int r;
    counts = (int*)NewFloats((size_t)num_ranks);
    offsets = (int*)NewFloats((size_t)num_ranks);
    for (r = 0; r < num_ranks; ++r) {
      offsets[r] = (int)(a->tokens * (size_t)r / (size_t)num_ranks);
      counts[r] =
          (int)(a->tokens * (size_t)(r + 1) / (size_t)num_ranks) - offsets[r];
    }
    Reserve(&all, bytes);
    all.bytes = bytes;
  }
  MPI_Gatherv(t->out.data, (int)t->count, row, all.data, counts, offsets, row,
              0, MPI_COMM_WORLD);
  if (rank == 0) {
    const unsigned char* const bytes = all.data;
    size_t i;
    for (i = 0; i < all.bytes; ++i) {
      digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
  }
  MPI_Type_free(&row);
  free(all.data);
  free(counts);
  free(offsets);
  return digest;
}

static int CompareDoubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double Median(double* values, size_t count) {
  qsort(values, count, sizeof(double), CompareDoubles);
  return values[count / 2];
}

// Runs and times `rounds` steps. Prints each part at the rank where it is the
// longest.
static void Time(const Arguments* a, Tokens* t, Exchange* exchange,
                 Experts* experts, int rank) {
  static const char* const names[] = {"switchyard", "waiting", "exchange",
                                      "products", "step"};
  static double seconds[kNumParts + 1][kMaxRounds];
  // The median of each part, then the fastest round.
  double mine[kNumParts + 1][2], slowest[kNumParts + 1][2];
  size_t round, part;
  for (round = 0; round < a->rounds; ++round) {
    Stopwatch watch = {0, {0}};
    MPI_Barrier(MPI_COMM_WORLD);
    watch.last = MPI_Wtime();
    seconds[kNumParts][round] = -watch.last;
    Step(t, exchange, experts, &watch);
    seconds[kNumParts][round] += watch.last;
    for (part = 0; part < kNumParts; ++part) {
      seconds[part][round] = watch.seconds[part];
    }
  }
  for (part = 0; part <= kNumParts; ++part) {
    mine[part][0] = Median(seconds[part], a->rounds);
    mine[part][1] = seconds[part][0];  // they are sorted now
  }
  MPI_Reduce(mine, slowest, 2 * (kNumParts + 1), MPI_DOUBLE, MPI_MAX, 0,
             MPI_COMM_WORLD);
  if (rank == 0) printf("%-11s %12s  %14s\n", "", "median", "fastest");
  for (part = 0; rank == 0 && part <= kNumParts; ++part) {
    printf("%-11s %9.3f ms %5.1f %%  %9.3f ms\n", names[part],
           1e3 * slowest[part][0],
           100 * slowest[part][0] / slowest[kNumParts][0],
           1e3 * slowest[part][1]);
  }
}

static int Run(const Arguments* a, int rank, int num_ranks) {
  const size_t ranks = (size_t)num_ranks;
  Shape shape;
  Exchange exchange;
  Experts experts;
  Tokens tokens;
  Stopwatch unused = {0, {0}};
  uint64_t digest;
  int good = 1;
  shape.hidden = a->hidden;
  shape.intermediate = a->intermediate;
  shape.num_experts = a->experts;
  shape.top_k = a->top_k;
  shape.experts_per_rank = (a->experts + ranks - 1) / ranks;
  MakeExchange(&shape, MPI_COMM_WORLD, a->dispatch, a->combine, &exchange);
  MakeExperts(&shape, (size_t)rank, &experts);
  MakeTokens(a, (size_t)rank, ranks, &tokens);
  if (rank == 0) {
    printf("%d process%s, %zu tokens, %zu of %zu experts of %zu x %zu, %s\n",
           num_ranks, num_ranks == 1 ? "" : "es", a->tokens, a->top_k,
           a->experts, a->hidden, a->intermediate, swy_active_isa().name);
    printf("a row: %zu bytes of %s there, %zu of %s back\n", exchange.row_bytes,
           NameOf(a->dispatch), swy_bytes_of(a->combine, a->hidden),
           NameOf(a->combine));
  }
  Step(&tokens, &exchange, &experts, &unused);
  digest = Digest(a, &tokens, rank, num_ranks);
  if (rank == 0) printf("digest %016llx\n", (unsigned long long)digest);
  if (a->check) good = Check(a, &shape, &tokens, rank);
  Time(a, &tokens, &exchange, &experts, rank);
  FreeTokens(&tokens);
  FreeExperts(&experts);
  FreeExchange(&exchange);
  return good ? 0 : 1;
}

int main(int argc, char** argv) {
  Arguments arguments = {256, 16, 4, 1024, 512, 21, SWY_I8, SWY_BF16, 0, 0};
  char error[kErrorBytes] = "";
  int rank = 0, num_ranks = 1, code = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  // A rank is a thread: one for each core.
  omp_set_num_threads(1);
  if (!ParseArguments(argc, argv, &arguments, error)) {
    code = 2;
  } else if (arguments.help) {
    if (rank == 0) fputs(kHelp, stdout);
  } else {
    code = Run(&arguments, rank, num_ranks);
  }
  if (rank == 0 && error[0] == '\0' &&
      (fflush(stdout) != 0 || ferror(stdout))) {
    snprintf(error, sizeof error, "cannot write to standard output: %s",
             strerror(errno));
    code = 2;
  }
  if (rank == 0 && error[0] != '\0') {
    fprintf(stderr, "expert_parallel: %s\n", error);
  }
  MPI_Finalize();
  return code;
}
