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

// 16 bytes at `from` plus each of four offsets: dword q of row i to to[stride *
// q + 4 * i], with the bits of `flip` changed.
HWY_INLINE void TransposeFour(const uint8_t* HWY_RESTRICT from,
                              const size_t* HWY_RESTRICT offsets, uint32_t flip,
                              uint8_t* HWY_RESTRICT to, size_t stride) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < 4; ++i) {
    for (size_t q = 0; q < 4; ++q) {
      uint32_t four;
      std::memcpy(&four, from + offsets[i] + 4 * q, sizeof(four));
      four ^= flip;
      std::memcpy(to + stride * q + 4 * i, &four, sizeof(four));
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
  store(hn::InterleaveUpper(d64, ab0, ce0), to + stride);
  store(hn::InterleaveLower(d64, ab1, ce1), to + 2 * stride);
  store(hn::InterleaveUpper(d64, ab1, ce1), to + 3 * stride);
#endif
}

// The integer scale and minimum of part j of a q4_K block.
HWY_INLINE void GetQ4KScale(const uint8_t* q, size_t j, uint8_t* scale,
                            uint8_t* min) {
  if (j < 4) {
    *scale = q[j] & 63;
    *min = q[j + 4] & 63;
  } else {
    *scale = static_cast<uint8_t>((q[j + 4] & 15) | (q[j - 4] >> 6) << 4);
    *min = static_cast<uint8_t>(q[j + 4] >> 4 | (q[j] >> 6) << 4);
  }
}
// The scales of row i of 16, whose block begins at `from`.
template <class Format>
HWY_INLINE void PackScales(const uint8_t* HWY_RESTRICT from, size_t i,
                           uint8_t* HWY_RESTRICT scales) {
  constexpr WeightTraits kTraits = TraitsOf(Format::value);
  if constexpr (kTraits.coding == WeightCoding::kQ4_K) {
    std::memcpy(scales + 2 * i, from, 2);
    std::memcpy(scales + 32 + 2 * i, from + 2, 2);
    for (size_t j = 0; j < 8; ++j) {
      GetQ4KScale(from + 4, j, scales + 64 + 16 * j + i,
                  scales + 192 + 16 * j + i);
    }
  } else if constexpr (kTraits.coding == WeightCoding::kQ6_K) {
    std::memcpy(scales + 2 * i, from + 208, 2);
    for (size_t j = 0; j < 16; ++j) scales[32 + 16 * j + i] = from[192 + j];
  } else if constexpr (kTraits.has_block_scales()) {
    std::memcpy(scales + i * kTraits.row_scales, from, kTraits.row_scales);
  }
}

// One block of 16 rows, which begin at `from` plus their offsets.
template <class Format>
HWY_INLINE void PackBlock(const uint8_t* HWY_RESTRICT from,
                          const size_t* HWY_RESTRICT offsets,
                          uint8_t* HWY_RESTRICT codes,
                          uint8_t* HWY_RESTRICT scales) {
  constexpr WeightTraits kTraits = TraitsOf(Format::value);
  constexpr uint32_t kFlip =
      kTraits.coding == WeightCoding::kBytes ? 0x80808080 : 0;
  constexpr size_t kLineStride =
      kTraits.coding == WeightCoding::kQ6_K ? 3 * 64 : 64;
  for (size_t k = 0; k < kTraits.row_codes; k += 16) {
    for (size_t i = 0; i < kPackedRows; i += 4) {
      TransposeFour(from + kTraits.stored_codes_at + k, offsets + i, kFlip,
                    codes + 64 * PackedLine(kTraits.coding, k / 4) + 4 * i,
                    kLineStride);
    }
  }
  for (size_t i = 0; i < kPackedRows; ++i) {
    PackScales<Format>(from + offsets[i], i, scales);
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
                           : HWY_MIN(end, weights.cols / kTraits.block);
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
    const size_t left = weights.cols % kTraits.block;
    uint8_t filled[kPackedRows * kTraits.block] = {};
    for (size_t i = 0; i < kPackedRows; ++i) {
      std::memcpy(filled + i * kTraits.block, from + offsets[i], left);
      offsets[i] = i * kTraits.block;
    }
    PackBlock<Format>(filled, offsets, codes, scales);
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_WEIGHTS_INL_H_
