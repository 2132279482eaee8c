// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Stored weights to packed ones, some blocks of 16 rows at a time: for
// PackWeights, and for products with weights as they are stored.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_WEIGHTS_INL_H_
#undef SWITCHYARD_SRC_SIMD_WEIGHTS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_WEIGHTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/simd/weight_layout.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The weights of one expert.
struct StoredWeights {
  const uint8_t* data;
  size_t rows, cols;
};
template <WeightFormat kFormat>
using WeightFormatTag = std::integral_constant<WeightFormat, kFormat>;

// 16 bytes at `from` plus each of four offsets: dword q of row i to to[64 * q +
// 4 * i], with the bits of `flip` changed.
HWY_INLINE void TransposeFour(const uint8_t* HWY_RESTRICT from,
                              const size_t* HWY_RESTRICT offsets, uint32_t flip,
                              uint8_t* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < 4; ++i) {
    for (size_t q = 0; q < 4; ++q) {
      uint32_t four;
      std::memcpy(&four, from + offsets[i] + 4 * q, sizeof(four));
      four ^= flip;
      std::memcpy(to + 64 * q + 4 * i, &four, sizeof(four));
    }
  }
#else
  const hn::Full128<uint32_t> d32;
  const hn::Full128<uint64_t> d64;
  const hn::Full128<uint8_t> d8;
  const auto flips = hn::Set(d32, flip);
  const auto load = [&](size_t i) HWY_ATTR {
    const auto v = hn::BitCast(d32, hn::LoadU(d8, from + offsets[i]));
    return flip == 0 ? v : hn::Xor(v, flips);
  };
  const auto store = [&](auto v, uint8_t* p)
                         HWY_ATTR { hn::StoreU(hn::BitCast(d8, v), d8, p); };
  const auto a = load(0), b = load(1), c = load(2), e = load(3);
  const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
  const auto ab1 = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
  const auto ce0 = hn::BitCast(d64, hn::InterleaveLower(d32, c, e));
  const auto ce1 = hn::BitCast(d64, hn::InterleaveUpper(d32, c, e));
  store(hn::InterleaveLower(d64, ab0, ce0), to);
  store(hn::InterleaveUpper(d64, ab0, ce0), to + 64);
  store(hn::InterleaveLower(d64, ab1, ce1), to + 128);
  store(hn::InterleaveUpper(d64, ab1, ce1), to + 192);
#endif
}

// One block of 16 rows, which begin at `from` plus their offsets.
template <class Format>
HWY_INLINE void PackBlock(const uint8_t* HWY_RESTRICT from,
                          const size_t* HWY_RESTRICT offsets,
                          uint8_t* HWY_RESTRICT codes,
                          uint8_t* HWY_RESTRICT scales) {
  constexpr WeightTraits kTraits = TraitsOf(Format::value);
  constexpr uint32_t kFlip = kTraits.is_nibbles ? 0 : 0x80808080;
  // Codes lie behind the block's scale, 16 bytes or twice that.
  for (size_t k = 0; k < kTraits.packed_codes() / kPackedRows; k += 16) {
    for (size_t i = 0; i < kPackedRows; i += 4) {
      TransposeFour(from + kTraits.block_scale + k, offsets + i, kFlip,
                    codes + kPackedRows * k + 4 * i);
    }
  }
  if constexpr (kTraits.has_block_scales()) {
    for (size_t i = 0; i < kPackedRows; ++i) {
      std::memcpy(scales + i * kTraits.block_scale, from + offsets[i],
                  kTraits.block_scale);
    }
  }
}

// Blocks [begin, end) of the 16 rows from `row` on: their codes and scales as
// kPacked has them. Rows behind the last repeat it: PackGroups() zeroes them,
// and a product does not look at them.
template <class Format>
HWY_INLINE void PackBlocks(const StoredWeights& weights, size_t row,
                           size_t begin, size_t end, uint8_t* codes,
                           uint8_t* scales) {
  constexpr WeightTraits kTraits = TraitsOf(Format::value);
  const size_t row_bytes = StoredRowBytes(kTraits, weights.cols);
  size_t offsets[kPackedRows];
  for (size_t i = 0; i < kPackedRows; ++i) {
    offsets[i] = HWY_MIN(row + i, weights.rows - 1) * row_bytes;
  }
  const size_t whole = kTraits.has_block_scales()
                           ? end
                           : HWY_MIN(end, weights.cols / kWeightBlock);
  const uint8_t* from = weights.data + begin * kTraits.stored_block;
  for (size_t b = begin; b < whole; ++b) {
#if HWY_HAVE_SCALABLE
    // GCC 12 ends in an internal error where it splits this loop for SVE.
    asm volatile("" ::: "memory");
#endif
    PackBlock<Format>(from, offsets, codes, scales);
    from += kTraits.stored_block;
    codes += kTraits.packed_codes();
    scales += kTraits.packed_scales();
  }
  if constexpr (!kTraits.has_block_scales()) {
    if (whole == end) return;
    // int8 rows end within their last block.
    const size_t left = weights.cols % kWeightBlock;
    uint8_t filled[kPackedRows * kWeightBlock] = {};
    for (size_t i = 0; i < kPackedRows; ++i) {
      std::memcpy(filled + i * kWeightBlock, from + offsets[i], left);
      offsets[i] = i * kWeightBlock;
    }
    PackBlock<Format>(filled, offsets, codes, scales);
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_WEIGHTS_INL_H_
