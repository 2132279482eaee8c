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

struct BucketSizes {
  size_t tokens, top_k, num_experts;
};

struct PackedCall
    : CallBase<BucketInputs, PackedBuckets, BucketOptions, BucketSizes> {
  static constexpr const char* kName = "BucketPacked";
  static constexpr bool kNamesEarlier = true;
  static constexpr Size<Sizes> kSizes[] = {
      {"tokens", &Sizes::tokens},
      {"top_k", &Sizes::top_k},
      {"num_experts", &Sizes::num_experts}};
  static Sizes Measure(const Inputs& in, const Outputs& out, const Options&) {
    return {in.topk_ids.rows, in.topk_ids.cols, out.tokens_per_expert.size};
  }
#define FIELD(f) SWITCHYARD_FIELD_OF(BucketInputs, swy_bucket_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(topk_ids), kIds, {{"[tokens, top_k]"}}},
      {FIELD(scratch), kSpan, {}, kOptional | kScratch}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(PackedBuckets, swy_packed_buckets, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(tokens_per_expert), kSpan, {{"num_experts"}}},
      {FIELD(offsets), kSpan, {{"num_experts + 1"}}},
      {FIELD(pairs), kSpan, {{">= tokens * top_k"}}},
      {FIELD(row_index), kI32, {{"[tokens, top_k]"}}, kOptional},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(BucketOptions, swy_bucket_options, f)
  static constexpr Option kOptions[] = {
      {FIELD(order), OneOf<BucketOrder>(" is not a known BucketOrder"), true},
      {FIELD(allow_dropped), kAnyValue, true}};
#undef FIELD
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.num_experts != 0; },
       "tokens_per_expert: no experts", Rule<Args>::kBeforeShapes},
      {[](const Args& c) { return c.sizes.num_experts <= kMaxInt32; },
       "tokens_per_expert: more than 2^31 - 1 experts",
       Rule<Args>::kBeforeShapes},
      {[](const Args& c) {
         return c.sizes.tokens * c.sizes.top_k <= kMaxInt32;
       },
       "topk_ids: more than 2^31 - 1 pairs", Rule<Args>::kBeforeShapes}};
};

struct StridedCall
    : CallBase<BucketInputs, StridedBuckets, BucketOptions, BucketSizes> {
  static constexpr const char* kName = "BucketStrided";
  static constexpr bool kNamesEarlier = true;
  static constexpr const Size<Sizes> (&kSizes)[3] = PackedCall::kSizes;
  static Sizes Measure(const Inputs& in, const Outputs& out, const Options&) {
    return {in.topk_ids.rows, in.topk_ids.cols, out.tokens_per_expert.size};
  }
  static constexpr const Argument (&kInputs)[2] = PackedCall::kInputs;
#define FIELD(f) SWITCHYARD_FIELD_OF(StridedBuckets, swy_strided_buckets, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(tokens_per_expert), kSpan, {{"num_experts"}}},
      {FIELD(ids), kSpan, {}, kOptional},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
  static constexpr const Option (&kOptions)[2] = PackedCall::kOptions;
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.num_experts != 0; },
       "tokens_per_expert: no experts", Rule<Args>::kBeforeShapes},
      {[](const Args& c) { return c.sizes.num_experts <= kMaxInt32; },
       "tokens_per_expert: more than 2^31 - 1 experts",
       Rule<Args>::kBeforeShapes},
      {[](const Args& c) {
         return c.sizes.tokens * c.sizes.top_k <= kMaxInt32;
       },
       "topk_ids: more than 2^31 - 1 pairs", Rule<Args>::kBeforeShapes},
      {[](const Args& c) {
         size_t size = 0;
         return !__builtin_mul_overflow(c.out.row_stride, c.sizes.num_experts,
                                        &size) &&
                size <= PTRDIFF_MAX / sizeof(int32_t);
       },
       "row_stride: the table overflows the address space"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_BUCKET_H_
