// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorting (token, slot) pairs to their experts. Pair p = token * top_k + slot.

#ifndef SWITCHYARD_BUCKET_H_
#define SWITCHYARD_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// The order of pairs inside one expert's bucket.
enum class BucketOrder {
  kAscending,  // by pair index: the same bits for any thread count
  // Threads claim slots with atomic adds, as the Metal seed does, a block of
  // tokens at a time: the same set of pairs in each bucket, in any order once
  // several threads run. Up to 1024 experts this needs no scratch; above, it is
  // kAscending. The only place in this library where bits may differ between
  // runs.
  kClaim,
};

// What was found in the ids. Written by both functions below even when they
// return kFailedPrecondition.
struct BucketSummary {
  int32_t max_tpe = 0;    // pairs of the busiest expert
  size_t row_stride = 0;  // BucketStrided: the stride used or, on failure, the
                          // tight stride; 0 for BucketPacked
  size_t dropped = 0;     // pairs whose id was outside [0, num_experts)
};

// Packed buckets: expert e owns pairs[offsets[e] .. offsets[e + 1]), and
// tpe[e] (tokens per expert) is its length. What a CPU engine wants: one dense
// block of rows per expert.
struct PackedBuckets {
  Span<int32_t> tpe;      // [num_experts]
  Span<int32_t> offsets;  // [num_experts + 1]
  Span<int32_t> pairs;    // at least [tokens * top_k]; beyond
                          // offsets[num_experts] nothing is written
  // Optional [tokens, top_k]: the packed position of each pair, -1 if it was
  // dropped. The row_index that every combine takes.
  Matrix<int32_t> row_index;
};

// Strided buckets: expert e owns ids[e * row_stride + s] for s < tpe[e].
// What the Metal GEMM consumers read. A row_stride that is a large power of
// two makes the rows collide in the cache (5-7.7 ns a pair against 1.1): add
// 16.
struct StridedBuckets {
  Span<int32_t> tpe;  // [num_experts]
  // At least (num_experts - 1) * row_stride + max_tpe elements, or num_experts
  // * row_stride with zero_padding; may exceed 2^31.
  Span<int32_t> ids;
  // Elements from one expert's row to the next: at most tokens * top_k is ever
  // needed, and with that one pass over the ids is enough on one thread.
  // kTightStride: max(1, the busiest expert's count), found on the way and
  // reported in the summary.
  size_t row_stride = 0;
  static constexpr size_t kTightStride = 0;
  // Write 0 to entries s >= tpe[e] of each row; otherwise they are left alone.
  bool zero_padding = false;
};

// int32 elements of scratch with which the functions below use several
// threads. `executor` is the one that will be passed. 0 when one thread is
// best.
size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Executor& executor) noexcept;

// Counts the pairs of each expert and sorts them to it.
//
// selected [tokens, top_k] holds expert ids as RouteTopK writes them, with a
// stride; tokens * top_k <= 2^31 - 1 is checked. A pair whose id is outside
// [0, num_experts) is dropped and counted. num_experts is tpe.size, at least 1.
// Zero tokens write zeros to tpe (and offsets) and nothing else. No output may
// overlap another view. `summary` may be null.
// `scratch`: BucketScratchSize elements, or fewer (or none): then one thread
// does the work, and the results are the same.
// Same bits for every ISA, executor and scratch, but for BucketOrder::kClaim.
// Errors: kInvalidArgument as everywhere (null, stride, size, overlap,
// overflow), nothing written. BucketStrided returns kFailedPrecondition when a
// row would be too short (row_stride < max tpe, or ids too small): then tpe and
// summary are written, they tell the stride needed, and ids is untouched.
//
// From moe_compute_ids_tpe_f32 (ferrum: worst-case stride, claim order) and its
// host reference compute_ids_tpe (kTightStride, zero_padding).
Status BucketPacked(Matrix<const int32_t> selected, BucketOrder order,
                    const PackedBuckets& out, Span<int32_t> scratch,
                    BucketSummary* summary,
                    Executor& executor = SerialExecutor()) noexcept;
Status BucketStrided(Matrix<const int32_t> selected, BucketOrder order,
                     const StridedBuckets& out, Span<int32_t> scratch,
                     BucketSummary* summary,
                     Executor& executor = SerialExecutor()) noexcept;

// How a GEMM tiles its output: pairs (columns of the grid) by output features.
struct DispatchTile {
  uint32_t pairs = 32;
  uint32_t features = 64;
};

// Threadgroups of an indirect dispatch over (pair tiles, feature tiles,
// experts): {max(1, ceil(max_tpe / tile.pairs)), ceil(features /
// tile.features), num_experts}. `args` has 3 elements; `features` is the
// expert's intermediate size for gate and up, the hidden size for down.
// Errors: kInvalidArgument for null args or a size other than 3, a negative
// max_tpe, a zero tile, or a count that does not fit 32 bits; nothing written.
Status MakeDispatchArgs(int32_t max_tpe, size_t num_experts, size_t features,
                        const DispatchTile& tile, Span<uint32_t> args) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_BUCKET_H_
