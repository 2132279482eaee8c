// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compiles code for AVX3_DL, too, because route_select.cc and multiply.cc have
// such code, which calls functions of this file. (See targets.h.)
#define HWY_WANT_AVX3_DL

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/base/row_format.h"
#include "src/base/type_list.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/rows.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/formats-inl.h"
#include "src/simd/quantize-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

namespace {

// The most floats converted at once. It is a multiple of every group size, and
// the floats and their results fit in L1.
constexpr size_t kRowTile = 1024;
// The most floats that stay on the stack until the row's largest magnitude is
// known. The floats of longer rows are computed twice.
constexpr size_t kRowKept = 16384;

// Converts columns [begin, begin + n) of a row of type T to floats.
template <class T>
HWY_NOINLINE void ReadRow(const ConstAnyRows& rows, size_t row, size_t begin,
                          size_t n, float* to) {
  const T* const from = rows.Row<T>(row) + begin;
  if (sizeof(T) != 1) return ToFloats(from, n, 1.0f, to);
  const size_t group = GroupOf(rows.cols, rows.scales.cols);
  const float* const scales = rows.scales.Row<float>(row);
  for (size_t i = 0; i < n;) {
    const size_t at = begin + i;
    const size_t count = HWY_MIN(group - at % group, n - i);
    ToFloats(from + i, count, scales[at / group], to + i);
    i += count;
  }
}

}  // namespace

const float* StoredRow::Get(const void* context, size_t begin, size_t n,
                            float* buffer) {
  const StoredRow& stored = *static_cast<const StoredRow*>(context);
  const ConstAnyRows& rows = stored.rows;
  switch (rows.type) {
#define SWITCHYARD_CASE(T, ...)                     \
  case kType<T>:                                    \
    ReadRow<T>(rows, stored.row, begin, n, buffer); \
    return buffer;
    SWITCHYARD_HALVES(SWITCHYARD_CASE, )
    SWITCHYARD_CODES(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return rows.Row<float>(stored.row) + begin;
  }
}

void RowToFloats(const ConstAnyMatrix& m, size_t row, float* to) {
  switch (m.type) {
#define SWITCHYARD_CASE(T, ...) \
  case kType<T>:                \
    return ToFloats(m.Row<T>(row), m.cols, 1.0f, to);
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return;
  }
}

void FloatsToRow(const float* from, size_t n, const AnyMatrix& m, size_t row,
                 size_t col) {
  switch (m.type) {
#define SWITCHYARD_CASE(T, ...) \
  case kType<T>:                \
    return FromFloats(from, n, m.Row<T>(row) + col);
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return;
  }
}

// Converts contiguous rows as one long row. The router then takes 1.07 instead
// of 1.27 times as long for rows of 8 bf16 or f16 as for rows of 8 f32.
void RowsToFloats(const ConstAnyMatrix& m, size_t row, size_t n, float* to) {
  if (n > 1 && m.stride == m.cols) {
    const ConstAnyMatrix all = m.RowRange(row, row + n);
    RowToFloats({all.data, all.type, 1, n * all.cols, n * all.cols}, 0, to);
    return;
  }
  for (size_t i = 0; i < n; ++i) RowToFloats(m, row + i, to + i * m.cols);
}

void FloatsToRows(const float* from, const AnyMatrix& m, size_t row, size_t n) {
  if (n > 1 && m.stride == m.cols) {
    const AnyMatrix all = m.RowRange(row, row + n);
    FloatsToRow(from, n * m.cols,
                {all.data, all.type, 1, n * all.cols, n * all.cols}, 0, 0);
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    FloatsToRow(from + i * m.cols, m.cols, m, row + i, 0);
  }
}

float ScalarAt(const ConstAnyMatrix& m, size_t row, size_t col) {
  // Avoids a partial load, which would need the mask of a longer vector.
  const hn::CappedTag<float, 1> d;
  switch (m.type) {
#define SWITCHYARD_CASE(T, ...) \
  case kType<T>:                \
    return hn::GetLane(Storage<T>::Load(d, m.Row<T>(row) + col));
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return 0.0f;
  }
}

namespace {

// FromFloats() with streaming stores, for at most kRowTile floats. It converts
// them in the cache, and streams whole vectors, beginning at an aligned
// address.
template <class T>
HWY_NOINLINE void StreamFromFloats(const float* HWY_RESTRICT from, size_t n,
                                   T* HWY_RESTRICT to,
                                   const StreamingStores& streaming) {
  const hn::ScalableTag<uint8_t> d8;
  const size_t bytes = hn::Lanes(d8);
  if (bytes < sizeof(T)) return FromFloats(from, n, to);  // no vectors
  HWY_ALIGN T buffer[kRowTile];
  const size_t misaligned = reinterpret_cast<uintptr_t>(to) % bytes;
  const size_t head =
      HWY_MIN(n, misaligned == 0 ? 0 : (bytes - misaligned) / sizeof(T));
  FromFloats(from, head, to);
  const size_t whole = (n - head) / (bytes / sizeof(T)) * (bytes / sizeof(T));
  FromFloats(from + head, whole, buffer);
  const uint8_t* const in = reinterpret_cast<const uint8_t*>(buffer);
  uint8_t* const out = reinterpret_cast<uint8_t*>(to + head);
  for (size_t i = 0; i < whole * sizeof(T); i += bytes) {
    streaming.Store(hn::Load(d8, in + i), d8, out + i);
  }
  FromFloats(from + head + whole, n - head - whole, to + head + whole);
}

template <class T>
HWY_INLINE void PutFloats(const RowSource& from, const AnyRows& to, size_t row,
                          const StreamingStores* streaming) {
  const bool stream = streaming != nullptr && streaming->wanted();
  HWY_ALIGN float buffer[kRowTile];
  T* const out = to.Row<T>(row);
  for (size_t i = 0; i < to.cols; i += kRowTile) {
    const size_t n = HWY_MIN(kRowTile, to.cols - i);
    float* where = buffer;
    if constexpr (std::is_same_v<T, float>) {
      if (!stream) where = out + i;
    }
    const float* const tile = from.get(from.context, i, n, where);
    if (stream) {
      StreamFromFloats(tile, n, out + i, *streaming);
    } else if (static_cast<const void*>(tile) != out + i) {
      FromFloats(tile, n, out + i);
    }
  }
}

// Writes the codes of a tile, which has groups of `group` columns (a power of
// two) or, without kGroups, is a single group.
template <class Code, bool kGroups>
HWY_INLINE void PutGroups(const float* p, size_t n, size_t group,
                          const Scales& s, bool bad, uint8_t* codes) {
  const size_t shift = kGroups ? hwy::Num0BitsBelowLS1Bit_Nonzero64(group) : 0;
  PutCodes<Code, kGroups>(p, n, s.inverse, shift, codes);
  if (HWY_LIKELY(!bad)) return;
  for (size_t i = 0; i < n; i += group) {
    if (s.largest[i / group] < kInfinityBits) continue;
    std::memset(codes + i, Code::kZero, HWY_MIN(group, n - i));
  }
}

// Writes codes to one matrix, and scales to another.
template <class Code, class Rule>
HWY_NOINLINE void PutCoded(const RowSource& from, const AnyRows& to,
                           size_t row) {
  const size_t cols = to.cols;
  const size_t group = GroupOf(cols, to.scales.cols);
  uint8_t* const codes = to.Row<uint8_t>(row);
  typename Rule::T* const scales = to.scales.Row<typename Rule::T>(row);
  HWY_ALIGN float buffer[kRowKept];
  Scales s;
  if (group < cols) {
    for (size_t i = 0; i < cols; i += kRowTile) {
      const size_t n = HWY_MIN(kRowTile, cols - i);
      const float* const p = from.get(from.context, i, n, buffer);
      LargestOfGroups(p, n, group, s.largest);
      const size_t groups = (n + group - 1) / group;
      const bool bad = Rule::Put(groups, s, scales + i / group);
      PutGroups<Code, true>(p, n, group, s, bad, codes + i);
    }
  } else {
    const float* p = nullptr;
    s.largest[0] = 0;
    for (size_t i = 0; i < cols; i += kRowKept) {
      const size_t n = HWY_MIN(kRowKept, cols - i);
      p = from.get(from.context, i, n, buffer);
      s.largest[0] = HWY_MAX(s.largest[0], LargestOf(p, n));
    }
    const bool bad = Rule::Put(1, s, scales);
    for (size_t i = 0; i < cols; i += kRowKept) {
      const size_t n = HWY_MIN(kRowKept, cols - i);
      if (cols > kRowKept) p = from.get(from.context, i, n, buffer);
      PutGroups<Code, false>(p, n, n, s, bad, codes + i);
    }
  }
  if (to.sums.data != nullptr) {
    *to.sums.Row<int32_t>(row) = SumOf<Code>(codes, cols);
  }
}

template <class Format>
HWY_NOINLINE void PutBlocks(const RowSource& from, const AnyRows& to,
                            size_t row) {
  using Block = typename Format::Block;
  constexpr size_t kGroup = sizeof(Block::qs);
  static_assert(kRowTile / kGroup <= kMaxGroups);
  Block* const out = reinterpret_cast<Block*>(RowAt(to, row));
  HWY_ALIGN float buffer[kRowTile];
  HWY_ALIGN uint8_t codes[kRowTile];
  Scales s;
  for (size_t i = 0; i < to.cols; i += kRowTile) {
    const size_t n = HWY_MIN(kRowTile, to.cols - i);
    const size_t groups = n / kGroup;
    const float* const p = from.get(from.context, i, n, buffer);
    LargestOfGroups(p, n, kGroup, s.largest);
    const bool bad = Format::SetAll(p, groups, s);
    PutGroups<typename Format::Code, true>(p, n, kGroup, s, bad, codes);
    for (size_t g = 0; g < groups; ++g) {
      std::memcpy(out[i / kGroup + g].qs, codes + g * kGroup, kGroup);
    }
    Format::Finish(groups, s, out + i / kGroup);
  }
}

}  // namespace

void PutRow(const RowSource& from, const AnyRows& to, size_t row,
            const StreamingStores* streaming) {
  const bool power = to.scales.type == Type::kE8M0;
  switch (to.type) {
#define SWITCHYARD_CASE(T, ...) \
  case kType<T>:                \
    return PutFloats<T>(from, to, row, streaming);
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    case Type::kI8:
      return PutCoded<CodeI8, RatioScales<CodeI8>>(from, to, row);
    case Type::kU8:
      return PutCoded<CodeU8, RatioScales<CodeU8>>(from, to, row);
#define SWITCHYARD_CASE(T, ...)                                              \
  case kType<T>:                                                             \
    return power ? PutCoded<CodeMx<FormatOf<T>>,                             \
                            PowerScales<CodeMx<FormatOf<T>>>>(from, to, row) \
                 : PutCoded<CodeF8<FormatOf<T>>,                             \
                            RatioScales<CodeF8<FormatOf<T>>>>(from, to, row);
      SWITCHYARD_FLOAT_CODES(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    case Type::kQ8_0:
      return PutBlocks<Q8_0>(from, to, row);
    case Type::kQ8_1:
      return PutBlocks<Q8_1>(from, to, row);
    case Type::kQ8_K:
      return PutBlocks<Q8_K>(from, to, row);
    default:
      return;
  }
}

void ZeroRow(const AnyRows& to, size_t row) {
  const int zero = to.type == Type::kU8 ? CodeU8::kZero : 0;
  std::memset(RowAt(to, row), zero, BytesOf(to.type, to.cols));
  for (const AnyMatrix* part : {&to.scales, &to.sums}) {
    if (part->data == nullptr) continue;
    std::memset(RowAt(*part, row), 0, BytesOf(part->type, part->cols));
  }
}

void CopyRow(const ConstAnyRows& from, size_t from_row, const AnyRows& to,
             size_t to_row) {
  std::memcpy(RowAt(to, to_row), RowAt(from, from_row),
              BytesOf(to.type, to.cols));
  if (to.scales.data != nullptr) {
    std::memcpy(RowAt(to.scales, to_row), RowAt(from.scales, from_row),
                BytesOf(to.scales.type, to.scales.cols));
  }
  if (to.sums.data != nullptr) {
    *to.sums.Row<int32_t>(to_row) = *from.sums.Row<int32_t>(from_row);
  }
}

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
