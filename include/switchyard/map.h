// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lists the pairs and tokens to send to each rank, node or device.

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
  ConstAnyMatrix topk_ids;  // [tokens, top_k], as RouteTopK writes them
  // [num_experts]: the destination of each expert, in [0, num_destinations),
  // or -1 for none. A destination is a rank, a node or a local expert,
  // depending on the table. Leave it empty if options.experts_per_destination
  // replaces it.
  Span<const int32_t> destinations = {};
  // Optional working memory. With BucketScratchSize(tokens * top_k,
  // num_destinations, executor) elements, several threads work. The results
  // are the same.
  Span<int32_t> scratch = {};
};

// A list of rows sorted by destination: destination d gets
// rows[offsets[d] .. offsets[d + 1]), in ascending order. The other fields
// are arguments of an all-to-all. With a row as the datatype, counts and
// offsets are sendcounts and sdispls of MPI_Alltoallv. element_counts and
// element_offsets are the arguments of MPI_Alltoallv_c, or of one ncclSend
// per destination.
struct MapRows {
  Span<int32_t> counts = {};   // [num_destinations]
  Span<int32_t> offsets = {};  // [num_destinations + 1]
  Span<int32_t> rows = {};     // at least the size given in MapOutputs
  // Optional [num_destinations] and [num_destinations + 1]: counts and
  // offsets times options.row_elements, in 64 bits.
  Span<int64_t> element_counts = {};
  Span<int64_t> element_offsets = {};
};

struct MapOutputs {
  // Lists each pair once: pairs.rows, [tokens * top_k], has pairs.
  // pairs.counts is required, and its size is num_destinations. Give both
  // offsets and rows, or neither.
  MapRows pairs = {};
  // Optional [tokens, top_k]: the position of each pair in pairs.rows, or -1
  // if the pair is dropped. With pair_index as row_index, Combine reads
  // results that came back in the order of pairs.rows.
  AnyMatrix pair_index = {};
  // Optional: lists each token once per destination, even if several of its
  // experts live there. tokens.rows, [tokens * min(top_k, num_destinations)],
  // has tokens. Give all of counts, offsets and rows, or none.
  MapRows tokens = {};
  // Optional, with `tokens`, [tokens, top_k]: the position in tokens.rows of
  // the copy of the token that the pair's expert reads, or -1 if the pair is
  // dropped.
  AnyMatrix copy_index = {};
  // Optional, with `tokens`, [tokens, top_k]: the value of copy_index for the
  // first pair of each copy, and -1 for the other pairs. It is for the way
  // back, after each destination has summed its experts' results for a copy.
  // With return_index as row_index, Combine adds each of these sums once.
  AnyMatrix return_index = {};
  // Optional. The call sets max_rows, which is the number of pairs of the
  // busiest destination, and dropped.
  Report* report = nullptr;
};

struct MapOptions {
  // If this is n > 0, it replaces the table: experts [d * n, (d + 1) * n)
  // live at destination d.
  size_t experts_per_destination = 0;
  size_t row_elements = 1;  // elements in a row, such as the hidden size
  // Accept pairs without a destination. If this is false and the call meets
  // such pairs, it returns kFailedPrecondition.
  bool allow_dropped = false;
};

// Maps pairs to destinations by their experts, and tokens to the destinations
// of their pairs.
//
// An expert-parallel layer sends its tokens to the experts and back:
//   1. The sender calls MapPairs(ids). It sends the rows of tokens in the
//      order of tokens.rows (GatherRows with tokens.rows as pairs and a
//      [tokens, 1] matrix as topk_ids copies them), and for each token also
//      its row of topk_ids and weights. counts and offsets have the number of
//      rows for each destination.
//   2. The receiver sorts the received ids (BucketAligned with an expert_map,
//      and with allow_dropped because of other receivers' experts), runs its
//      experts, and combines the results of each received token to one row.
//   3. The receiver sends these rows back in the same order, and the sender's
//      Combine adds them up with return_index and weights of 1.
// To send one row per pair instead of one per token, use pairs.rows in place
// of tokens.rows, and pair_index in place of return_index.
//
// Each destination's rows are in ascending order, whatever the executor,
// scratch and ISA. A pair has no destination if its id is outside the table
// (or outside [0, num_destinations * experts_per_destination)), or if the
// table's entry is outside [0, num_destinations). Such a pair is dropped and
// counted. Unless the options allow such pairs, the call then returns
// kFailedPrecondition, after everything is written.
//
// Types: topk_ids int32, uint32 or int64; indices int32.
// Shapes: as above. num_destinations is pairs.counts.size, at least 1, and
// with outputs.tokens at most 65536. The call checks that tokens * top_k <=
// 2^31 - 1, and that this times row_elements is below 2^63. Neither an output
// nor scratch may overlap another view.
// Errors: kInvalidArgument as for BucketPacked; nothing is written.
//
// Threads and passes over the pairs are as in BucketPacked; outputs.tokens
// takes two more passes. The outputs follow DeepEP's get_dispatch_layout
// (tokens per rank, is_token_in_rank) and the permutations that engines
// derive from it.
Status MapPairs(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_MAP_H_
