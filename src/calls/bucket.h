// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The tables of BucketPacked, BucketStrided, BucketAligned and
// MakeDispatchArgs. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_BUCKET_H_
#define SWITCHYARD_SRC_CALLS_BUCKET_H_

#include "src/calls/call.h"
#include "switchyard/bucket.h"

namespace switchyard::calls {

inline constexpr size_t kMaxInt32 = 0x7FFFFFFF;

// The sizes of a sort of ids, [tokens, top_k], into `buckets` buckets.
struct SortSizes {
  size_t tokens, top_k, buckets;
};
template <class Args>
bool HasBuckets(const Args& c) {
  return c.sizes.buckets != 0;
}
template <class Args>
bool HasFewBuckets(const Args& c) {
  return c.sizes.buckets <= kMaxInt32;
}
template <class Args>
bool HasFewPairs(const Args& c) {
  return c.sizes.tokens * c.sizes.top_k <= kMaxInt32;
}
template <class Args>
inline constexpr Rule<Args> kHasExperts = {HasBuckets<Args>,
                                           "tokens_per_expert: has no experts",
                                           Rule<Args>::kBeforeShapes};
template <class Args>
inline constexpr Rule<Args> kHasFewExperts = {
    HasFewBuckets<Args>, "tokens_per_expert: more than 2^31 - 1 experts",
    Rule<Args>::kBeforeShapes};
template <class Args>
inline constexpr Rule<Args> kHasFewPairs = {
    HasFewPairs<Args>, "topk_ids: more than 2^31 - 1 pairs",
    Rule<Args>::kBeforeShapes};

template <class Buckets, class CBuckets>
struct BucketCall : CallBase<BucketInputs, Buckets, BucketOptions, SortSizes,
                             swy_bucket_inputs, CBuckets, swy_bucket_options> {
  using Inputs = BucketInputs;
  using CInputs = swy_bucket_inputs;
  using Options = BucketOptions;
  using COptions = swy_bucket_options;
  static constexpr Size<SortSizes> kSizes[] = {
      {"tokens", &SortSizes::tokens},
      {"top_k", &SortSizes::top_k},
      {"num_experts", &SortSizes::buckets}};
  static SortSizes Measure(const BucketInputs& in, const Buckets& out,
                           const BucketOptions&) {
    return {in.topk_ids.rows, in.topk_ids.cols, out.tokens_per_expert.size};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(topk_ids), kIds, {{"[tokens, top_k]"}}},
      {INPUT(scratch), kSpan, {}, kOptional | kScratch}};
  static constexpr Option kOptions[] = {
      {OPTION(order), OneOf<BucketOrder>(" is not a known BucketOrder"), true},
      {OPTION(allow_dropped), kAnyValue, true}};
};

struct PackedCall : BucketCall<PackedBuckets, swy_packed_buckets> {
  static constexpr const char* kName = "BucketPacked";
  static constexpr Argument kOutputs[] = {
      {OUTPUT(tokens_per_expert), kSpan, {{"num_experts"}}},
      {OUTPUT(offsets), kSpan, {{"num_experts + 1"}}},
      {OUTPUT(pairs), kSpan, {{">= tokens * top_k"}}},
      {OUTPUT(row_index), kI32, {{"[tokens, top_k]"}}, kOptional},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Rule<Args> kRules[] = {
      kHasExperts<Args>, kHasFewExperts<Args>, kHasFewPairs<Args>};
};

struct StridedCall : BucketCall<StridedBuckets, swy_strided_buckets> {
  static constexpr const char* kName = "BucketStrided";
  static constexpr Argument kOutputs[] = {
      {OUTPUT(tokens_per_expert), kSpan, {{"num_experts"}}},
      {OUTPUT(ids), kSpan, {}, kOptional},
      {OUTPUT(row_stride)},
      {OUTPUT(zero_padding)},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Rule<Args> kRules[] = {
      kHasExperts<Args>,
      kHasFewExperts<Args>,
      kHasFewPairs<Args>,
      {[](const Args& c) {
         size_t size = 0;
         return !__builtin_mul_overflow(c.out.row_stride, c.sizes.buckets,
                                        &size) &&
                size <= PTRDIFF_MAX / sizeof(int32_t);
       },
       "row_stride: the table overflows the address space",
       Rule<Args>::kBeforeShapes}};
};

struct AlignedSizes : SortSizes {
  size_t padded, blocks;
};
struct AlignedCall
    : CallBase<AlignedInputs, AlignedBuckets, AlignedOptions, AlignedSizes,
               swy_aligned_inputs, swy_aligned_buckets, swy_aligned_options> {
  static constexpr const char* kName = "BucketAligned";
  static constexpr Size<Sizes> kSizes[] = {
      {"tokens", &Sizes::tokens},
      {"top_k", &Sizes::top_k},
      {"num_experts", &Sizes::buckets},
      {"BucketAlignedSize", &Sizes::padded},
      {"BucketAlignedSize / block_size", &Sizes::blocks}};
  static Sizes Measure(const Inputs& in, const Outputs& out,
                       const Options& options) {
    const SortSizes sort = {in.topk_ids.rows, in.topk_ids.cols,
                            out.tokens_per_expert.size};
    const size_t padded =
        BucketAlignedSize(sort.tokens * sort.top_k, sort.buckets, options);
    const size_t block = options.block_size;
    return {sort, padded, block == 0 ? 0 : padded / block};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(topk_ids), kIds, {{"[tokens, top_k]"}}},
      {INPUT(expert_map), kSpan, {}, kOptional},
      {INPUT(scratch), kSpan, {}, kOptional | kScratch}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(tokens_per_expert), kSpan, {{"num_experts"}}},
      {OUTPUT(offsets), kSpan, {{"num_experts + 1"}}},
      {OUTPUT(pairs), kSpan, {{">= BucketAlignedSize"}}},
      {OUTPUT(row_index), kI32, {{"[tokens, top_k]"}}, kOptional},
      {OUTPUT(block_experts),
       kSpan,
       {{">= BucketAlignedSize / block_size"}},
       kOptional},
      {OUTPUT(row_tokens), kSpan, {{">= BucketAlignedSize"}}, kOptional},
      {OUTPUT(active_experts), kSpan, {{"num_experts"}}, kOptional},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Option kOptions[] = {
      {OPTION(block_size), kNotZero, true},
      {OPTION(capacity), kAnyValue, true},
      {OPTION(fill_unused), kAnyValue, true},
      {OPTION(allow_dropped), kAnyValue, true}};
  static constexpr Rule<Args> kRules[] = {
      kHasExperts<Args>,
      kHasFewExperts<Args>,
      kHasFewPairs<Args>,
      {[](const Args& c) { return c.in.expert_map.size <= kMaxInt32; },
       "expert_map: more than 2^31 - 1 ids", Rule<Args>::kBeforeShapes},
      {[](const Args& c) {
         return c.options.block_size <= kMaxInt32 &&
                c.sizes.padded <= kMaxInt32;
       },
       "options: block_size: more than 2^31 - 1 padded pairs",
       Rule<Args>::kBeforeShapes}};
};

struct DispatchSizes {
  size_t pair_tiles, feature_tiles;
};
struct DispatchCall : CallBase<DispatchInputs, DispatchOutputs, DispatchOptions,
                               DispatchSizes, swy_dispatch_inputs,
                               swy_dispatch_outputs, swy_dispatch_options> {
  static constexpr const char* kName = "MakeDispatchArgs";
  static constexpr bool kRunsKernel = false;
  static constexpr Size<Sizes> kSizes[] = {
      {"pair_tiles", &Sizes::pair_tiles},
      {"feature_tiles", &Sizes::feature_tiles}};
  static size_t Tiles(size_t n, size_t tile) {
    return tile == 0 ? 0 : n / tile + (n % tile != 0 ? 1 : 0);
  }
  static Sizes Measure(const Inputs& in, const Outputs&,
                       const Options& options) {
    const size_t pair_tiles = Tiles(in.max_rows, options.tile_pairs);
    return {pair_tiles == 0 ? 1 : pair_tiles,
            Tiles(in.features, options.tile_features)};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(max_rows)}, {INPUT(num_experts)}, {INPUT(features)}};
  static constexpr Argument kOutputs[] = {{OUTPUT(args), kSpan, {{"3"}}}};
  static constexpr Option kOptions[] = {
      {OPTION(tile_pairs), kNotZero, true},
      {OPTION(tile_features), kNotZero, true}};
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.pair_tiles <= UINT32_MAX; },
       "max_rows: more than 2^32 - 1 tiles"},
      {[](const Args& c) { return c.sizes.feature_tiles <= UINT32_MAX; },
       "features: more than 2^32 - 1 tiles"},
      {[](const Args& c) { return c.in.num_experts != 0; },
       "num_experts: is 0"},
      {[](const Args& c) { return c.in.num_experts <= UINT32_MAX; },
       "num_experts: more than 2^32 - 1"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_BUCKET_H_
