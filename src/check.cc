// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/check.h"

#include <cstddef>
#include <cstdint>

namespace switchyard::internal {
namespace {

bool EndsInTheAddressSpace(const void* data, size_t bytes) {
  return reinterpret_cast<uintptr_t>(data) <= UINTPTR_MAX - bytes;
}

template <class M>
bool MatrixFits(const M& m) {
  if (m.rows == 0 || m.cols == 0) return true;
  size_t elements = 0;
  if (m.rows > 1 && __builtin_mul_overflow(m.rows - 1, m.stride, &elements)) {
    return false;
  }
  return !__builtin_add_overflow(elements, m.cols, &elements) &&
         elements <= MostElements(m) &&
         EndsInTheAddressSpace(m.data, Bytes(m, elements));
}

template <class M>
bool MatricesMayOverlap(const AnyMatrix& a, const M& b) {
  return !ApartFrom(a, b) && MayOverlap(Region(a), Region(b));
}

}  // namespace

bool Fits(const AnyMatrix& m) { return MatrixFits(m); }
bool Fits(const ConstAnyMatrix& m) { return MatrixFits(m); }
bool Fits(const void* data, size_t elements, size_t element_bytes) {
  return elements <= static_cast<size_t>(PTRDIFF_MAX) / element_bytes &&
         EndsInTheAddressSpace(data, elements * element_bytes);
}

Region::Region(const ConstAnyMatrix& m)
    : begin(reinterpret_cast<uintptr_t>(m.data)),
      rows(m.rows),
      row_bytes(Bytes(m, m.cols)),
      stride_bytes(m.rows <= 1 ? 0 : Bytes(m, m.stride)) {}

bool MayOverlap(Region a, Region b) {
  if (a.Empty() || b.Empty()) return false;
  if (a.rows == 1) a.stride_bytes = b.stride_bytes;
  if (b.rows == 1) b.stride_bytes = a.stride_bytes;
  if (a.End() <= b.begin || b.End() <= a.begin) return false;
  const size_t stride = a.stride_bytes;
  if (a.stride_bytes != b.stride_bytes || a.row_bytes > stride ||
      b.row_bytes > stride) {
    return true;
  }
  // Where b's columns start, counted from a's, modulo the stride.
  const size_t offset = b.begin >= a.begin
                            ? (b.begin - a.begin) % stride
                            : (stride - (a.begin - b.begin) % stride) % stride;
  return offset < a.row_bytes || offset + b.row_bytes > stride;
}

bool MayOverlap(const AnyMatrix& a, const AnyMatrix& b) {
  return MatricesMayOverlap(a, b);
}
bool MayOverlap(const AnyMatrix& a, const ConstAnyMatrix& b) {
  return MatricesMayOverlap(a, b);
}

}  // namespace switchyard::internal
