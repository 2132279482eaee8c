// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Predicates about views, for the checks: whether a view is given, is valid by
// itself, or overlaps another view.

#ifndef SWITCHYARD_SRC_BASE_VIEW_CHECKS_H_
#define SWITCHYARD_SRC_BASE_VIEW_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/row_format.h"
#include "src/base/type_list.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard::internal {

// Returns the size in bytes of `elements` elements of a view.
template <class T>
constexpr size_t Bytes(const Matrix<T>&, size_t elements) {
  return elements * sizeof(T);
}
template <class V>
constexpr size_t Bytes(const BasicAnyMatrix<V>& m, size_t elements) {
  return BytesOf(m.type, elements);
}
// Returns the most elements that fit in PTRDIFF_MAX bytes.
template <class T>
constexpr size_t MostElements(const Matrix<T>&) {
  return static_cast<size_t>(PTRDIFF_MAX) / sizeof(T);
}
template <class V>
constexpr size_t MostElements(const BasicAnyMatrix<V>& m) {
  const size_t size = SizeOf(m.type);
  return size == 0
             ? 0
             : (static_cast<size_t>(PTRDIFF_MAX) / size) << BlockBits(m.type);
}

// True if 0 <= x <= most. Compares bits, because comparing a NaN would trap if
// the caller has unmasked floating-point exceptions.
inline bool IsUpTo(float most, float x) {
  uint32_t bits, most_bits;
  std::memcpy(&bits, &x, sizeof(x));
  std::memcpy(&most_bits, &most, sizeof(most));
  return bits <= most_bits || bits == 0x80000000;  // -0
}

inline bool SameBits(float a, float b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// True if the caller passed an optional argument. A view of an empty vector
// does not count as passed.
template <class M>
bool Given(const M& m) {
  return m.data != nullptr || m.cols != 0 || m.rows > 1;
}
template <class T>
bool Given(const Span<T>& s) {
  return s.data != nullptr || s.size != 0;
}

// The fast path, which recognises ordinary views by testing a few bits. An
// ordinary view is not null, has fewer than 2^30 rows and a stride below 2^30
// (so fewer than 2^63 bytes), and is in the lower half of the address space.
// The exact checks take six times as long: for all views of a call, as long as
// a small kernel.
static_assert(sizeof(size_t) == 8, "IsPlain counts on 64 bits");
template <class M>
bool IsPlain(const M& m) {
  return m.data != nullptr && m.stride >= m.cols &&
         ((m.rows | m.stride) >> 30 |
          reinterpret_cast<uintptr_t>(m.data) >> 63) == 0;
}
template <class T>
bool IsPlain(const Span<T>& s) {
  return s.data != nullptr &&
         (s.size >> 30 | reinterpret_cast<uintptr_t>(s.data) >> 63) == 0;
}

template <class M>
bool IsNull(const M& m) {
  return m.data == nullptr && m.rows != 0 && m.cols != 0;
}
template <class T>
bool IsNull(const Span<T>& s) {
  return s.data == nullptr && s.size != 0;
}

template <class M>
bool RowsOverlap(const M& m) {
  return m.rows > 1 && m.stride < m.cols;
}
template <class T>
bool RowsOverlap(const Span<T>&) {
  return false;
}

// True if the last byte's offset fits in ptrdiff_t and the address does not
// wrap. Checks for unusual views, such as this one, are in check.cc, because
// inlining them into each front end took 50 KB of the archive.
bool Fits(const AnyMatrix& m);
bool Fits(const ConstAnyMatrix& m);
bool Fits(const void* data, size_t elements, size_t element_bytes);
template <class T>
bool Fits(const Span<T>& s) {
  return Fits(s.data, s.size, sizeof(T));
}

// The memory of a view: `rows` pieces of `row_bytes`, `stride_bytes` apart.
struct Region {
  uintptr_t begin = 0;
  size_t rows = 0;
  size_t row_bytes = 0;
  size_t stride_bytes = 0;  // 0 for a single row, whatever the view's stride

  explicit Region(const ConstAnyMatrix& m);
  template <class T>
  explicit Region(const Span<T>& s)
      : begin(reinterpret_cast<uintptr_t>(s.data)),
        rows(1),
        row_bytes(s.size * sizeof(T)) {}

  bool Empty() const { return rows == 0 || row_bytes == 0; }
  uintptr_t End() const {
    return begin + (rows - 1) * stride_bytes + row_bytes;
  }
};

// The bytes of a view, from its first to one past its last.
struct Interval {
  uintptr_t begin;
  uintptr_t end;

  template <class M>
  explicit Interval(const M& m)
      : begin(reinterpret_cast<uintptr_t>(m.data)), end(begin) {
    if (m.rows != 0) {
      end += Bytes(m, m.cols + (m.rows == 1 ? 0 : (m.rows - 1) * m.stride));
    }
  }
  template <class T>
  explicit Interval(const Span<T>& s)
      : begin(reinterpret_cast<uintptr_t>(s.data)),
        end(begin + s.size * sizeof(T)) {}
};

// True if two views with overlapping intervals may share a byte. Views of
// equal stride share no byte if their columns, modulo the stride, are
// disjoint, as in a fused gate|up matrix. (A single row takes the other
// view's stride.) All other views are assumed to overlap.
bool MayOverlap(Region a, Region b);

// True if the interval of `view` is disjoint from the intervals of all other
// views. This is almost always true, and the call then needs no MayOverlap(),
// which would take as long as a small kernel for all pairs of a call's views.
template <class View, class... Others>
[[gnu::always_inline]] inline bool ApartFrom(const View& view,
                                             const Others&... others) {
  const Interval x(view);
  const auto apart = [x](const Interval& y) {
    return (x.end <= y.begin) | (y.end <= x.begin);
  };
  return (apart(Interval(others)) & ...);
}

// True if two views may share a byte. Compares intervals, then columns.
bool MayOverlap(const AnyMatrix& a, const AnyMatrix& b);
bool MayOverlap(const AnyMatrix& a, const ConstAnyMatrix& b);
template <class T>
bool MayOverlap(const AnyMatrix& a, const Span<T>& b) {
  return !ApartFrom(a, b) && MayOverlap(Region(a), Region(b));
}
template <class T, class M>
bool MayOverlap(const Span<T>& a, const M& b) {
  return !ApartFrom(a, b) && MayOverlap(Region(a), Region(b));
}

// True if both views have the same elements, as "in place" requires.
template <class V, class W>
bool SameView(const BasicAnyMatrix<V>& a, const BasicAnyMatrix<W>& b) {
  return static_cast<const void*>(a.data) == static_cast<const void*>(b.data) &&
         a.type == b.type && a.rows == b.rows && a.cols == b.cols &&
         (a.rows <= 1 || a.stride == b.stride);
}

template <class V>
bool HasParts(const BasicAnyRows<V>& rows) {
  return Given(rows.scales) || Given(rows.sums);
}

template <class V>
bool InWholeBlocks(const BasicAnyRows<V>& rows) {
  const size_t block = BlockOf(rows.type);
  return rows.cols % block == 0 && (rows.rows <= 1 || rows.stride % block == 0);
}

template <class V>
bool ScalesFit(const BasicAnyRows<V>& rows) {
  if (rows.cols == 0) return true;
  const size_t group = GroupOf(rows.cols, rows.scales.cols);
  // E8m0 scales are for groups of 32 columns. A row of fewer columns has a
  // single scale, for which GroupOf() returns the number of columns instead
  // of 32.
  return rows.scales.type == Type::kE8M0
             ? rows.scales.cols == (rows.cols + 31) / 32
             : group != 0;
}

// True if rows can be copied byte for byte.
inline bool SameFormat(const ConstAnyRows& from, const AnyRows& to) {
  return from.type == to.type &&
         (!IsCode(to.type) || (from.scales.type == to.scales.type &&
                               from.scales.cols == to.scales.cols)) &&
         (!Given(to.sums) || Given(from.sums));
}

// True if rows can be read as floats.
inline bool IsReadable(const ConstAnyRows& rows) {
  return IsFloat(rows.type) ||
         (IsCode(rows.type) && rows.scales.type == Type::kF32);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_VIEW_CHECKS_H_
