// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defines packed vectors, and matrices that consist of vectors.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_MATRIX_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_MATRIX_H_

#include "switchyard_vec.h"

namespace switchyard_metal {

template <class T, int N>
struct PackedElements;
template <class T>
struct PackedElements<T, 2> {
  union {
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    T e[2];
  };
};
template <class T>
struct PackedElements<T, 3> {
  union {
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    T e[3];
  };
};
template <class T>
struct PackedElements<T, 4> {
  union {
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    T e[4];
  };
};

template <class V>
struct Packed : PackedElements<ElementOf<V>, Shape<V>::kSize> {
  using T = ElementOf<V>;
  static constexpr int kSize = Shape<V>::kSize;

  Packed() = default;
  Packed(const V& v) {
    for (int i = 0; i < kSize; ++i) this->e[i] = v[i];
  }
  template <class U, class = IfScalar<U>>
  Packed(U s) : Packed(V(s)) {}
  template <class U, class = IfVector<U>, class = void>
  explicit Packed(const U& u) : Packed(static_cast<V>(u)) {}
  template <class A, class B, class... C>
  Packed(const A& a, const B& b, const C&... c) : Packed(V(a, b, c...)) {}
  operator V() const {
    if constexpr (kSize == 2) {
      return V(this->e[0], this->e[1]);
    } else if constexpr (kSize == 3) {
      return V(this->e[0], this->e[1], this->e[2]);
    } else {
      return V(this->e[0], this->e[1], this->e[2], this->e[3]);
    }
  }
  T& operator[](long i) { return this->e[i]; }
  const T& operator[](long i) const { return this->e[i]; }

#define SWITCHYARD_PACKED_OPERATOR(op)                   \
  friend Packed& operator op##=(Packed& a, const V& b) { \
    return a = static_cast<V>(a) op b;                   \
  }
  SWITCHYARD_PACKED_OPERATOR(+)
  SWITCHYARD_PACKED_OPERATOR(-)
  SWITCHYARD_PACKED_OPERATOR(*)
  SWITCHYARD_PACKED_OPERATOR(/)
#undef SWITCHYARD_PACKED_OPERATOR
};

}  // namespace switchyard_metal

namespace metal {

template <class T, int N>
using packed_vec = switchyard_metal::Packed<vec<T, N>>;

// A matrix of kColumns vectors, each of kRows elements.
template <class T, int kColumns, int kRows>
struct matrix {
  using Column = vec<T, kRows>;
  Column columns[kColumns];

  matrix() = default;
  explicit constexpr matrix(T diagonal) : columns{} {
    for (int i = 0; i < kColumns; ++i) {
      columns[i] = Column(T(0));
      if (i < kRows) columns[i][i] = diagonal;
    }
  }
  // The arguments are the columns, or all elements column by column.
  template <class A, class B, class... C>
  constexpr matrix(const A& a, const B& b, const C&... c) : columns{} {
    if constexpr (switchyard_metal::kIsVector<A>) {
      static_assert(2 + sizeof...(C) == kColumns, "a column each");
      const Column all[] = {a, b, c...};
      for (int i = 0; i < kColumns; ++i) columns[i] = all[i];
    } else {
      static_assert(2 + sizeof...(C) == kColumns * kRows, "all elements");
      const T all[] = {static_cast<T>(a), static_cast<T>(b),
                       static_cast<T>(c)...};
      for (int i = 0; i < kColumns; ++i) {
        columns[i] = Column(T(0));
        for (int j = 0; j < kRows; ++j) columns[i][j] = all[i * kRows + j];
      }
    }
  }
  template <class U>
  explicit constexpr matrix(const matrix<U, kColumns, kRows>& m) : columns{} {
    for (int i = 0; i < kColumns; ++i) columns[i] = Column(m[i]);
  }

  constexpr Column& operator[](long i) { return columns[i]; }
  constexpr const Column& operator[](long i) const { return columns[i]; }

#define SWITCHYARD_MATRIX_OPERATOR(op, B, operand)            \
  friend constexpr matrix operator op(const matrix& a, B b) { \
    matrix r(a);                                              \
    for (int i = 0; i < kColumns; ++i) r[i] op## = operand;   \
    return r;                                                 \
  }                                                           \
  friend constexpr matrix& operator op##=(matrix& a, B b) { return a = a op b; }
  SWITCHYARD_MATRIX_OPERATOR(+, const matrix&, b[i])
  SWITCHYARD_MATRIX_OPERATOR(-, const matrix&, b[i])
  SWITCHYARD_MATRIX_OPERATOR(*, T, b)
  SWITCHYARD_MATRIX_OPERATOR(/, T, b)
#undef SWITCHYARD_MATRIX_OPERATOR
  friend constexpr matrix operator-(const matrix& a) {
    matrix r(a);
    for (int i = 0; i < kColumns; ++i) r[i] = -a[i];
    return r;
  }
  friend constexpr matrix operator*(T a, const matrix& b) { return b * a; }
  friend constexpr Column operator*(const matrix& a,
                                    const vec<T, kColumns>& b) {
    Column r = a[0] * b[0];
    for (int i = 1; i < kColumns; ++i) r += a[i] * b[i];
    return r;
  }
  friend constexpr vec<T, kColumns> operator*(const Column& a,
                                              const matrix& b) {
    vec<T, kColumns> r(T(0));
    for (int i = 0; i < kColumns; ++i) {
      T sum = a[0] * b[i][0];
      for (int j = 1; j < kRows; ++j) {
        sum = static_cast<T>(sum + static_cast<T>(a[j] * b[i][j]));
      }
      r[i] = sum;
    }
    return r;
  }
  friend constexpr bool operator==(const matrix& a, const matrix& b) {
    for (int i = 0; i < kColumns; ++i) {
      for (int j = 0; j < kRows; ++j) {
        if (a[i][j] != b[i][j]) return false;
      }
    }
    return true;
  }
  friend constexpr bool operator!=(const matrix& a, const matrix& b) {
    return !(a == b);
  }
};

template <class T, int kColumns, int kInner, int kRows>
constexpr matrix<T, kColumns, kRows> operator*(
    const matrix<T, kInner, kRows>& a, const matrix<T, kColumns, kInner>& b) {
  matrix<T, kColumns, kRows> r(T(0));
  for (int i = 0; i < kColumns; ++i) r[i] = a * b[i];
  return r;
}
template <class T, int N>
constexpr matrix<T, N, N>& operator*=(matrix<T, N, N>& a,
                                      const matrix<T, N, N>& b) {
  return a = a * b;
}

}  // namespace metal

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_MATRIX_H_
