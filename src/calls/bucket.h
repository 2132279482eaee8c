// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The calls of BucketPacked, BucketStrided, BucketAligned and MakeDispatchArgs:
// see call.h.

#ifndef SWITCHYARD_SRC_CALLS_BUCKET_H_
#define SWITCHYARD_SRC_CALLS_BUCKET_H_

#include "src/calls/call.h"
#include "switchyard/bucket.h"

namespace switchyard::calls {

inline constexpr size_t kMaxInt32 = 0x7FFFFFFF;

// Sorts of [tokens, top_k] ids into so many buckets.
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
                                           "tokens_per_expert: no experts",
                                           Rule<Args>::kBeforeShapes};
template <class Args>
inline constexpr Rule<Args> kHasFewExperts = {
    HasFewBuckets<Args>, "tokens_per_expert: more than 2^31 - 1 experts",
    Rule<Args>::kBeforeShapes};
template <class Args>
inline constexpr Rule<Args> kHasFewPairs = {
    HasFewPairs<Args>, "topk_ids: more than 2^31 - 1 pairs",
    Rule<Args>::kBeforeShapes};

template <class Buckets>
struct BucketCall : CallBase<BucketInputs, Buckets, BucketOptions, SortSizes> {
  static constexpr bool kNamesEarlier = true;
  static constexpr Size<SortSizes> kSizes[] = {
      {"tokens", &SortSizes::tokens},
      {"top_k", &SortSizes::top_k},
      {"num_experts", &SortSizes::buckets}};
  static SortSizes Measure(const BucketInputs& in, const Buckets& out,
                           const BucketOptions&) {
    return {in.topk_ids.rows, in.topk_ids.cols, out.tokens_per_expert.size};
  }
#define FIELD(f) SWITCHYARD_FIELD_OF(BucketInputs, swy_bucket_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(topk_ids), kIds, {{"[tokens, top_k]"}}},
      {FIELD(scratch), kSpan, {}, kOptional | kScratch}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(BucketOptions, swy_bucket_options, f)
  static constexpr Option kOptions[] = {
      {FIELD(order), OneOf<BucketOrder>(" is not a known BucketOrder"), true},
      {FIELD(allow_dropped), kAnyValue, true}};
#undef FIELD
};

struct PackedCall : BucketCall<PackedBuckets> {
  static constexpr const char* kName = "BucketPacked";
#define FIELD(f) SWITCHYARD_FIELD_OF(PackedBuckets, swy_packed_buckets, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(tokens_per_expert), kSpan, {{"num_experts"}}},
      {FIELD(offsets), kSpan, {{"num_experts + 1"}}},
      {FIELD(pairs), kSpan, {{">= tokens * top_k"}}},
      {FIELD(row_index), kI32, {{"[tokens, top_k]"}}, kOptional},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
  static constexpr Rule<Args> kRules[] = {
      kHasExperts<Args>, kHasFewExperts<Args>, kHasFewPairs<Args>};
};

struct StridedCall : BucketCall<StridedBuckets> {
  static constexpr const char* kName = "BucketStrided";
#define FIELD(f) SWITCHYARD_FIELD_OF(StridedBuckets, swy_strided_buckets, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(tokens_per_expert), kSpan, {{"num_experts"}}},
      {FIELD(ids), kSpan, {}, kOptional},
      {FIELD(row_stride)},
      {FIELD(zero_padding)},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
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
    : CallBase<AlignedInputs, AlignedBuckets, AlignedOptions, AlignedSizes> {
  static constexpr const char* kName = "BucketAligned";
  static constexpr bool kNamesOne = true;
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
#define FIELD(f) SWITCHYARD_FIELD_OF(AlignedInputs, swy_aligned_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(topk_ids), kIds, {{"[tokens, top_k]"}}},
      {FIELD(expert_map), kSpan, {}, kOptional},
      {FIELD(scratch), kSpan, {}, kOptional | kScratch}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(AlignedBuckets, swy_aligned_buckets, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(tokens_per_expert), kSpan, {{"num_experts"}}},
      {FIELD(offsets), kSpan, {{"num_experts + 1"}}},
      {FIELD(pairs), kSpan, {{">= BucketAlignedSize"}}},
      {FIELD(row_index), kI32, {{"[tokens, top_k]"}}, kOptional},
      {FIELD(block_experts),
       kSpan,
       {{">= BucketAlignedSize / block_size"}},
       kOptional},
      {FIELD(row_tokens), kSpan, {{">= BucketAlignedSize"}}, kOptional},
      {FIELD(active_experts), kSpan, {{"num_experts"}}, kOptional},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(AlignedOptions, swy_aligned_options, f)
  static constexpr Option kOptions[] = {
      {FIELD(block_size), kNotZero, true},
      {FIELD(capacity), kAnyValue, true},
      {FIELD(fill_unused), kAnyValue, true},
      {FIELD(allow_dropped), kAnyValue, true}};
#undef FIELD
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
                               DispatchSizes> {
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
#define FIELD(f) SWITCHYARD_FIELD_OF(DispatchInputs, swy_dispatch_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(max_rows)}, {FIELD(num_experts)}, {FIELD(features)}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(DispatchOutputs, swy_dispatch_outputs, f)
  static constexpr Argument kOutputs[] = {{FIELD(args), kSpan, {{"3"}}}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(DispatchOptions, swy_dispatch_options, f)
  static constexpr Option kOptions[] = {{FIELD(tile_pairs), kNotZero, true},
                                        {FIELD(tile_features), kNotZero, true}};
#undef FIELD
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.pair_tiles <= UINT32_MAX; },
       "max_rows: more than 2^32 - 1 tiles"},
      {[](const Args& c) { return c.sizes.feature_tiles <= UINT32_MAX; },
       "features: more than 2^32 - 1 tiles"},
      {[](const Args& c) { return c.in.num_experts <= UINT32_MAX; },
       "num_experts: more than 2^32 - 1"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_BUCKET_H_
