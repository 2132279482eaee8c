// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/quantize.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/base/row_format.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/quantize.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

constexpr float kLargestF16 = 65504.0f;
constexpr uint16_t kLargestF16Bits = 0x7BFF, kSignF16 = 0x8000;

bool IsInfinite(Float16 value) { return (value.bits & ~kSignF16) == 0x7C00; }
void ClampF16(Float16* value) {
  if (!IsInfinite(*value)) return;
  value->bits =
      static_cast<uint16_t>((value->bits & kSignF16) | kLargestF16Bits);
}

// Quantises 32 values with the largest f16 as d, rounding halves away from
// zero. Returns the sum of the codes. The code is scalar, because such blocks
// are rare.
int32_t PutClamped(const float* x, int8_t* codes) {
  int32_t sum = 0;
  for (size_t i = 0; i < 32; ++i) {
    const float scaled = x[i] * (1.0f / kLargestF16);
    const float most = HWY_MIN(127.0f, HWY_MAX(-127.0f, scaled));
    const float half = 0x1.fffffep-2f;  // as in CodeI8Away
    codes[i] = static_cast<int8_t>(most < 0.0f ? most - half : most + half);
    sum += codes[i];
  }
  return sum;
}

// Counts the blocks of a row that have an infinite field and, with args.clamp,
// clamps these fields. Infinite fields come from finite values that overflow,
// because other values make NaN.
template <class Block>
size_t MendRow(const QuantizeArgs& args, size_t row) {
  Block* const blocks = reinterpret_cast<Block*>(RowAt(args.to, row));
  size_t overflowed = 0;
  for (size_t i = 0; i < args.to.cols / 32; ++i) {
    Block& block = blocks[i];
    bool is_infinite = IsInfinite(block.d);
    if constexpr (std::is_same_v<Block, BlockQ8_1>) {
      is_infinite |= IsInfinite(block.s);
    }
    if (!is_infinite) continue;
    ++overflowed;
    if (!args.clamp) continue;
    if (IsInfinite(block.d)) {
      HWY_ALIGN float buffer[32];
      const StoredRow stored = {args.from, row};
      const int32_t sum =
          PutClamped(StoredRow::Get(&stored, 32 * i, 32, buffer), block.qs);
      block.d.bits = kLargestF16Bits;
      // The field s is the sum of the codes times d, the largest f16. So |s| is
      // at least the largest f16, unless the sum is 0.
      if constexpr (std::is_same_v<Block, BlockQ8_1>) {
        block.s.bits = static_cast<uint16_t>(
            sum == 0 ? 0 : kLargestF16Bits | (sum < 0 ? kSignF16 : 0));
      }
    } else if constexpr (std::is_same_v<Block, BlockQ8_1>) {
      ClampF16(&block.s);
    }
  }
  return overflowed;
}

void Quantize(const QuantizeArgs& args, size_t begin, size_t end) {
  const bool looks = !args.copy && (args.clamp || args.overflowed != nullptr);
  size_t overflowed = 0;
  for (size_t row = begin; row < end; ++row) {
    if (args.copy) {
      CopyRow(args.from, row, args.to, row);
      continue;
    }
    PutRow(StoredRow{args.from, row}.Source(), args.to, row);
    if (!looks) continue;
    if (args.to.type == Type::kQ8_0) {
      overflowed += MendRow<BlockQ8_0>(args, row);
    } else if (args.to.type == Type::kQ8_1) {
      overflowed += MendRow<BlockQ8_1>(args, row);
    }
  }
  if (overflowed != 0 && args.overflowed != nullptr) {
    args.overflowed->fetch_add(overflowed, std::memory_order_relaxed);
  }
}

SWITCHYARD_ROW_FUNCTION(Quantize, QuantizeArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(QuantizeRows, Quantize, QuantizeArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
