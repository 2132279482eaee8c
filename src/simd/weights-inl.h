// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Packs blocks of 16 rows of stored weights, for PackWeights and for products.

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

#include "src/base/weight_layout.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The stored weights of one expert.
struct StoredWeights {
  const uint8_t* data;
  size_t rows, cols;
};
template <WeightFormat kFormat>
using WeightFormatTag = std::integral_constant<WeightFormat, kFormat>;

// The number of rows that TransposeRows() takes. It loads them as 4 vectors,
// each with every fourth row.
#if HWY_CAP_GE512
constexpr size_t kTransposedRows = 16;
#elif HWY_CAP_GE256 && !HWY_HAVE_SCALABLE
constexpr size_t kTransposedRows = 8;
#else
constexpr size_t kTransposedRows = 4;
#endif

#if HWY_TARGET != HWY_SCALAR
using TransposedTag = hn::FixedTag<uint8_t, 4 * kTransposedRows>;
using Transposed = hn::Vec<TransposedTag>;

// Four vectors, each with 16 bytes of every fourth row, become four lines.
// Dword i of line q is dword q of row i.
HWY_INLINE void Transpose(Transposed& line0, Transposed& line1,
                          Transposed& line2, Transposed& line3) {
  const TransposedTag d8;
  const hn::Repartition<uint32_t, TransposedTag> d32;
  const hn::Repartition<uint64_t, TransposedTag> d64;
  const auto a = hn::BitCast(d32, line0), b = hn::BitCast(d32, line1);
  const auto c = hn::BitCast(d32, line2), e = hn::BitCast(d32, line3);
  const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
  const auto ab1 = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
  const auto ce0 = hn::BitCast(d64, hn::InterleaveLower(d32, c, e));
  const auto ce1 = hn::BitCast(d64, hn::InterleaveUpper(d32, c, e));
  line0 = hn::BitCast(d8, hn::InterleaveLower(d64, ab0, ce0));
  line1 = hn::BitCast(d8, hn::InterleaveUpper(d64, ab0, ce0));
  line2 = hn::BitCast(d8, hn::InterleaveLower(d64, ab1, ce1));
  line3 = hn::BitCast(d8, hn::InterleaveUpper(d64, ab1, ce1));
}

// Loads 16 bytes of each row, which begin at the row's offset. Dword i of line
// q becomes dword q of row i, with the bits of `flip` inverted.
HWY_INLINE void LoadTransposed(const uint8_t* HWY_RESTRICT from,
                               const size_t* HWY_RESTRICT offsets,
                               uint32_t flip, Transposed& line0,
                               Transposed& line1, Transposed& line2,
                               Transposed& line3) {
  const TransposedTag d8;
  const hn::Full128<uint8_t> d128;
  const auto load = [&](size_t i) HWY_ATTR {
    const auto block = [&](size_t row) HWY_ATTR {
      return hn::LoadU(d128, from + offsets[row]);
    };
#if HWY_CAP_GE512
    const hn::Half<TransposedTag> half;
    const auto v =
        hn::Combine(d8, hn::Combine(half, block(i + 12), block(i + 8)),
                    hn::Combine(half, block(i + 4), block(i)));
#elif HWY_CAP_GE256 && !HWY_HAVE_SCALABLE
    const auto v = hn::Combine(d8, block(i + 4), block(i));
#else
    const auto v = block(i);
#endif
    const hn::Repartition<uint32_t, TransposedTag> d32;
    return flip == 0 ? v : hn::Xor(v, hn::BitCast(d8, hn::Set(d32, flip)));
  };
  line0 = load(0);
  line1 = load(1);
  line2 = load(2);
  line3 = load(3);
  Transpose(line0, line1, line2, line3);
}
#endif

// Takes 16 bytes of each row, which begin at the row's offset. Stores dword q
// of row i to to[stride * q + 4 * i], after inverting the bits that are set in
// `flip`.
HWY_INLINE void TransposeRows(const uint8_t* HWY_RESTRICT from,
                              const size_t* HWY_RESTRICT offsets, uint32_t flip,
                              uint8_t* HWY_RESTRICT to, size_t stride) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < kTransposedRows; ++i) {
    for (size_t q = 0; q < 4; ++q) {
      uint32_t four;
      std::memcpy(&four, from + offsets[i] + 4 * q, sizeof(four));
      four ^= flip;
      std::memcpy(to + stride * q + 4 * i, &four, sizeof(four));
    }
  }
#else
  const TransposedTag d8;
  Transposed line0, line1, line2, line3;
  LoadTransposed(from, offsets, flip, line0, line1, line2, line3);
  hn::StoreU(line0, d8, to);
  hn::StoreU(line1, d8, to + stride);
  hn::StoreU(line2, d8, to + 2 * stride);
  hn::StoreU(line3, d8, to + 3 * stride);
#endif
}

// The number of 16-byte parts that TransposeParts() takes of each row.
constexpr size_t kTransposedParts = kTransposedRows / 4;

// TransposeRows() for kTransposedParts parts of each row, which are adjacent.
// Loads each of them once. Rows of floats are often a multiple of 4096 bytes
// apart, and then an L1 cache of 8 ways holds a line of only 8 of them. (One
// row of f32 or bf16 by 2048 columns took up to 1.3 times as long. Zen 4)
HWY_INLINE void TransposeParts(const uint8_t* HWY_RESTRICT from,
                               const size_t* HWY_RESTRICT offsets,
                               uint8_t* HWY_RESTRICT to) {
#if HWY_CAP_GE256 && HWY_ARCH_X86
  const TransposedTag d8;
  Transposed parts[kTransposedParts][4];
  for (size_t i = 0; i < 4; ++i) {
    const auto row = [&](size_t r) HWY_ATTR {
      return hn::LoadU(d8, from + offsets[i + 4 * r]);
    };
#if HWY_CAP_GE512
    const auto a = row(0), b = row(1), c = row(2), e = row(3);
    const auto ab0 = hn::ConcatLowerLower(d8, b, a).raw;
    const auto ab1 = hn::ConcatUpperUpper(d8, b, a).raw;
    const auto ce0 = hn::ConcatLowerLower(d8, e, c).raw;
    const auto ce1 = hn::ConcatUpperUpper(d8, e, c).raw;
    parts[0][i] = Transposed{_mm512_shuffle_i32x4(ab0, ce0, 0x88)};
    parts[1][i] = Transposed{_mm512_shuffle_i32x4(ab0, ce0, 0xDD)};
    parts[2][i] = Transposed{_mm512_shuffle_i32x4(ab1, ce1, 0x88)};
    parts[3][i] = Transposed{_mm512_shuffle_i32x4(ab1, ce1, 0xDD)};
#else
    const auto a = row(0), b = row(1);
    parts[0][i] = hn::ConcatLowerLower(d8, b, a);
    parts[1][i] = hn::ConcatUpperUpper(d8, b, a);
#endif
  }
  for (size_t i = 0; i < kTransposedParts; ++i) {
    Transpose(parts[i][0], parts[i][1], parts[i][2], parts[i][3]);
    for (size_t q = 0; q < 4; ++q) {
      hn::StoreU(parts[i][q], d8, to + 64 * (4 * i + q));
    }
  }
#else
  TransposeRows(from, offsets, 0, to, 64);
#endif
}

// TransposeRows() for all 16 rows.
HWY_INLINE void TransposeGroup(const uint8_t* HWY_RESTRICT from,
                               const size_t* HWY_RESTRICT offsets,
                               uint32_t flip, uint8_t* HWY_RESTRICT to,
                               size_t stride) {
  for (size_t i = 0; i < kPackedRows; i += kTransposedRows) {
    TransposeRows(from, offsets + i, flip, to + 4 * i, stride);
  }
}

// Unpacks the six-bit integers in the 12 bytes of q4_K: the scales of parts 0
// to 3 and of parts 4 to 7, then the minima in the same order.
HWY_INLINE void GetSixBits(const uint32_t* HWY_RESTRICT q0,
                           const uint32_t* HWY_RESTRICT q1,
                           const uint32_t* HWY_RESTRICT q2,
                           uint32_t* HWY_RESTRICT to) {
  constexpr uint32_t kTwo = 0x03030303, kFour = 0x0F0F0F0F;
  for (size_t i = 0; i < kPackedRows; ++i) {
    to[i] = q0[i] & 0x3F3F3F3F;
    to[16 + i] = (q2[i] & kFour) | (q0[i] >> 6 & kTwo) << 4;
    to[32 + i] = q1[i] & 0x3F3F3F3F;
    to[48 + i] = (q2[i] >> 4 & kFour) | (q1[i] >> 6 & kTwo) << 4;
  }
}
// Packs the scales of one block of 16 rows, which are at from + offsets[i].
template <class Format>
HWY_INLINE void PackScales(const uint8_t* HWY_RESTRICT from,
                           const size_t* HWY_RESTRICT offsets,
                           uint8_t* HWY_RESTRICT scales) {
  constexpr WeightTraits kTraits = TraitsOf(Format::value);
  const auto pack = [&](size_t at, size_t bytes, uint8_t* to) HWY_ATTR {
    for (size_t i = 0; i < kPackedRows; ++i) {
      std::memcpy(to + bytes * i, from + offsets[i] + at, bytes);
    }
  };
  if constexpr (kTraits.coding == WeightCoding::kQ4_K) {
    uint32_t header[4 * kPackedRows], integers[4 * kPackedRows];
    TransposeGroup(from, offsets, 0, reinterpret_cast<uint8_t*>(header), 64);
    GetSixBits(header + 16, header + 32, header + 48, integers);
    pack(0, 2, scales);
    pack(2, 2, scales + 32);
    std::memcpy(scales + 64, integers, sizeof(integers));
  } else if constexpr (kTraits.coding == WeightCoding::kQ6_K) {
    pack(208, 2, scales);
    TransposeGroup(from + 192, offsets, 0, scales + 32, 64);
  } else if constexpr (kTraits.has_block_scales()) {
    pack(0, kTraits.row_scales, scales);
  }
}

// Packs one block of 16 rows, which are at from + offsets[i]. If `next` is not
// null, prefetches as many bytes from it to L2. It prefetches a few lines at a
// time, because many prefetches at once stall the core.
template <class Format>
HWY_INLINE void PackBlock(const uint8_t* HWY_RESTRICT from,
                          const size_t* HWY_RESTRICT offsets,
                          const uint8_t* next, uint8_t* HWY_RESTRICT to) {
  constexpr WeightTraits kTraits = TraitsOf(Format::value);
  constexpr uint32_t kFlip =
      kTraits.coding == WeightCoding::kBytes ? 0x80808080 : 0;
  constexpr size_t kLineStride =
      kTraits.coding == WeightCoding::kQ6_K ? 3 * 64 : 64;
  constexpr size_t kSteps = kTraits.row_codes / 16;
  constexpr size_t kNext =
      (kPackedRows * kTraits.stored_block + kSteps - 1) / kSteps;
  uint8_t* const codes = to + kTraits.packed_scales();
  for (size_t step = 0; step < kSteps; ++step) {
    if (next != nullptr) {
      for (size_t at = 0; at < kNext; at += 64) {
        __builtin_prefetch(next + step * kNext + at, 0, 2);
      }
    }
    if constexpr (kTraits.is_float()) {
      if (step % kTransposedParts != 0) continue;
      for (size_t i = 0; i < kPackedRows; i += kTransposedRows) {
        TransposeParts(from + 16 * step, offsets + i,
                       codes + 256 * step + 4 * i);
      }
      continue;
    }
    TransposeGroup(from + kTraits.stored_codes_at + 16 * step, offsets, kFlip,
                   codes + 64 * PackedLine(kTraits.coding, 4 * step),
                   kLineStride);
  }
  PackScales<Format>(from, offsets, to);
}

// Packs blocks [begin, end) of 16 rows, of which `row` is the first, to `to`,
// as in kPacked. Behind the last row of the matrix, repeats this row:
// PackGroups() zeroes these copies, and products do not read them. If `next` is
// not null, it is the first of 16 rows that are needed later.
template <class Format>
HWY_NOINLINE void PackBlocks(const StoredWeights& weights, size_t row,
                             size_t begin, size_t end, uint8_t* to,
                             const uint8_t* next = nullptr) {
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
    // GCC 12 fails with an internal error when it splits this loop for SVE.
    asm volatile("" ::: "memory");
#endif
    const uint8_t* const later =
        next == nullptr ? next : next + b * kPackedRows * kTraits.stored_block;
    PackBlock<Format>(from, offsets, later, to);
    from += kTraits.stored_block;
    to += kTraits.packed_block();
  }
  if constexpr (!kTraits.has_block_scales()) {
    if (whole == end) return;
    // Rows of int8 and of floats may end within their last block.
    const size_t left = row_bytes % kTraits.stored_block;
    uint8_t filled[kPackedRows * kTraits.stored_block] = {};
    for (size_t i = 0; i < kPackedRows; ++i) {
      std::memcpy(filled + i * kTraits.stored_block, from + offsets[i], left);
      offsets[i] = i * kTraits.stored_block;
    }
    PackBlock<Format>(filled, offsets, nullptr, to);
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_WEIGHTS_INL_H_
