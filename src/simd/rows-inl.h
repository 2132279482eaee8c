// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Rows of any type as floats, and floats into rows of any type: a kernel is
// compiled for what it reads and makes floats, a tile at a time that stays in
// the L1 cache; rows.cc makes of them whatever is to be written. So formats and
// kernels add up and do not multiply.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROWS_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROWS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROWS_INL_H_
#endif

#include <cstddef>

#include "switchyard/views.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

// A row that is to be written. get(context, begin, n, buffer) gives its columns
// [begin, begin + n) as floats: a pointer to where they lie, or `buffer`, which
// has room for n and no alignment: it is the row itself where that is f32 and
// may be cached. begin is a multiple of 256.
struct RowSource {
  const float* (*get)(const void* context, size_t begin, size_t n,
                      float* buffer);
  const void* context;
};

// Stores past the caches, which x86 orders with no other store: where a pool
// ends in a release store, 27 % of calls returned before they were visible. So
// there is no other way to them than an object of this class, a row function's
// own, whose end fences them (tests/source_check looks for others).
class StreamingStores {
 public:
  explicit StreamingStores(bool wanted) : wanted_(wanted) {}
  ~StreamingStores() {
    if (wanted_) hwy::FlushStream();
  }
  StreamingStores(const StreamingStores&) = delete;
  StreamingStores& operator=(const StreamingStores&) = delete;

  // Whether the call asks for any; without, nothing is fenced.
  bool wanted() const { return wanted_; }
  // p is aligned to vectors.
  template <class V, class D, class T>
  HWY_INLINE void Store(V v, D d, T* p) const {
    hwy::HWY_NAMESPACE::Stream(v, d, p);
  }

 private:
  const bool wanted_;
};

// Row `row` of `to`, of any format. It goes past the caches where that is
// wanted and possible.
void PutRow(const RowSource& from, const AnyRows& to, size_t row,
            const StreamingStores* streaming = nullptr);
// Codes for 0, scales and sums 0.
void ZeroRow(const AnyRows& to, size_t row);
// Between equal formats, byte for byte.
void CopyRow(const ConstAnyRows& from, size_t from_row, const AnyRows& to,
             size_t to_row);

// A row in memory, of floats or of codes with f32 scales, as a source.
struct StoredRow {
  const ConstAnyRows& rows;
  size_t row;

  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer);
  RowSource Source() const { return {Get, this}; }
};

// Matrices of f32, bf16 or f16: a row as floats, floats to a row's columns from
// `col` on, and one element.
void RowToFloats(const ConstAnyMatrix& m, size_t row, float* to);
void FloatsToRow(const float* from, size_t n, const AnyMatrix& m, size_t row,
                 size_t col);
// The same for n rows, which lie one behind the other as floats.
void RowsToFloats(const ConstAnyMatrix& m, size_t row, size_t n, float* to);
void FloatsToRows(const float* from, const AnyMatrix& m, size_t row, size_t n);
float ScalarAt(const ConstAnyMatrix& m, size_t row, size_t col);

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROWS_INL_H_
