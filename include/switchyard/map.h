// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lists of the pairs and tokens that go to each rank, node or device.

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
  // Where each expert lives, [num_experts]: in [0, num_destinations), or -1:
  // nowhere. Several tables map to ranks, to nodes and to local experts. Empty
  // where options.experts_per_destination says it.
  Span<const int32_t> destinations = {};
  // Optional, written: BucketScratchSize(tokens * top_k, num_destinations,
  // executor) elements let several threads work; the results are the same.
  Span<int32_t> scratch = {};
};

// Rows in the order of their destinations: destination d gets
// rows[offsets[d] .. offsets[d + 1]), ascending. What an all-to-all asks for:
// MPI_Alltoallv's sendcounts and sdispls with a row as its datatype; with
// elements, those of MPI_Alltoallv_c, and of ncclSend by destination.
struct MapRows {
  Span<int32_t> counts = {};   // [num_destinations]
  Span<int32_t> offsets = {};  // [num_destinations + 1]
  Span<int32_t> rows = {};     // at least so many as there may be
  // Optional [num_destinations] and [num_destinations + 1]: the same times
  // options.row_elements, in 64 bits.
  Span<int64_t> element_counts = {};
  Span<int64_t> element_offsets = {};
};

struct MapOutputs {
  // Each pair once: pairs.rows are pairs, [tokens * top_k]. counts is always
  // there, and its size is num_destinations; offsets and rows only together.
  MapRows pairs = {};
  // Optional [tokens, top_k]: the position of each pair in pairs.rows, -1 if it
  // is not there. Its inverse: what came back in the order of pairs.rows is
  // what Combine reads with this as row_index.
  AnyMatrix pair_index = {};
  // Optional, each token once per destination, however many of its experts live
  // there: tokens.rows are tokens, [tokens * min(top_k, num_destinations)].
  // counts, offsets and rows only together.
  MapRows tokens = {};
  // Optional, with `tokens`, [tokens, top_k]: the position in tokens.rows of
  // the copy that the pair's expert reads, -1 if there is none.
  AnyMatrix copy_index = {};
  // Optional, with `tokens`, [tokens, top_k]: the same for the first pair of
  // each copy, and -1 for the others. For the way back, where each destination
  // has summed what its experts made of a copy: Combine adds each sum once,
  // with this as row_index.
  AnyMatrix return_index = {};
  // Sets max_rows, the pairs of the busiest destination, and dropped.
  Report* report = nullptr;
};

struct MapOptions {
  // Replaces the table: ids in [d * n, (d + 1) * n) live at destination d.
  size_t experts_per_destination = 0;
  size_t row_elements = 1;  // of what is sent for a row, e.g. the hidden size
  // Pairs without a destination are expected. Otherwise the call returns
  // kFailedPrecondition when there are any.
  bool allow_dropped = false;
};

// Maps pairs to destinations by their experts, and tokens to the destinations
// of their pairs.
//
// Both ways of an expert-parallel layer:
//   1. MapPairs(ids) at the sender. Token rows in the order of tokens.rows
//      (GatherRows with {rows, counts} as pairs and a [tokens, 1] matrix as
//      topk_ids), and with each its row of topk_ids and weights, are sent:
//      counts and offsets say how many where.
//   2. The receiver sorts the rows of ids that it got (BucketAligned with an
//      expert_map, allow_dropped for the experts of others), runs its experts
//      and combines each copy's rows to one.
//   3. Those go back the same way, and the sender's Combine adds them up with
//      return_index and weights of 1.
// With pairs.rows in place of tokens.rows a row is sent for each pair, and
// pair_index takes the place of return_index.
//
// The order of rows is ascending in each destination, always: for any executor
// and scratch, and on every ISA. A pair has no destination if its id is outside
// the table (or outside [0, num_destinations * experts_per_destination)), or if
// the table's entry is outside [0, num_destinations): it is dropped, counted,
// and an error unless the options allow it, after everything is written.
//
// Types: topk_ids int32, uint32 or int64; indices int32.
// Shapes: as above. num_destinations is pairs.counts.size, at least 1, with
// `tokens` at most 65536; tokens * top_k <= 2^31 - 1, and times row_elements
// below 2^63, are checked. No output, nor scratch, may overlap another view.
// Errors: kInvalidArgument as everywhere, nothing written.
//
// Threads as in BucketPacked, whose passes these are: two more over the pairs
// for tokens. From DeepEP's get_dispatch_layout (tokens per rank, is_token_in_
// rank) and the permutations that engines make of it.
Status MapPairs(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_MAP_H_
