// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/gather.h"

#include <cstring>

#include "src/base/row_format.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/gather.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

constexpr size_t kNone = SIZE_MAX;

// Returns the token of pair token * top_k + slot, or kNone if it is invalid.
HWY_INLINE size_t TokenOf(const GatherInputs& in, int32_t pair) {
  if (pair < 0) return kNone;
  const size_t token = static_cast<size_t>(pair) / in.topk_ids.cols;
  return token < in.tokens.rows ? token : kNone;
}

// Prefetches the first lines of a row while the previous row is copied. This
// gains 10 to 25 % if tokens are not in the L2 cache, because the hardware
// prefetches only after a row's first lines.
HWY_INLINE void PrefetchRow(const ConstAnyMatrix& rows, size_t row) {
  const auto* const p = RowAt(rows, row);
  const size_t bytes = BytesOf(rows.type, rows.cols);
  for (size_t i = 0; i < HWY_MIN(bytes, 1024); i += 64) {
    __builtin_prefetch(p + i);
  }
}

// Writes rows [begin, end) of `to`. row_of(r) is the row of `from` for row r,
// or kNone if row r is zeros. Memory bounds the time. If nothing is converted,
// memcpy is as fast as any loop of vectors, and it keeps NaN payloads.
template <class RowOf>
HWY_INLINE void MoveRows(const ConstAnyRows& from, const AnyRows& to, bool copy,
                         size_t begin, size_t end, const RowOf& row_of) {
  size_t next = begin < end ? row_of(begin) : kNone;
  for (size_t r = begin; r < end; ++r) {
    const size_t row = next;
    next = r + 1 < end ? row_of(r + 1) : kNone;
    // Does not prefetch a row that is copied again: without a prefetch, such
    // rows take 0.98 times as long.
    if (next != kNone && next != row) PrefetchRow(from, next);
    if (row == kNone) {
      ZeroRow(to, r);
    } else if (copy) {
      CopyRow(from, row, to, r);
    } else {
      PutRow(StoredRow{from, row}.Source(), to, r);
    }
  }
}

void Gather(const GatherArgs& args, size_t begin, size_t end) {
  const GatherInputs& in = args.inputs;
  size_t invalid = 0;
  MoveRows(in.tokens, args.rows, args.copy, begin, end, [&](size_t r) {
    const size_t token = TokenOf(in, in.pairs.data[r]);
    invalid += token == kNone;
    return token;
  });
  if (invalid != 0) {
    args.invalid->fetch_add(invalid, std::memory_order_relaxed);
  }
}

// Returns a token's first row on which row_index and pairs agree, or kNone.
HWY_INLINE size_t FirstRow(const GatherInputs& in, size_t token) {
  const int32_t* const index = in.row_index.Row<int32_t>(token);
  const size_t top_k = in.topk_ids.cols;
  for (size_t slot = 0; slot < top_k; ++slot) {
    const size_t r = static_cast<size_t>(index[slot]);
    if (index[slot] < 0 || r >= in.pairs.size) continue;
    if (static_cast<size_t>(in.pairs.data[r]) == token * top_k + slot) return r;
  }
  return kNone;
}

// Step one of two: converts each token to its first row.
void GatherFirst(const GatherArgs& args, size_t begin, size_t end) {
  const GatherInputs& in = args.inputs;
  for (size_t token = begin; token < end; ++token) {
    const size_t r = FirstRow(in, token);
    if (r != kNone) PutRow(StoredRow{in.tokens, token}.Source(), args.rows, r);
  }
}

// Step two of two: copies each token's first row to its other rows, in the
// order of the rows. (Copying a row to all others at once, while it is in L1,
// takes 1.2 times as long: the hardware does not follow stores that jump.)
void GatherOther(const GatherArgs& args, size_t begin, size_t end) {
  const GatherInputs& in = args.inputs;
  for (size_t r = begin; r < end; ++r) {
    const size_t token = TokenOf(in, in.pairs.data[r]);
    const size_t first = token == kNone ? kNone : FirstRow(in, token);
    if (first == kNone) {
      Gather(args, r, r + 1);
    } else if (first != r) {
      CopyRow(args.rows, first, args.rows, r);
    }
  }
}

void Scatter(const ScatterArgs& args, size_t begin, size_t end) {
  const ConstAnyMatrix& index = args.inputs.row_index;
  const size_t num_rows = args.inputs.packed.rows;
  size_t skipped = 0;
  MoveRows(args.inputs.packed, args.rows, args.copy, begin, end, [&](size_t r) {
    const int32_t row = index.Row<int32_t>(r / index.cols)[r % index.cols];
    if (row >= 0 && static_cast<size_t>(row) < num_rows) {
      return static_cast<size_t>(row);
    }
    skipped += row != -1;
    return kNone;
  });
  if (skipped != 0) {
    args.skipped->fetch_add(skipped, std::memory_order_relaxed);
  }
}

SWITCHYARD_ROW_FUNCTION(Gather, GatherArgs);
SWITCHYARD_ROW_FUNCTION(GatherFirst, GatherArgs);
SWITCHYARD_ROW_FUNCTION(GatherOther, GatherArgs);
SWITCHYARD_ROW_FUNCTION(Scatter, ScatterArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(GatherRows, Gather, GatherArgs);
SWITCHYARD_EXPORT(GatherTokens, GatherFirst, GatherArgs);
SWITCHYARD_EXPORT(GatherOthers, GatherOther, GatherArgs);
SWITCHYARD_EXPORT(ScatterRows, Scatter, ScatterArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
