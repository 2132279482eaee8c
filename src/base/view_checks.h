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

// True if the last byte's offset fits in ptrdiff_t and the address does not
// wrap. Checks for unusual views, such as this one, are in check.cc, because
// inlining them into each front end took 50 KB of the archive.
bool Fits(const ConstAnyMatrix& m);

// The bytes of a view, from its first to one past its last.
struct Interval {
  uintptr_t begin;
  uintptr_t end;

  template <class M>
  explicit Interval(const M& m)
      : begin(reinterpret_cast<uintptr_t>(m.data)), end(begin) {
    if (m.rows != 0) {
      end +=
          BytesOf(m.type, m.cols + (m.rows == 1 ? 0 : (m.rows - 1) * m.stride));
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
bool RowsMayOverlap(const ConstAnyMatrix& a, const ConstAnyMatrix& b);

// True if two views may share a byte.
inline bool MayOverlap(const ConstAnyMatrix& a, const ConstAnyMatrix& b) {
  const Interval x(a), y(b);
  return x.end > y.begin && y.end > x.begin && RowsMayOverlap(a, b);
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
