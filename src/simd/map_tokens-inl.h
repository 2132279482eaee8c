// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Maps a token to each bucket at most once.

#if defined(SWITCHYARD_SRC_SIMD_MAP_TOKENS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_MAP_TOKENS_INL_H_
#undef SWITCHYARD_SRC_SIMD_MAP_TOKENS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_MAP_TOKENS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "src/simd/map.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Records which buckets have a copy of the current token: a bit per bucket, in
// a register (SeenFew) or on the stack (SeenMany).
struct SeenFew {
  static constexpr size_t kMaxBuckets = 64;
  uint64_t bits = 0;

  HWY_INLINE void Clear(size_t /*num_buckets*/) { bits = 0; }
  // Returns 1 for the token's first pair in this bucket, otherwise 0.
  HWY_INLINE int32_t First(uint32_t bucket) {
    const uint64_t before = bits >> bucket & 1;
    bits |= uint64_t{1} << bucket;
    return static_cast<int32_t>(before ^ 1);
  }
};
struct SeenMany {
  uint64_t words[kMaxTokenBuckets / 64];

  HWY_INLINE void Clear(size_t num_buckets) {
    for (size_t w = 0; w < (num_buckets + 63) / 64; ++w) words[w] = 0;
  }
  HWY_INLINE int32_t First(uint32_t bucket) {
    uint64_t& word = words[bucket / 64];
    const uint64_t before = word >> bucket % 64 & 1;
    word |= uint64_t{1} << bucket % 64;
    return static_cast<int32_t>(before ^ 1);
  }
};

// The current token of a pass over pairs in order.
template <class Seen>
class Token {
 public:
  Token(const MapArgs& args, size_t block)
      : top_k_(args.topk_ids.cols),
        num_buckets_(args.num_buckets),
        index_(static_cast<int32_t>(block * args.block_tokens) - 1) {}

  // Makes the token of the next pair the current token. Returns how many of the
  // next n pairs belong to it; n is at least 1.
  HWY_INLINE size_t Next(size_t n) {
    if (slots_left_ == 0) {
      seen_.Clear(num_buckets_);
      slots_left_ = top_k_;
      ++index_;
    }
    const size_t size = HWY_MIN(n, slots_left_);
    slots_left_ -= size;
    return size;
  }
  HWY_INLINE int32_t First(uint32_t bucket) { return seen_.First(bucket); }
  int32_t index() const { return index_; }

 private:
  const size_t top_k_, num_buckets_;
  size_t slots_left_ = 0;
  int32_t index_;
  Seen seen_;
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_MAP_TOKENS_INL_H_
