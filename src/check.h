// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Argument checks of the plain API: O(1), before anything is written, with a
// literal message "Function: argument: what is wrong".

#ifndef SWITCHYARD_SRC_CHECK_H_
#define SWITCHYARD_SRC_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/isa.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

// Use only inside functions that return Status.
#define SWITCHYARD_CHECK(condition, message)                                  \
  do {                                                                        \
    if (!(condition)) {                                                       \
      return ::switchyard::Status(::switchyard::StatusCode::kInvalidArgument, \
                                  (message));                                 \
    }                                                                         \
  } while (false)

// Not the ISA that was asked for: do nothing. 1 ns, a look at a static.
#define SWITCHYARD_CHECK_ISA()                                       \
  do {                                                               \
    const ::switchyard::Status isa = ::switchyard::EnvironmentIsa(); \
    if (!isa.ok()) return isa;                                       \
  } while (false)

// A view by itself: data, stride, size in bytes. `name` is how the caller of
// the public function knows it.
#define SWITCHYARD_CHECK_MATRIX(fn, name, m)                                \
  do {                                                                      \
    SWITCHYARD_CHECK((m).data != nullptr || (m).rows == 0 || (m).cols == 0, \
                     fn ": " name ": data is null");                        \
    SWITCHYARD_CHECK((m).rows <= 1 || (m).stride >= (m).cols,               \
                     fn ": " name ": stride is smaller than cols");         \
    SWITCHYARD_CHECK(::switchyard::internal::Fits(m),                       \
                     fn ": " name ": size overflows the address space");    \
  } while (false)

#define SWITCHYARD_CHECK_SPAN(fn, name, s)                               \
  do {                                                                   \
    SWITCHYARD_CHECK((s).data != nullptr || (s).size == 0,               \
                     fn ": " name ": data is null");                     \
    SWITCHYARD_CHECK(::switchyard::internal::Fits(s),                    \
                     fn ": " name ": size overflows the address space"); \
  } while (false)

namespace switchyard {
namespace internal {

// What a view occupies: `rows` pieces of `row_bytes`, `stride_bytes` apart.
struct Region {
  uintptr_t begin = 0;
  size_t rows = 0;
  size_t row_bytes = 0;
  size_t stride_bytes = 0;

  template <class T>
  explicit Region(const Matrix<T>& m)
      : begin(reinterpret_cast<uintptr_t>(m.data)),
        rows(m.rows),
        row_bytes(m.cols * sizeof(T)),
        stride_bytes(m.stride * sizeof(T)) {}
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

// The last byte's offset fits ptrdiff_t and the address does not wrap.
template <class T>
bool Fits(const Matrix<T>& m) {
  constexpr size_t kMax = PTRDIFF_MAX / sizeof(T);
  if (m.rows == 0 || m.cols == 0) return true;
  if (m.cols > kMax) return false;
  size_t elements = 0;  // no division: it would take as long as all the rest
  if (m.rows > 1 && (__builtin_mul_overflow(m.rows - 1, m.stride, &elements) ||
                     elements > kMax - m.cols)) {
    return false;
  }
  elements += m.cols;
  return reinterpret_cast<uintptr_t>(m.data) <=
         UINTPTR_MAX - elements * sizeof(T);
}
template <class T>
bool Fits(const Span<T>& s) {
  return Fits(Matrix<T>(s.data, 1, s.size));
}

// Whether two views may share a byte. Views of equal stride (a single row
// takes the other's) are disjoint if their columns modulo the stride are, as
// in a fused gate|up matrix; others are judged by byte interval.
inline bool MayOverlap(Region a, Region b) {
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
template <class A, class B>
bool MayOverlap(const A& a, const B& b) {
  return MayOverlap(Region(a), Region(b));
}

template <class View, class... Others>
bool MayOverlapAny(const View& view, const Others&... others) {
  return (MayOverlap(view, others) || ...);
}

// From a view's first byte to behind its last. Views apart by that need no
// closer look, which for all pairs of a call takes as long as a small kernel.
struct Interval {
  template <class T>
  explicit Interval(const Span<T>& s)
      : begin(reinterpret_cast<uintptr_t>(s.data)),
        end(begin + s.size * sizeof(T)) {}
  template <class T>
  explicit Interval(const Matrix<T>& m)
      : begin(reinterpret_cast<uintptr_t>(m.data)),
        end(m.rows == 0
                ? begin
                : begin + ((m.rows - 1) * m.stride + m.cols) * sizeof(T)) {}
  bool ApartFrom(const Interval& other) const {
    return end <= other.begin || other.end <= begin;
  }
  uintptr_t begin;
  uintptr_t end;
};

// Whether `view` is apart from each of the others, by interval.
template <class View, class... Others>
bool ApartFrom(const View& view, const Others&... others) {
  const Interval interval(view);
  return (interval.ApartFrom(Interval(others)) && ...);
}

// The same elements: what "in place" means.
template <class T, class U>
bool SameView(const Matrix<T>& a, const Matrix<U>& b) {
  return static_cast<const void*>(a.data) == static_cast<const void*>(b.data) &&
         a.rows == b.rows && a.cols == b.cols &&
         (a.rows <= 1 || a.stride == b.stride);
}

}  // namespace internal
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_CHECK_H_
