// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sorting (token, slot) pairs to their experts.

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
  // Threads claim slots with atomic adds, a block of tokens at a time: the same
  // set of pairs in each bucket, in any order once several threads run. Up to
  // 1024 experts this needs no scratch; above, it is kAscending. The only place
  // in this library where bits may differ between runs.
  kClaim,
};

struct BucketInputs {
  // [tokens, top_k] of int32, uint32 or int64 with a stride, as RouteTopK
  // writes them; tokens * top_k < 2^31. Pair p = token * top_k + slot.
  ConstAnyMatrix topk_ids;
  // Optional, written: BucketScratchSize elements let several threads work.
  // With fewer one thread does, and the results are the same.
  Span<int32_t> scratch = {};
};

struct BucketOptions {
  BucketOrder order = BucketOrder::kAscending;
  // Ids outside [0, num_experts) are expected (-1 of padding, of experts on
  // another node). Their pairs are dropped and counted either way; without this
  // the call returns kFailedPrecondition if there are any, after everything is
  // written.
  bool allow_dropped = false;
};

// Packed buckets, for CPU engines: one dense block of rows per expert. Expert e
// owns pairs[offsets[e] .. offsets[e + 1]), and tokens_per_expert[e] is its
// length. (BucketAligned has more: tokens of rows, active experts.)
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
// Any stride will do, and none needs scratch for its speed: 0.6 ns a pair if
// rows spread over the cache. With a row_stride that is a multiple of 1024, or
// of 256 if experts are many (ggml's tokens * top_k is), rows collide in the
// cache, and storing pair by pair would take up to 10 ns. Up to 1024 experts
// are then sorted by way of 40 KB of stack: 0.8 to 1.2 ns. A row_stride 16
// elements longer is still the best.
struct StridedBuckets {
  Span<int32_t> tokens_per_expert = {};  // [num_experts], at least 1
  // At least (num_experts - 1) * row_stride + max_rows elements, or num_experts
  // * row_stride with zero_padding; may exceed 2^31.
  Span<int32_t> ids = {};
  // Elements from one expert's row to the next: at most tokens * top_k is ever
  // needed, and with that one pass over the ids is enough on one thread.
  // kTightStride: max(1, the busiest expert's count), found on the way and
  // reported.
  size_t row_stride = 0;
  static constexpr size_t kTightStride = 0;
  // Write 0 to entries s >= tokens_per_expert[e] of each row; otherwise they
  // are left alone.
  bool zero_padding = false;
  // Sets max_rows, dropped and row_stride: the stride used or, on failure, the
  // tight stride.
  Report* report = nullptr;
};

// int32 elements of scratch with which the functions below use several
// threads. `executor` is the one that will be passed. 0 when one thread is
// best.
size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Executor& executor) noexcept;

// Count the pairs of each expert and sort them to it. Zero tokens write zeros
// to tokens_per_expert (and offsets) and nothing else. Neither an output nor
// scratch may overlap another view.
//
// Bits: the same for every ISA, executor and scratch, but for
// BucketOrder::kClaim.
//
// Errors: kInvalidArgument names the argument, and nothing is written (null,
// stride, size, type, overlap, a table beyond the address space).
// kFailedPrecondition for pairs that allow_dropped would allow. BucketStrided
// returns it, too, if a row is too short (row_stride < max_rows, or ids too
// small): tokens_per_expert and the report are then written, they tell the
// stride that is needed, and ids is untouched.
//
// They follow moe_compute_ids_tpe_f32 (ferrum: worst-case stride, claim order)
// and its host reference compute_ids_tpe (kTightStride, zero_padding).
Status BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs,
                    const BucketOptions& options = {},
                    Executor& executor = SerialExecutor()) noexcept;
Status BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs,
                     const BucketOptions& options = {},
                     Executor& executor = SerialExecutor()) noexcept;

struct AlignedInputs {
  ConstAnyMatrix topk_ids;  // [tokens, top_k], as RouteTopK writes them
  // Optional [ids]: the expert of each id, in [0, num_experts), or -1: of
  // another node. Without it an id is its own expert.
  Span<const int32_t> expert_map = {};
  Span<int32_t> scratch = {};  // as in BucketInputs
};
struct AlignedOptions {
  size_t block_size = 1;  // of any size, no power of two is asked for
  // Pairs of an expert beyond its first so many, in the order of pairs, are
  // dropped: the Switch Transformer's capacity.
  static constexpr size_t kNoCapacity = static_cast<size_t>(-1);
  size_t capacity = kNoCapacity;
  // Write the sentinel to what is left of `pairs` behind the last block, and -1
  // to what is left of block_experts. Otherwise both are left alone.
  bool fill_unused = false;
  // See BucketOptions. Pairs beyond the capacity are never an error.
  bool allow_dropped = false;
};

// Packed buckets that begin at multiples of block_size: expert e owns
// pairs[offsets[e] .. offsets[e] + tokens_per_expert[e]), and behind them, up
// to pairs[offsets[e + 1]), lies the sentinel tokens * top_k, which is no pair:
// GatherRows makes zeros of it, with allow_invalid. An expert without pairs has
// no block.
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
  // Optional [num_experts]: those that have pairs, ascending, -1 behind them.
  Span<int32_t> active_experts = {};
  // Sets max_rows, dropped, over_capacity and active_experts.
  Report* report = nullptr;
};

// The largest offsets[num_experts] that so many pairs can lead to: a multiple
// of block_size, at most num_pairs + min(num_pairs, num_experts) * (block_size
// - 1). SIZE_MAX if block_size is 0 or this overflows.
size_t BucketAlignedSize(size_t num_pairs, size_t num_experts,
                         const AlignedOptions& options) noexcept;

// BucketPacked in blocks, with what engines want beside it: the input of
// grouped GEMMs that run block by block, each with one expert's weights.
//
// What vLLM and SGLang call moe_align_block_size: pairs are its
// sorted_token_ids, block_experts its expert_ids, offsets[num_experts] its
// num_tokens_post_pad; with fill_unused all of sorted_token_ids is written, as
// there. Differences: the order inside an expert is that of pairs, always (its
// CUDA kernels claim positions with atomics); ids outside [0, num_experts) and,
// with a map, those that come to none are dropped and counted, as under vLLM's
// ignore_invalid_experts (without it, it sorts other nodes' pairs, too, and
// marks their blocks -1); blocks beyond the last are -1 or left alone (vLLM's
// are 0, or -1 with LoRA). Any number of experts.
//
// Types: topk_ids int32, uint32 or int64; row_index int32.
// Shapes: as above; num_experts is tokens_per_expert.size, at least 1. tokens *
// top_k and the padded size are at most 2^31 - 1, checked.
// With a capacity, tokens_per_expert, max_rows and active_experts are of what
// is kept. Scratch, threads, errors and bits are as in BucketPacked: the
// same for every ISA, executor and scratch; BucketScratchSize(tokens * top_k,
// num_experts, executor) elements of scratch let several threads work.
Status BucketAligned(const AlignedInputs& inputs, const AlignedBuckets& outputs,
                     const AlignedOptions& options = {},
                     Executor& executor = SerialExecutor()) noexcept;

struct DispatchInputs {
  size_t max_rows = 0;     // of Report: pairs of the busiest expert
  size_t num_experts = 0;  // at least 1
  size_t features = 0;     // that the GEMM puts out
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
// no experts, which no sort has, or a count that does not fit 32 bits; nothing
// written.
Status MakeDispatchArgs(const DispatchInputs& inputs,
                        const DispatchOutputs& outputs,
                        const DispatchOptions& options = {}) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_BUCKET_H_
