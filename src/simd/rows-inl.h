// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Converts rows of any type to floats, and floats to rows of any type. A kernel
// is compiled for its input types only. It gives floats, a tile at a time in
// the L1 cache, and rows.cc converts them to the output format. So the size of
// the code grows with the sum of kernels and formats, not with their product.

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

// Gives the floats of a row to write. get(context, begin, n, buffer) returns a
// pointer to columns [begin, begin + n) of the row, perhaps `buffer`; begin is
// a multiple of 256. The buffer has room for n floats and no alignment. It is
// the output row itself if that is f32 and not streamed.
struct RowSource {
  const float* (*get)(const void* context, size_t begin, size_t n,
                      float* buffer);
  const void* context;
};

// Stores that bypass the caches. x86 does not order them with other stores, so
// the destructor fences: without a fence, 27 % of calls on a pool that ends in
// a release store returned before their results were visible. Kernels stream
// only through an object of this class in a row function (tests/source_check
// looks for other streaming stores).
class StreamingStores {
 public:
  explicit StreamingStores(bool wanted) : wanted_(wanted) {}
  ~StreamingStores() {
    if (wanted_) hwy::FlushStream();
  }
  StreamingStores(const StreamingStores&) = delete;
  StreamingStores& operator=(const StreamingStores&) = delete;

  // True if the call streams. Otherwise the destructor does not fence.
  bool wanted() const { return wanted_; }
  // p is aligned to vectors.
  template <class V, class D, class T>
  HWY_INLINE void Store(V v, D d, T* p) const {
    hwy::HWY_NAMESPACE::Stream(v, d, p);
  }

 private:
  const bool wanted_;
};

// Writes row `row` of `to`, in any format. If streaming->wanted(), and if the
// format allows it, the stores bypass the caches.
void PutRow(const RowSource& from, const AnyRows& to, size_t row,
            const StreamingStores* streaming = nullptr);
// Writes a row of zeros: codes for 0, and scales and sums of 0.
void ZeroRow(const AnyRows& to, size_t row);
// Copies a row byte for byte. Both formats must be equal.
void CopyRow(const ConstAnyRows& from, size_t from_row, const AnyRows& to,
             size_t to_row);

// A RowSource of floats in memory, or of codes with f32 scales.
struct StoredRow {
  const ConstAnyRows& rows;
  size_t row;

  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer);
  RowSource Source() const { return {Get, this}; }
};

// RowToFloats() converts a row to floats, FloatsToRow() converts floats to
// columns [col, col + n) of a row, and ScalarAt() returns one element. The
// matrices are f32, bf16 or f16.
void RowToFloats(const ConstAnyMatrix& m, size_t row, float* to);
void FloatsToRow(const float* from, size_t n, const AnyMatrix& m, size_t row,
                 size_t col);
// RowToFloats() and FloatsToRow() for n rows; rows of floats are contiguous.
void RowsToFloats(const ConstAnyMatrix& m, size_t row, size_t n, float* to);
void FloatsToRows(const float* from, const AnyMatrix& m, size_t row, size_t n);
float ScalarAt(const ConstAnyMatrix& m, size_t row, size_t col);

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROWS_INL_H_
