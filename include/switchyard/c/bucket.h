// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorts pairs by expert, and pairs and tokens by destination, such as a node. A
// pair is a token and one of its top_k slots: pair = token * top_k + slot.
// switchyard.h includes this file; bucket.h and map.h of the C++ API have the
// whole contract.

#ifndef SWITCHYARD_C_BUCKET_H_
#define SWITCHYARD_C_BUCKET_H_

#include "switchyard/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The order of pairs inside one expert's bucket.
enum swy_bucket_order {
  // In the order of pair indices; the same for any number of threads.
  SWY_ORDER_ASCENDING = 0,
  // In the order in which threads claim positions with atomic adds. It may
  // differ between runs.
  SWY_ORDER_CLAIM = 1
};

// Inputs of swy_bucket_packed and swy_bucket_strided. Pair p is token * top_k +
// slot. The number of experts is tokens_per_expert.size. Pairs with an id
// outside [0, num_experts) are dropped and counted; without allow_dropped,
// the call then returns SWY_FAILED_PRECONDITION after everything is written.
// Neither an output nor scratch may overlap another view.
typedef struct swy_bucket_inputs {
  uint32_t size;
  swy_matrix topk_ids;  // [tokens, top_k] of int32, uint32 or int64
  // Optional working memory. With at least swy_bucket_scratch_size elements,
  // several threads sort; with fewer, one thread does.
  swy_i32_span scratch;
} swy_bucket_inputs;
#define SWY_BUCKET_INPUTS_INIT \
  { (uint32_t)sizeof(swy_bucket_inputs), SWY_NO_MATRIX, SWY_NO_SPAN }
// Options of swy_bucket_packed and swy_bucket_strided.
typedef struct swy_bucket_options {
  uint32_t size;
  int32_t order;          // enum swy_bucket_order, the order in a bucket
  int32_t allow_dropped;  // accept ids outside [0, num_experts)
} swy_bucket_options;
#define SWY_BUCKET_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_bucket_options), SWY_ORDER_ASCENDING, 0 }

// Outputs of swy_bucket_packed. Expert e owns pairs[offsets[e] .. offsets[e +
// 1]).
typedef struct swy_packed_buckets {
  uint32_t size;
  swy_i32_span tokens_per_expert;  // [num_experts]: pairs of each expert
  // [num_experts + 1]: where each expert's pairs begin in `pairs`.
  swy_i32_span offsets;
  swy_i32_span pairs;  // the sorted pairs, at least [tokens * top_k]
  // Optional int32 [tokens, top_k]: the position of each pair in `pairs`, or
  // -1 if the pair was dropped.
  swy_matrix row_index;
  // Optional. The call sets report->max_rows and report->dropped.
  swy_report* report;
} swy_packed_buckets;
#define SWY_PACKED_BUCKETS_INIT                                     \
  {                                                                 \
    (uint32_t)sizeof(swy_packed_buckets), SWY_NO_SPAN, SWY_NO_SPAN, \
        SWY_NO_SPAN, SWY_NO_MATRIX, NULL                            \
  }

// Outputs of swy_bucket_strided. Expert e owns ids[e * row_stride + s] for s
// < tokens_per_expert[e].
typedef struct swy_strided_buckets {
  uint32_t size;
  int32_t zero_padding;            // fill the rest of each row with 0
  swy_i32_span tokens_per_expert;  // [num_experts]: pairs of each expert
  // The table of pairs: at least (num_experts - 1) * row_stride + max_rows
  // elements, or num_experts * row_stride with zero_padding.
  swy_i32_span ids;
  size_t row_stride;  // distance of rows in elements, or SWY_TIGHT_STRIDE
  // Optional. The call sets report->max_rows, report->dropped and
  // report->row_stride.
  swy_report* report;
} swy_strided_buckets;
// The row_stride that makes the call find the least stride.
#define SWY_TIGHT_STRIDE ((size_t)0)
#define SWY_STRIDED_BUCKETS_INIT                                        \
  {                                                                     \
    (uint32_t)sizeof(swy_strided_buckets), 0, SWY_NO_SPAN, SWY_NO_SPAN, \
        SWY_TIGHT_STRIDE, NULL                                          \
  }

// Sorts pairs into a dense list for each expert. The lists follow each other.
SWY_API swy_status swy_bucket_packed(const swy_bucket_inputs* inputs,
                                     const swy_packed_buckets* outputs,
                                     const swy_bucket_options* options,
                                     const swy_executor* executor) SWY_NOEXCEPT;
// Sorts pairs into a table, with one row for each expert.
SWY_API swy_status swy_bucket_strided(
    const swy_bucket_inputs* inputs, const swy_strided_buckets* outputs,
    const swy_bucket_options* options,
    const swy_executor* executor) SWY_NOEXCEPT;
// Returns the number of int32 elements of scratch that swy_bucket_packed,
// swy_bucket_strided and swy_bucket_aligned need to use several threads, or 0
// if one thread is best.
SWY_API size_t swy_bucket_scratch_size(size_t num_pairs, size_t num_experts,
                                       const swy_executor* executor)
    SWY_NOEXCEPT;

// Inputs of swy_bucket_aligned, which sorts pairs into packed buckets of
// whole blocks. vLLM calls this step moe_align_block_size. Expert e owns
// pairs[offsets[e] .. offsets[e] + tokens_per_expert[e]).
typedef struct swy_aligned_inputs {
  uint32_t size;
  swy_matrix topk_ids;      // [tokens, top_k] of int32, uint32 or int64
  swy_i32_span expert_map;  // optional: the expert of each id, or -1
  swy_i32_span scratch;     // optional: see swy_bucket_inputs::scratch
} swy_aligned_inputs;
#define SWY_ALIGNED_INPUTS_INIT                                       \
  {                                                                   \
    (uint32_t)sizeof(swy_aligned_inputs), SWY_NO_MATRIX, SWY_NO_SPAN, \
        SWY_NO_SPAN                                                   \
  }
// Outputs of swy_bucket_aligned. Buckets begin at multiples of block_size.
// After an expert's pairs, up to the next bucket, `pairs` holds the sentinel
// tokens * top_k.
typedef struct swy_aligned_buckets {
  uint32_t size;
  swy_i32_span tokens_per_expert;  // [num_experts]: kept pairs of each expert
  // [num_experts + 1]: where each expert's blocks begin in `pairs`.
  swy_i32_span offsets;
  swy_i32_span pairs;  // the sorted pairs, at least [swy_bucket_aligned_size]
  // Optional int32 [tokens, top_k]: the position of each pair in `pairs`, or
  // -1 if the pair was dropped.
  swy_matrix row_index;
  // Optional, at least [swy_bucket_aligned_size / block_size]: the expert of
  // each block.
  swy_i32_span block_experts;
  // Optional, at least [swy_bucket_aligned_size]: the token of each element
  // of `pairs`, or `tokens` for the sentinel.
  swy_i32_span row_tokens;
  // Optional [num_experts]: the experts that have pairs, in ascending order;
  // the remaining elements are -1.
  swy_i32_span active_experts;
  // Optional. The call sets report->max_rows, report->dropped,
  // report->over_capacity and report->active_experts.
  swy_report* report;
} swy_aligned_buckets;
#define SWY_ALIGNED_BUCKETS_INIT                                           \
  {                                                                        \
    (uint32_t)sizeof(swy_aligned_buckets), SWY_NO_SPAN, SWY_NO_SPAN,       \
        SWY_NO_SPAN, SWY_NO_MATRIX, SWY_NO_SPAN, SWY_NO_SPAN, SWY_NO_SPAN, \
        NULL                                                               \
  }
// Options of swy_bucket_aligned.
typedef struct swy_aligned_options {
  uint32_t size;
  size_t block_size;  // buckets begin at multiples of block_size
  size_t capacity;    // the most pairs of an expert, or SWY_NO_CAPACITY
  // After the last block, write the sentinel to `pairs` and -1 to
  // block_experts.
  int32_t fill_unused;
  int32_t allow_dropped;  // accept ids outside [0, num_experts)
} swy_aligned_options;
// The value of `capacity` that means no limit.
#define SWY_NO_CAPACITY ((size_t)-1)
#define SWY_ALIGNED_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_aligned_options), 1, SWY_NO_CAPACITY, 0, 0 }

// Sorts pairs into dense lists that begin at multiples of block_size.
SWY_API swy_status swy_bucket_aligned(
    const swy_aligned_inputs* inputs, const swy_aligned_buckets* outputs,
    const swy_aligned_options* options,
    const swy_executor* executor) SWY_NOEXCEPT;
// Returns the largest possible value of offsets[num_experts] for num_pairs
// pairs. Returns SIZE_MAX if block_size is 0, if options are not valid, or if
// the size overflows.
SWY_API size_t swy_bucket_aligned_size(size_t num_pairs, size_t num_experts,
                                       const swy_aligned_options* options)
    SWY_NOEXCEPT;

// Inputs of swy_make_dispatch_args, which writes the arguments of an indirect
// dispatch, the numbers of threadgroups in x, y and z:
// {max(1, ceil(max_rows / tile_pairs)),
// ceil(features / tile_features), num_experts}.
typedef struct swy_dispatch_inputs {
  uint32_t size;
  size_t max_rows;     // pairs of the busiest expert, from swy_report
  size_t num_experts;  // at least 1
  size_t features;     // output columns of the GEMM
} swy_dispatch_inputs;
#define SWY_DISPATCH_INPUTS_INIT \
  { (uint32_t)sizeof(swy_dispatch_inputs), 0, 0, 0 }
// Outputs of swy_make_dispatch_args.
typedef struct swy_dispatch_outputs {
  uint32_t size;
  swy_u32_span args;  // [3]: threadgroups in x, y and z
} swy_dispatch_outputs;
#define SWY_DISPATCH_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_dispatch_outputs), SWY_NO_SPAN }
// Options of swy_make_dispatch_args: the size of the GEMM's output tiles.
typedef struct swy_dispatch_options {
  uint32_t size;
  uint32_t tile_pairs;     // pairs in a tile
  uint32_t tile_features;  // output features in a tile
} swy_dispatch_options;
#define SWY_DISPATCH_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_dispatch_options), 32, 64 }

// Writes the arguments of an indirect dispatch: three numbers of threadgroups.
SWY_API swy_status swy_make_dispatch_args(
    const swy_dispatch_inputs* inputs, const swy_dispatch_outputs* outputs,
    const swy_dispatch_options* options) SWY_NOEXCEPT;

// A list of rows sorted by destination: destination d gets
// rows[offsets[d] .. offsets[d + 1]), in ascending order.
typedef struct swy_map_rows {
  swy_i32_span counts;   // [num_destinations]: rows of each destination
  swy_i32_span offsets;  // [num_destinations + 1]: prefix sums of counts
  // The rows: at least tokens * top_k elements in `pairs`, and at least
  // tokens * min(top_k, num_destinations) elements in `tokens`.
  swy_i32_span rows;
  // Optional [num_destinations]: counts[d] * swy_map_options::row_elements.
  swy_i64_span element_counts;
  // Optional [num_destinations + 1]: offsets[d] *
  // swy_map_options::row_elements.
  swy_i64_span element_offsets;
} swy_map_rows;
#define SWY_NO_MAP_ROWS \
  { SWY_NO_SPAN, SWY_NO_SPAN, SWY_NO_SPAN, SWY_NO_SPAN, SWY_NO_SPAN }

// Inputs of swy_map_pairs.
typedef struct swy_map_inputs {
  uint32_t size;
  swy_matrix topk_ids;  // [tokens, top_k] of int32, uint32 or int64
  // [num_experts]: the destination of each expert, or -1 if the expert has
  // none. Leave the list empty if experts_per_destination replaces it.
  swy_i32_span destinations;
  // Optional working memory of swy_bucket_scratch_size(tokens * top_k,
  // num_destinations, executor) elements, for several threads.
  swy_i32_span scratch;
} swy_map_inputs;
#define SWY_MAP_INPUTS_INIT \
  { (uint32_t)sizeof(swy_map_inputs), SWY_NO_MATRIX, SWY_NO_SPAN, SWY_NO_SPAN }
// Outputs of swy_map_pairs.
typedef struct swy_map_outputs {
  uint32_t size;
  swy_map_rows pairs;  // lists each pair once; counts is required
  // Optional int32 [tokens, top_k]: the position of each pair in pairs.rows,
  // or -1 if the pair is dropped.
  swy_matrix pair_index;
  swy_map_rows tokens;  // optional: lists each token once per destination
  // Optional int32 [tokens, top_k]: the position in tokens.rows of the
  // token's copy for the pair's destination, or -1 if the pair is dropped.
  swy_matrix copy_index;
  // Optional int32 [tokens, top_k]: copy_index for the first of the pairs
  // that share a copy, and -1 for the other pairs.
  swy_matrix return_index;
  // Optional. The call sets report->max_rows and report->dropped.
  swy_report* report;
} swy_map_outputs;
#define SWY_MAP_OUTPUTS_INIT                                           \
  {                                                                    \
    (uint32_t)sizeof(swy_map_outputs), SWY_NO_MAP_ROWS, SWY_NO_MATRIX, \
        SWY_NO_MAP_ROWS, SWY_NO_MATRIX, SWY_NO_MATRIX, NULL            \
  }
// Options of swy_map_pairs.
typedef struct swy_map_options {
  uint32_t size;
  int32_t allow_dropped;  // accept pairs without a destination
  // If this is n > 0, it replaces `destinations`: experts [d * n, (d + 1) *
  // n) live at destination d.
  size_t experts_per_destination;
  size_t row_elements;  // number of elements in a row
} swy_map_options;
#define SWY_MAP_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_map_options), 0, 0, 1 }

// Maps pairs to the destinations of their experts, and tokens to the
// destinations of their pairs.
SWY_API swy_status swy_map_pairs(const swy_map_inputs* inputs,
                                 const swy_map_outputs* outputs,
                                 const swy_map_options* options,
                                 const swy_executor* executor) SWY_NOEXCEPT;

// Inputs of swy_map_replicas, which replaces logical experts by physical ones.
// The n-th pair of expert e gets replicas[e][(first_replica + n) %
// replica_counts[e]].
typedef struct swy_replica_inputs {
  uint32_t size;
  // [tokens, top_k] of int32, uint32 or int64: logical experts.
  swy_matrix topk_ids;
  // int32 [num_experts, max_replicas]: the physical experts that hold the
  // weights of each logical expert.
  swy_matrix replicas;
  // [num_experts]: the number of replicas of each expert, in [0, max_replicas].
  swy_i32_span replica_counts;
  // Optional working memory of swy_bucket_scratch_size(tokens * top_k,
  // num_experts, executor) elements, for several threads.
  swy_i32_span scratch;
} swy_replica_inputs;
#define SWY_REPLICA_INPUTS_INIT                                         \
  {                                                                     \
    (uint32_t)sizeof(swy_replica_inputs), SWY_NO_MATRIX, SWY_NO_MATRIX, \
        SWY_NO_SPAN, SWY_NO_SPAN                                        \
  }
// Outputs of swy_map_replicas.
typedef struct swy_replica_outputs {
  uint32_t size;
  swy_matrix physical_ids;  // int32 [tokens, top_k], -1 if dropped
  // [num_experts]: the number of pairs of each logical expert.
  swy_i32_span tokens_per_expert;
  // Optional. The call sets report->max_rows and report->dropped.
  swy_report* report;
} swy_replica_outputs;
#define SWY_REPLICA_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_replica_outputs), SWY_NO_MATRIX, SWY_NO_SPAN, NULL }
// Options of swy_map_replicas.
typedef struct swy_replica_options {
  uint32_t size;
  int32_t allow_dropped;  // accept pairs without a replica
  size_t first_replica;   // the replica of each expert's first pair
} swy_replica_options;
#define SWY_REPLICA_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_replica_options), 0, 0 }

// Replaces the logical expert of each pair by one of the physical experts that
// hold its weights (its replicas).
SWY_API swy_status swy_map_replicas(const swy_replica_inputs* inputs,
                                    const swy_replica_outputs* outputs,
                                    const swy_replica_options* options,
                                    const swy_executor* executor) SWY_NOEXCEPT;

// Inputs of swy_map_counts, which computes the arguments of an all-to-all on
// one rank from the counts of all ranks.
typedef struct swy_counts_inputs {
  uint32_t size;
  // int32 or int64 [ranks, ranks]: element (s, d) is the number of rows that
  // rank s sends to rank d.
  swy_matrix counts;
} swy_counts_inputs;
#define SWY_COUNTS_INPUTS_INIT \
  { (uint32_t)sizeof(swy_counts_inputs), SWY_NO_MATRIX }
// Outputs of swy_map_counts. The spans count elements: rows times
// row_elements.
typedef struct swy_counts_outputs {
  uint32_t size;
  swy_i64_span recv_counts;   // [ranks]: from each rank to this one
  swy_i64_span recv_offsets;  // [ranks + 1]: prefix sums of recv_counts
  swy_i64_span send_counts;   // optional [ranks]: from this rank to each one
  // Optional [ranks + 1]: prefix sums of send_counts.
  swy_i64_span send_offsets;
  // Optional [ranks]: where this rank's rows begin in each rank's receive
  // buffer.
  swy_i64_span put_offsets;
  // Optional. The call sets report->max_rows, which is the number of rows
  // that the busiest rank receives.
  swy_report* report;
} swy_counts_outputs;
#define SWY_COUNTS_OUTPUTS_INIT                                     \
  {                                                                 \
    (uint32_t)sizeof(swy_counts_outputs), SWY_NO_SPAN, SWY_NO_SPAN, \
        SWY_NO_SPAN, SWY_NO_SPAN, SWY_NO_SPAN, NULL                 \
  }
// Options of swy_map_counts.
typedef struct swy_counts_options {
  uint32_t size;
  size_t rank;          // this rank
  size_t row_elements;  // number of elements in a row
  size_t capacity;      // rows of each receive buffer, or SWY_NO_CAPACITY
} swy_counts_options;
#define SWY_COUNTS_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_counts_options), 0, 1, SWY_NO_CAPACITY }

// Computes the arguments of an all-to-all on one rank, in elements.
SWY_API swy_status swy_map_counts(
    const swy_counts_inputs* inputs, const swy_counts_outputs* outputs,
    const swy_counts_options* options) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_BUCKET_H_
