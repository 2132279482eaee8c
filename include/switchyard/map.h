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
  // [num_experts]: the destination of each expert, in [0, num_destinations), or
  // -1 for none. Different tables map to ranks, to nodes and to local experts.
  // Empty if options.experts_per_destination replaces it.
  Span<const int32_t> destinations = {};
  // Optional, written: BucketScratchSize(tokens * top_k, num_destinations,
  // executor) elements let several threads work; the results are the same.
  Span<int32_t> scratch = {};
};

// Rows in the order of their destinations: destination d gets
// rows[offsets[d] .. offsets[d + 1]), ascending. These are the arguments of an
// all-to-all: counts and offsets are MPI_Alltoallv's sendcounts and sdispls
// with a row as the datatype; element_counts and element_offsets are those of
// MPI_Alltoallv_c, and of one ncclSend per destination.
struct MapRows {
  Span<int32_t> counts = {};   // [num_destinations]
  Span<int32_t> offsets = {};  // [num_destinations + 1]
  Span<int32_t> rows = {};     // at least the size that MapOutputs names
  // Optional [num_destinations] and [num_destinations + 1]: the same times
  // options.row_elements, in 64 bits.
  Span<int64_t> element_counts = {};
  Span<int64_t> element_offsets = {};
};

struct MapOutputs {
  // Each pair once: pairs.rows are pairs, [tokens * top_k]. counts is required,
  // and its size is num_destinations. Give offsets and rows together or not.
  MapRows pairs = {};
  // Optional [tokens, top_k]: the position of each pair in pairs.rows, -1 if
  // the pair is dropped. It is the inverse permutation of pairs.rows: with it
  // as row_index, Combine reads results that came back in that order.
  AnyMatrix pair_index = {};
  // Optional: each token once per destination, even if several of its experts
  // live there. tokens.rows are tokens, [tokens * min(top_k,
  // num_destinations)]. Give counts, offsets and rows together or not.
  MapRows tokens = {};
  // Optional, with `tokens`, [tokens, top_k]: the position in tokens.rows of
  // the copy that the pair's expert reads, -1 if the pair is dropped.
  AnyMatrix copy_index = {};
  // Optional, with `tokens`, [tokens, top_k]: as copy_index for the first pair
  // of each copy, and -1 for the others. For the way back, after each
  // destination has summed its experts' results for a copy: with this as
  // row_index, Combine adds each sum once.
  AnyMatrix return_index = {};
  // Sets max_rows, the pairs of the busiest destination, and dropped.
  Report* report = nullptr;
};

struct MapOptions {
  // If this is n > 0, it replaces the table: ids in [d * n, (d + 1) * n) live
  // at destination d.
  size_t experts_per_destination = 0;
  size_t row_elements = 1;  // elements sent per row, e.g. the hidden size
  // Accept pairs without a destination. If this is false and the call meets
  // such pairs, it returns kFailedPrecondition.
  bool allow_dropped = false;
};

// Maps pairs to destinations by their experts, and tokens to the destinations
// of their pairs.
//
// An expert-parallel layer, there and back:
//   1. The sender calls MapPairs(ids). It sends token rows in the order of
//      tokens.rows (GatherRows with {rows, counts} as pairs and a [tokens, 1]
//      matrix as topk_ids), and with each its row of topk_ids and weights.
//      counts and offsets have the number of rows for each destination.
//   2. The receiver sorts the rows of ids that it got (BucketAligned with an
//      expert_map, and allow_dropped for other receivers' experts), runs its
//      experts and combines each copy's rows to one.
//   3. These rows go back the same way, and the sender's Combine adds them up
//      with return_index and weights of 1.
// To send a row for each pair instead, use pairs.rows in place of tokens.rows,
// and pair_index in place of return_index.
//
// Each destination's rows are always in ascending order: for any executor and
// scratch, and on every ISA. A pair has no destination if its id is outside the
// table (or outside [0, num_destinations * experts_per_destination)), or if the
// table's entry is outside [0, num_destinations). Such a pair is dropped and
// counted. It is an error unless the options allow it; the call returns the
// error after everything is written.
//
// Types: topk_ids int32, uint32 or int64; indices int32.
// Shapes: as above. num_destinations is pairs.counts.size, at least 1, with
// `tokens` at most 65536; tokens * top_k <= 2^31 - 1, and times row_elements
// below 2^63, are checked. No output, nor scratch, may overlap another view.
// Errors: kInvalidArgument as everywhere, nothing written.
//
// Threads and passes are as in BucketPacked; `tokens` takes two more passes
// over the pairs. The outputs follow DeepEP's get_dispatch_layout (tokens per
// rank, is_token_in_rank) and the permutations that engines derive from it.
Status MapPairs(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_MAP_H_
