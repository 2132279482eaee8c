// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorts (token, slot) pairs by expert.

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
  kAscending,  // by pair index: the same bits for any thread count
  // Threads claim slots with atomic adds, a block of tokens at a time. Each
  // bucket has the same set of pairs, in any order if several threads run. Up
  // to 1024 experts this needs no scratch; above, it is kAscending. Nowhere
  // else in this library may bits differ between runs.
  kClaim,
};

struct BucketInputs {
  // [tokens, top_k] of int32, uint32 or int64 with a stride, as RouteTopK
  // writes them; tokens * top_k < 2^31. Pair p = token * top_k + slot.
  ConstAnyMatrix topk_ids;
  // Optional, written: with BucketScratchSize elements several threads work,
  // with fewer one thread. The results are the same.
  Span<int32_t> scratch = {};
};

struct BucketOptions {
  BucketOrder order = BucketOrder::kAscending;
  // Accept ids outside [0, num_experts), such as -1 for padding or for experts
  // on another node. Their pairs are dropped and counted either way. If this is
  // false and the call meets such ids, it returns kFailedPrecondition after
  // everything is written.
  bool allow_dropped = false;
};

// Packed buckets, for CPU engines: one dense block of rows per expert. Expert e
// owns pairs[offsets[e] .. offsets[e + 1]), and tokens_per_expert[e] is its
// length. (BucketAligned also lists the tokens of rows and active experts.)
struct PackedBuckets {
  Span<int32_t> tokens_per_expert = {};  // [num_experts], at least 1
  Span<int32_t> offsets = {};            // [num_experts + 1]
  // At least [tokens * top_k]; nothing is written beyond offsets[num_experts].
  Span<int32_t> pairs = {};
  // Optional [tokens, top_k] of int32: the packed position of each pair, -1 if
  // it was dropped. It is the inverse permutation of `pairs`, and the row_index
  // that Combine takes.
  AnyMatrix row_index = {};
  Report* report = nullptr;  // optional: sets max_rows and dropped
};

// Strided buckets, for the GEMMs of Metal kernels: expert e owns ids[e *
// row_stride + s] for s < tokens_per_expert[e].
//
// Every stride is fast without scratch: 0.6 ns a pair if rows spread over the
// cache. If row_stride is a multiple of 1024, or of 256 with many experts (as
// ggml's tokens * top_k is), rows collide in the cache, and storing pair by
// pair would take up to 10 ns. Up to 1024 experts are then sorted through 40 KB
// of stack, which takes 0.8 to 1.2 ns. A row_stride 16 elements longer avoids
// the collisions and is the best choice.
struct StridedBuckets {
  Span<int32_t> tokens_per_expert = {};  // [num_experts], at least 1
  // At least (num_experts - 1) * row_stride + max_rows elements, or num_experts
  // * row_stride with zero_padding; may exceed 2^31.
  Span<int32_t> ids = {};
  // Elements from one expert's row to the next. tokens * top_k is always
  // enough, and lets one thread do with one pass over the ids. kTightStride:
  // max(1, the busiest expert's count), which the call finds and reports.
  size_t row_stride = 0;
  static constexpr size_t kTightStride = 0;
  // Write 0 to entries s >= tokens_per_expert[e] of each row; otherwise they
  // are not written.
  bool zero_padding = false;
  // Sets max_rows, dropped and row_stride: the stride used or, on failure, the
  // tight stride.
  Report* report = nullptr;
};

// The int32 elements of scratch that let the functions below use several
// threads. Pass the executor of the later call. 0 if one thread is best.
size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Executor& executor) noexcept;

// Count the pairs of each expert and sort them by expert. Zero tokens write
// zeros to tokens_per_expert (and offsets) and nothing else. Neither an output
// nor scratch may overlap another view.
//
// Bits: the same for every ISA, executor and scratch, except with
// BucketOrder::kClaim.
//
// Errors: kInvalidArgument names the argument, and nothing is written (null,
// stride, size, type, overlap, a table beyond the address space).
// kFailedPrecondition for pairs that allow_dropped would allow. BucketStrided
// returns it, too, if a row is too short (row_stride < max_rows, or ids too
// small). It then writes tokens_per_expert and the report, which has the stride
// that is needed, but not ids.
//
// The functions follow moe_compute_ids_tpe_f32 (ferrum: worst-case stride,
// claim order) and its host reference compute_ids_tpe (kTightStride,
// zero_padding).
Status BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs,
                    const BucketOptions& options = {},
                    Executor& executor = SerialExecutor()) noexcept;
Status BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs,
                     const BucketOptions& options = {},
                     Executor& executor = SerialExecutor()) noexcept;

struct AlignedInputs {
  ConstAnyMatrix topk_ids;  // [tokens, top_k], as RouteTopK writes them
  // Optional [ids]: the expert of each id, in [0, num_experts), or -1 for an
  // expert on another node. Without it the id is the expert's number.
  Span<const int32_t> expert_map = {};
  Span<int32_t> scratch = {};  // as in BucketInputs
};
struct AlignedOptions {
  size_t block_size = 1;  // need not be a power of two
  // Drop an expert's pairs after the first `capacity`, in the order of pairs:
  // the Switch Transformer's capacity.
  static constexpr size_t kNoCapacity = static_cast<size_t>(-1);
  size_t capacity = kNoCapacity;
  // Write the sentinel to the elements of `pairs` after the last block, and -1
  // to the elements of block_experts after it. Otherwise neither is written.
  bool fill_unused = false;
  // See BucketOptions. Pairs beyond the capacity are never an error.
  bool allow_dropped = false;
};

// Packed buckets that begin at multiples of block_size: expert e owns
// pairs[offsets[e] .. offsets[e] + tokens_per_expert[e]). The elements from
// there up to pairs[offsets[e + 1]) are the sentinel tokens * top_k, which is
// not a pair: GatherRows with allow_invalid writes zeros for it. An expert
// without pairs has no block.
struct AlignedBuckets {
  Span<int32_t> tokens_per_expert = {};  // [num_experts]
  Span<int32_t> offsets = {};            // [num_experts + 1]
  Span<int32_t> pairs = {};              // at least [BucketAlignedSize]
  // Optional [tokens, top_k]: the position of each pair, -1 if it was dropped.
  // The inverse permutation of `pairs`, and the row_index that Combine takes.
  AnyMatrix row_index = {};
  // Optional, at least [BucketAlignedSize / block_size]: the expert of block b,
  // of pairs[b * block_size .. (b + 1) * block_size).
  Span<int32_t> block_experts = {};
  // Optional, at least [BucketAlignedSize]: pairs[i] / top_k, the token of each
  // packed row; `tokens` of a sentinel.
  Span<int32_t> row_tokens = {};
  // Optional [num_experts]: the experts with pairs, ascending, then -1.
  Span<int32_t> active_experts = {};
  // Sets max_rows, dropped, over_capacity and active_experts.
  Report* report = nullptr;
};

// The largest possible offsets[num_experts] for num_pairs pairs: a multiple of
// block_size, at most num_pairs + min(num_pairs, num_experts) * (block_size -
// 1). SIZE_MAX if block_size is 0 or this overflows.
size_t BucketAlignedSize(size_t num_pairs, size_t num_experts,
                         const AlignedOptions& options) noexcept;

// BucketPacked in blocks: the input of grouped GEMMs that run block by block,
// each block with one expert's weights.
//
// vLLM and SGLang call this moe_align_block_size: pairs are its
// sorted_token_ids, block_experts its expert_ids, offsets[num_experts] its
// num_tokens_post_pad. With fill_unused all of sorted_token_ids is written, as
// there. Differences:
// * An expert's pairs are always in ascending order. vLLM's CUDA kernels claim
//   positions with atomics.
// * Ids outside [0, num_experts), and ids that the map sends to no expert, are
//   dropped and counted, as under vLLM's ignore_invalid_experts. Without it,
//   vLLM sorts other nodes' pairs, too, and marks their blocks -1.
// * Elements of block_experts after the last block are -1 or not written. vLLM
//   writes 0, or -1 with LoRA.
// * Any number of experts.
//
// Types: topk_ids int32, uint32 or int64; row_index int32.
// Shapes: as above; num_experts is tokens_per_expert.size, at least 1. tokens *
// top_k and the padded size are at most 2^31 - 1, checked.
// With a capacity, tokens_per_expert, max_rows and active_experts count the
// kept pairs only. Scratch, threads, errors and bits are as in BucketPacked:
// the same for every ISA, executor and scratch; BucketScratchSize(tokens *
// top_k, num_experts, executor) elements of scratch let several threads work.
Status BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                     const AlignedOptions& options = {},
                     Executor& executor = SerialExecutor()) noexcept;

struct DispatchInputs {
  size_t max_rows = 0;     // of Report: pairs of the busiest expert
  size_t num_experts = 0;  // at least 1
  size_t features = 0;     // output columns of the GEMM
};
struct DispatchOutputs {
  Span<uint32_t> args = {};  // [3]
};
// How the GEMM tiles its output: pairs (columns of the grid) by output
// features.
struct DispatchOptions {
  uint32_t tile_pairs = 32;
  uint32_t tile_features = 64;
};

// Threadgroups of an indirect dispatch over (pair tiles, feature tiles,
// experts): {max(1, ceil(max_rows / tile_pairs)), ceil(features /
// tile_features), num_experts}. `features` is the expert's intermediate size
// for gate and up, the hidden size for down.
// Errors: kInvalidArgument for null args or a size other than 3, a zero tile,
// zero experts (no sort has that), or a count that does not fit 32 bits;
// nothing is written.
Status MakeDispatchArgs(const DispatchInputs& inputs,
                        const DispatchOutputs& outputs,
                        const DispatchOptions& options = {}) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_BUCKET_H_
