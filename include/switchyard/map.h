// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Plans the exchange of tokens between ranks, nodes or devices. MapReplicas
// chooses among the replicas of an expert, MapPairs lists the pairs and
// tokens to send to each destination, and MapCounts computes how many rows
// each rank receives.

#ifndef SWITCHYARD_MAP_H_
#define SWITCHYARD_MAP_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/bucket.h"
#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

struct MapInputs {
  ConstAnyMatrix topk_ids;  // [tokens, top_k]: expert ids from RouteTopK
  // [num_experts]: the destination of each expert, in [0, num_destinations),
  // or -1 if the expert has none. The caller decides if a destination is a
  // rank, a node or a local expert. Leave the table empty if
  // options.experts_per_destination replaces it.
  Span<const int32_t> destinations = {};
  // Optional working memory. With BucketScratchSize(tokens * top_k,
  // num_destinations, executor) elements, several threads work; with fewer,
  // one thread does. The results are the same.
  Span<int32_t> scratch = {};
};

// A list of rows sorted by destination: the elements [offsets[d],
// offsets[d + 1]) of `rows` are for destination d, in ascending order. All
// fields but rows are arguments of an all-to-all. If the datatype is a row,
// counts and offsets are sendcounts and sdispls of MPI_Alltoallv.
// element_counts and element_offsets are the arguments of MPI_Alltoallv_c, or
// of one ncclSend per destination.
struct MapRows {
  Span<int32_t> counts = {};   // [num_destinations]: rows of each
  Span<int32_t> offsets = {};  // [num_destinations + 1]: prefix sums
  Span<int32_t> rows = {};     // at least the size given in MapOutputs
  // Optional [num_destinations] and [num_destinations + 1]: the elements of
  // counts and offsets, multiplied by options.row_elements, in 64 bits.
  Span<int64_t> element_counts = {};
  Span<int64_t> element_offsets = {};
};

struct MapOutputs {
  // Lists each pair once: the elements of pairs.rows, [tokens * top_k], are
  // pairs. pairs.counts is required, and its size is num_destinations. Give
  // both offsets and rows, or neither.
  MapRows pairs = {};
  // Optional [tokens, top_k]: the position of each pair in pairs.rows, or -1
  // if the pair is dropped. With pair_index as row_index, Combine reads
  // results that came back in the order of pairs.rows.
  AnyMatrix pair_index = {};
  // Optional: lists each token once per destination, even if several of its
  // experts live there. The elements of tokens.rows, [tokens * min(top_k,
  // num_destinations)], are tokens. Give all of tokens.counts, tokens.offsets
  // and tokens.rows, or none.
  MapRows tokens = {};
  // Optional, with `tokens`, [tokens, top_k]: the position in tokens.rows of
  // the token's copy for the pair's destination, or -1 if the pair is
  // dropped.
  AnyMatrix copy_index = {};
  // Optional, with `tokens`, [tokens, top_k]: copy_index for the first of the
  // pairs that share a copy, and -1 for the other pairs. It is used on the
  // way back, after each destination has summed its experts' results for a
  // copy. With return_index as row_index, Combine adds each of these sums
  // once.
  AnyMatrix return_index = {};
  // Optional. The call sets report->dropped and report->max_rows. max_rows is
  // the number of pairs of the busiest destination.
  Report* report = nullptr;
};

struct MapOptions {
  // If this is n > 0, it replaces the table `destinations`: experts [d * n,
  // (d + 1) * n) live at destination d.
  size_t experts_per_destination = 0;
  size_t row_elements = 1;  // elements in a row, such as the hidden size
  // Accept pairs without a destination. If this is false and the call meets
  // such pairs, it returns kFailedPrecondition.
  bool allow_dropped = false;
};

// Maps each pair to the destination of its expert, and each token to the
// destinations of its pairs.
//
// An expert-parallel layer sends its tokens to the experts and back:
//   1. The sender calls MapPairs(ids). It sends the rows of tokens in the
//      order of tokens.rows, and for each token also its row of topk_ids and
//      weights. To copy the rows, call GatherRows with tokens.rows as pairs
//      and a [tokens, 1] matrix as topk_ids. counts and offsets have the
//      number of rows for each destination.
//   2. The receiver sorts the received ids (BucketAligned with an expert_map,
//      and with allow_dropped because of other receivers' experts), runs its
//      experts, and combines the results of each received token into one row.
//   3. The receiver sends these rows back in the same order, and the sender's
//      Combine adds them up with return_index and weights of 1.
// To send one row per pair, and not one per token, use pairs.rows instead of
// tokens.rows, and pair_index instead of return_index.
//
// Each destination's rows are in ascending order, for every executor, scratch
// and ISA. A pair has no destination if its id is outside the table
// `destinations` (or outside [0, num_destinations *
// experts_per_destination)), or if the table's entry is outside [0,
// num_destinations). Such a pair is dropped and counted. Unless the options
// allow such pairs, the call then returns kFailedPrecondition, after
// everything is written.
//
// Types: topk_ids int32, uint32 or int64; indices int32.
// Shapes: as in MapInputs, MapRows and MapOutputs. num_destinations is
// pairs.counts.size, at least 1, and with outputs.tokens at most 65536. The
// call checks that tokens * top_k <= 2^31 - 1, and that tokens * top_k *
// row_elements is below 2^63. Neither an output nor scratch may overlap
// another view.
// Errors: kInvalidArgument as for BucketPacked; nothing is written.
//
// Threads and passes over the pairs are as in BucketPacked; outputs.tokens
// takes two more passes. The outputs follow DeepEP's get_dispatch_layout
// (tokens per rank, is_token_in_rank) and the permutations that engines
// derive from it.
Status MapPairs(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

struct ReplicaInputs {
  ConstAnyMatrix topk_ids;  // [tokens, top_k]: logical experts
  // int32 [num_experts, max_replicas]: the physical experts that hold the
  // weights of each logical expert. The call reads the first
  // replica_counts[e] elements of row e, and no others.
  ConstAnyMatrix replicas;
  // [num_experts]: the number of replicas of each logical expert, in [0,
  // max_replicas]. An expert with 0 replicas lives nowhere.
  Span<const int32_t> replica_counts = {};
  // Optional working memory. With BucketScratchSize(tokens * top_k,
  // num_experts, executor) elements, several threads work; with fewer, one
  // thread does. The results are the same.
  Span<int32_t> scratch = {};
};
struct ReplicaOutputs {
  // int32 [tokens, top_k]: the physical expert of each pair, or -1 if the pair
  // is dropped. It may be the same view as topk_ids.
  AnyMatrix physical_ids;
  // [num_experts]: the pairs of each logical expert, with or without
  // replicas. A planner of replicas adds these up as the experts' load.
  Span<int32_t> tokens_per_expert = {};
  // Optional. The call sets report->dropped and report->max_rows. max_rows is
  // the number of pairs of the busiest logical expert.
  Report* report = nullptr;
};
struct ReplicaOptions {
  // The replica that the first pair of each expert gets, modulo the expert's
  // number of replicas. It must be below 2^31. If each rank passes its own
  // number, the ranks do not all begin at the same replica.
  size_t first_replica = 0;
  // Accept pairs without a replica. If this is false and the call meets such
  // pairs, it returns kFailedPrecondition.
  bool allow_dropped = false;
};

// Replaces the logical expert of each pair by one of its replicas, which are
// the physical experts that hold its weights. A busy expert has replicas on
// several ranks, to share its tokens.
//
// Pairs are in the order of tokens, and of slots within a token. The n-th
// pair of expert e in this call, counted from 0, gets
// replicas[e][(first_replica + n) % replica_counts[e]]. So replicas of an
// expert differ by at most one pair in each call. The rule needs no random
// numbers and no messages, and its result does not depend on executor,
// scratch or ISA. With 32 tokens on each of 8 ranks, the busiest replica has
// 1.3 % more pairs than the mean of its expert, on average over 16 busy
// experts of 128. The busiest replica has 8 % more if the token's number
// chooses the replica, and 16 % more if a hash chooses it.
//
// The physical ids then go to MapPairs, with a table of the physical experts'
// ranks, and to BucketAligned. The result of a layer has the same bits for
// every choice of replicas, because replicas have equal weights.
//
// `replicas` and `replica_counts` are the tables that DeepSeek's EPLB returns
// as log2phy and logcnt, converted to int32. Each rank may pass different
// tables of the same experts, for example tables with only the replicas on
// its own node.
//
// A pair is dropped and counted if its id is outside [0, num_experts), or if
// replica_counts of its expert is outside [1, max_replicas]. Unless the
// options allow such pairs, the call then returns kFailedPrecondition, after
// everything is written. The values in `replicas` are copied without a check.
//
// Types: topk_ids int32, uint32 or int64; all others int32.
// Shapes: as in ReplicaInputs and ReplicaOutputs. num_experts is
// replica_counts.size, at least 1. The call checks that tokens * top_k <=
// 2^31 - 1. No output and no scratch may overlap another view, except that
// physical_ids may be the same view as topk_ids.
// Errors: kInvalidArgument as for BucketPacked; nothing is written.
//
// Threads are as in BucketPacked. One thread makes one pass over the pairs,
// and several threads make two.
Status MapReplicas(const ReplicaInputs& inputs, const ReplicaOutputs& outputs,
                   const ReplicaOptions& options = {},
                   Executor& executor = SerialExecutor()) noexcept;

struct CountsInputs {
  // int32 or int64 [ranks, ranks]: counts(s, d) is the number of rows that
  // rank s sends to rank d. Row s is pairs.counts or tokens.counts of MapPairs
  // on rank s. An all-gather gives each rank all rows.
  ConstAnyMatrix counts;
};
// The spans count elements: rows times options.row_elements.
struct CountsOutputs {
  Span<int64_t> recv_counts = {};   // [ranks]: from each rank to this one
  Span<int64_t> recv_offsets = {};  // [ranks + 1]: prefix sums of recv_counts
  // Optional [ranks]: from this rank to each one.
  Span<int64_t> send_counts = {};
  // Optional [ranks + 1]: prefix sums of send_counts.
  Span<int64_t> send_offsets = {};
  // Optional [ranks]: where the rows of this rank begin in the receive buffer
  // of each rank, for a one-sided put (MPI_Put, or a write through RDMA).
  Span<int64_t> put_offsets = {};
  // Optional. The call sets report->max_rows, which is the number of rows that
  // the busiest rank receives.
  Report* report = nullptr;
};
struct CountsOptions {
  size_t rank = 0;          // this rank
  size_t row_elements = 1;  // elements in a row, such as the hidden size
  // The number of rows that each rank's receive buffer can hold.
  size_t capacity = AlignedOptions::kNoCapacity;
};

// Computes the arguments of an all-to-all on one rank from the counts of all
// ranks.
//
// send_counts, send_offsets, recv_counts and recv_offsets are sendcounts,
// sdispls, recvcounts and rdispls of MPI_Alltoallv_c. With row_elements = 1,
// they count rows, as input_split_sizes and output_split_sizes of torch's
// all_to_all_single do. For the way back, swap send_counts with recv_counts,
// and send_offsets with recv_offsets.
//
// If a rank receives more than options.capacity rows, the call returns
// kFailedPrecondition on every rank, because each rank looks at all columns of
// the matrix. So no rank waits in an exchange that another rank has refused.
// Everything is written, and max_rows is the capacity that is needed.
//
// Types: counts int32 or int64; all others int64.
// Shapes: as in CountsInputs and CountsOutputs, with ranks at least 1. No
// output may overlap another view.
// Errors: kInvalidArgument for a wrong type, shape or view, for a rank that
// is not below `ranks`, for a negative count, or if the elements that a rank
// sends or receives are 2^63 or more; nothing is written.
//
// The call reads the whole matrix once on the calling thread.
Status MapCounts(const CountsInputs& inputs, const CountsOutputs& outputs,
                 const CountsOptions& options) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_MAP_H_
