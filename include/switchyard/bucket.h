// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorts pairs by expert. A pair is a token and one of its top_k slots, and
// each slot holds the id of a selected expert. The pairs of an expert are its
// bucket.

#ifndef SWITCHYARD_BUCKET_H_
#define SWITCHYARD_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// The order of pairs inside one expert's bucket.
enum class BucketOrder : uint8_t {
  // In the order of pair indices; the same for any number of threads.
  kAscending,
  // Threads claim positions in the buckets with atomic adds, for a block of
  // tokens at a time. Each bucket has the same pairs as with kAscending, but
  // in any order if several threads run. This order needs no scratch for up
  // to 1024 experts. With more experts, the call uses kAscending. kClaim is
  // the only option of the library that lets bits differ between runs.
  kClaim,
};

// Inputs of BucketPacked() and BucketStrided().
struct BucketInputs {
  // The ids of the selected experts, as RouteTopK writes them: [tokens,
  // top_k] of int32, uint32 or int64, with a stride; tokens * top_k < 2^31.
  // Pair p = token * top_k + slot.
  ConstAnyMatrix topk_ids;
  // Optional working memory. With at least BucketScratchSize() elements,
  // several threads sort; with fewer, one thread does. The results are the
  // same.
  Span<int32_t> scratch = {};
};

// Options of BucketPacked() and BucketStrided().
struct BucketOptions {
  // The order of pairs inside one expert's bucket.
  BucketOrder order = BucketOrder::kAscending;
  // Accept ids outside [0, num_experts), such as -1 for padding or for
  // experts on another node. The call always drops and counts the pairs with
  // such ids. If allow_dropped is false, it then returns kFailedPrecondition,
  // after it has written all outputs.
  bool allow_dropped = false;
};

// Packed buckets, for CPU engines: one dense block of rows per expert. Expert e
// owns pairs[offsets[e] .. offsets[e + 1]), and tokens_per_expert[e] is its
// length. (BucketAligned also lists the token of each row, and the experts
// that have pairs.)
struct PackedBuckets {
  // [num_experts], at least 1: the number of pairs of each expert.
  Span<int32_t> tokens_per_expert = {};
  // [num_experts + 1]: where each expert's pairs begin in `pairs`.
  Span<int32_t> offsets = {};
  // The sorted pairs, at least [tokens * top_k]. Nothing is written beyond
  // offsets[num_experts].
  Span<int32_t> pairs = {};
  // Optional [tokens, top_k] of int32: the position of each pair in `pairs`,
  // or -1 if the pair was dropped. Combine takes it as row_index.
  AnyMatrix row_index = {};
  // Optional. The call sets report->max_rows and report->dropped.
  Report* report = nullptr;
};

// Strided buckets, for the GEMMs of Metal kernels: expert e owns ids[e *
// row_stride + s] for s < tokens_per_expert[e].
//
// Speed: every stride is fast, even without scratch. A pair takes 0.6 ns if
// rows spread over the cache. If row_stride is a multiple of 1024, or of 256
// with many experts, rows collide in the cache. (ggml's stride tokens * top_k
// can be such a multiple.) Storing pair by pair would then take up to 10 ns a
// pair. To avoid this, the call sorts up to 1024 experts through 40 KB of
// stack, which takes 0.8 to 1.2 ns a pair. It is best to make such a
// row_stride 16 elements longer, because the rows then do not collide.
struct StridedBuckets {
  // [num_experts], at least 1: the number of pairs of each expert.
  Span<int32_t> tokens_per_expert = {};
  // The table of pairs: at least (num_experts - 1) * row_stride + max_rows
  // elements, or num_experts * row_stride with zero_padding. Its size may
  // exceed 2^31.
  Span<int32_t> ids = {};
  // Elements from the start of one expert's row to the start of the next.
  // tokens * top_k is always enough, and with this stride one thread reads
  // the ids only once. With kTightStride the call itself finds the least
  // stride, max(1, the busiest expert's count), and reports it.
  size_t row_stride = 0;
  // The value of row_stride that makes the call find the least stride.
  static constexpr size_t kTightStride = 0;
  // Write 0 to the entries of each row after the expert's pairs. Otherwise
  // these entries are not written.
  bool zero_padding = false;
  // Optional. The call sets report->max_rows, report->dropped and
  // report->row_stride, which is the stride that was used or, if rows were
  // too short, the least stride.
  Report* report = nullptr;
};

// Returns the number of int32 elements of scratch that BucketPacked(),
// BucketStrided() and BucketAligned() need to use several threads, or 0 if one
// thread is best. Pass the executor that the later call will use.
size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Executor& executor) noexcept;

// BucketPacked() and BucketStrided() count the pairs of each expert and sort
// them by expert: BucketPacked() into dense lists that follow each other,
// BucketStrided() into a table with a row for each expert. With zero tokens
// they write zeros to tokens_per_expert (and offsets) and nothing else.
// Neither an output nor scratch may overlap another view.
//
// Bits: the results are the same for every ISA, executor and scratch, except
// with BucketOrder::kClaim.
//
// Errors: kInvalidArgument names the argument, and nothing is written: null
// data, a wrong stride, size or type, an overlap, or a table beyond the
// address space. kFailedPrecondition is returned for ids outside [0,
// num_experts) without allow_dropped. BucketStrided also returns it if rows
// are too short (row_stride < max_rows, or ids is too small). In that case it
// has written tokens_per_expert and the report, which has the stride that is
// needed, but not ids.
//
// The functions follow ferrum's kernel moe_compute_ids_tpe_f32, which uses
// the worst-case stride and the order of kClaim, and its host reference
// compute_ids_tpe, which uses kTightStride and zero_padding.
Status BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs,
                    const BucketOptions& options = {},
                    Executor& executor = SerialExecutor()) noexcept;
// Sorts pairs into a table with a row for each expert. The comment on
// BucketPacked() above covers both functions.
Status BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs,
                     const BucketOptions& options = {},
                     Executor& executor = SerialExecutor()) noexcept;

// Inputs of BucketAligned().
struct AlignedInputs {
  ConstAnyMatrix topk_ids;  // [tokens, top_k]: expert ids from RouteTopK
  // Optional: expert_map[id] is the expert of that id, in [0, num_experts),
  // or -1 for an expert on another node. Without the map, the id is the
  // expert's number.
  Span<const int32_t> expert_map = {};
  // Optional working memory for several threads: see BucketInputs::scratch.
  Span<int32_t> scratch = {};
};
// Options of BucketAligned().
struct AlignedOptions {
  // The number of rows in a block of the GEMM. It need not be a power of two.
  size_t block_size = 1;
  // The value of `capacity` that means no limit.
  static constexpr size_t kNoCapacity = static_cast<size_t>(-1);
  // The most pairs that an expert keeps, as in the Switch Transformer. The
  // call keeps the `capacity` pairs with the smallest indices and drops the
  // others.
  size_t capacity = kNoCapacity;
  // After the last block, write the sentinel (see AlignedBuckets) to the rest
  // of `pairs`, and -1 to the rest of block_experts. If this is false, the call
  // does not write there.
  bool fill_unused = false;
  // Accept ids outside [0, num_experts): see BucketOptions::allow_dropped.
  // Pairs beyond the capacity are never an error.
  bool allow_dropped = false;
};

// Packed buckets that begin at multiples of block_size: expert e owns
// pairs[offsets[e] .. offsets[e] + tokens_per_expert[e]). After the expert's
// pairs, up to offsets[e + 1], `pairs` is filled with the sentinel tokens *
// top_k, which is not a pair. GatherRows with allow_invalid writes a row of
// zeros for it. An expert without pairs has no block.
struct AlignedBuckets {
  // [num_experts]: the number of pairs that each expert keeps.
  Span<int32_t> tokens_per_expert = {};
  // [num_experts + 1]: where each expert's blocks begin in `pairs`.
  Span<int32_t> offsets = {};
  Span<int32_t> pairs = {};  // the sorted pairs: at least [BucketAlignedSize]
  // Optional [tokens, top_k]: the position of each pair in `pairs`, or -1 if
  // the pair was dropped. Combine takes it as row_index.
  AnyMatrix row_index = {};
  // Optional, at least [BucketAlignedSize / block_size]: the expert of each
  // block. Block b is pairs[b * block_size .. (b + 1) * block_size).
  Span<int32_t> block_experts = {};
  // Optional, at least [BucketAlignedSize]: pairs[i] / top_k, which is the
  // token of packed row i. Where pairs[i] is the sentinel, this is `tokens`,
  // the number of tokens.
  Span<int32_t> row_tokens = {};
  // Optional [num_experts]: the experts that have pairs, in ascending order;
  // the remaining elements are -1.
  Span<int32_t> active_experts = {};
  // Optional. The call sets report->max_rows, report->dropped,
  // report->over_capacity and report->active_experts.
  Report* report = nullptr;
};

// Returns the largest possible value of offsets[num_experts] for num_pairs
// pairs. It is a multiple of block_size, at most num_pairs + min(num_pairs,
// num_experts) * (block_size - 1). Returns SIZE_MAX if block_size is 0 or the
// size overflows.
size_t BucketAlignedSize(size_t num_pairs, size_t num_experts,
                         const AlignedOptions& options) noexcept;

// Sorts pairs as BucketPacked does, and pads each expert's pairs to whole
// blocks, for grouped GEMMs that run block by block, each block with the
// weights of one expert.
//
// vLLM and SGLang call this moe_align_block_size. There, `pairs` is
// sorted_token_ids, block_experts is expert_ids, and offsets[num_experts] is
// num_tokens_post_pad. With fill_unused all of sorted_token_ids is written,
// as in vLLM. Differences:
// * An expert's pairs are always in ascending order. vLLM's CUDA kernels claim
//   positions with atomics.
// * Ids outside [0, num_experts), and ids that the map sends to no expert,
//   are dropped and counted, as in vLLM with ignore_invalid_experts. Without
//   that option, vLLM sorts other nodes' pairs, too, and marks their blocks
//   -1.
// * Elements of block_experts after the last block are -1 or not written. vLLM
//   writes 0, or -1 with LoRA.
// * There may be any number of experts.
//
// Types: topk_ids int32, uint32 or int64; row_index int32.
// Shapes: as in AlignedInputs and AlignedBuckets; num_experts is
// tokens_per_expert.size, at least 1. The call checks that tokens * top_k and
// the padded size are at most 2^31 - 1. With a capacity, tokens_per_expert,
// max_rows and active_experts count the kept pairs only. Scratch, threads,
// errors and bits are as in BucketPacked. The scratch for several threads has
// BucketScratchSize(tokens * top_k, num_experts, executor) elements.
Status BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                     const AlignedOptions& options = {},
                     Executor& executor = SerialExecutor()) noexcept;

// Inputs of MakeDispatchArgs().
struct DispatchInputs {
  size_t max_rows = 0;     // pairs of the busiest expert, from a Report
  size_t num_experts = 0;  // at least 1
  size_t features = 0;     // output columns of the GEMM
};
// Outputs of MakeDispatchArgs().
struct DispatchOutputs {
  Span<uint32_t> args = {};  // [3]: threadgroups in x, y and z
};
// The size of the GEMM's output tiles. A tile has tile_pairs pairs (columns
// of the grid) and tile_features output features.
struct DispatchOptions {
  uint32_t tile_pairs = 32;     // pairs in a tile, along x
  uint32_t tile_features = 64;  // output features in a tile, along y
};

// Writes the arguments of an indirect dispatch, which are the numbers of
// threadgroups in x (tiles of pairs), y (tiles of features) and z (experts):
// {max(1, ceil(max_rows / tile_pairs)),
// ceil(features / tile_features), num_experts}. For gate and up, `features`
// is the expert's intermediate size; for down, it is the hidden size.
// Errors: kInvalidArgument if args is null or does not have size 3, if a size
// of the tile is 0, if num_experts is 0, or if a count does not fit 32 bits;
// nothing is written.
Status MakeDispatchArgs(const DispatchInputs& inputs,
                        const DispatchOutputs& outputs,
                        const DispatchOptions& options = {}) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_BUCKET_H_
