// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The storage of vectors, with access to elements by name, index and swizzle.
// Sizes and alignments are Metal's: a vector of three elements has the size
// and alignment of a vector of four.

#ifndef SWITCHYARD_METAL_ELEMENTS_H_
#define SWITCHYARD_METAL_ELEMENTS_H_

#include "switchyard_half.h"

#ifndef __METAL__
#pragma GCC system_header
#endif

#ifdef __METAL__
// The type to which the compiler converts a list in braces. Shaders cannot
// include <initializer_list>.
namespace std {
template <class E>
class initializer_list {
 public:
  constexpr initializer_list() = default;
  constexpr const E* begin() const { return begin_; }
  constexpr const E* end() const { return begin_ + size_; }
  constexpr size_t size() const { return size_; }

 private:
  const E* begin_ = nullptr;
  size_t size_ = 0;
};
}  // namespace std
#endif

namespace metal {
template <class T, int N>
struct vec;
}  // namespace metal

namespace switchyard_metal {

using metal::vec;

// A swizzle: several elements of a vector, which behave like a vector V. V is
// a parameter so that the compiler finds V's operators.
template <class V, int S, int A, int B, int C = -1, int D = -1>
class Swizzle;
// A packed vector: elements without gaps, aligned like one element.
template <class V>
struct Packed;

// Describes the argument type A of a function. V is the vector or scalar type
// that A stands for, T the type of its elements, and kSize their number.
template <class A>
struct Shape {
  using V = A;
  using T = A;
  static constexpr int kSize = kIsScalar<A> ? 1 : 0;
  static constexpr bool kIsVector = false;
};
template <class E, int N>
struct Shape<vec<E, N>> {
  using V = vec<E, N>;
  using T = E;
  static constexpr int kSize = N;
  static constexpr bool kIsVector = true;
};
template <class V, int S, int A, int B, int C, int D>
struct Shape<Swizzle<V, S, A, B, C, D>> : Shape<V> {};
template <class V>
struct Shape<Packed<V>> : Shape<V> {};
template <class A>
struct Shape<const A> : Shape<A> {};
template <class A>
struct Shape<volatile A> : Shape<A> {};
template <class A>
struct Shape<A&> : Shape<A> {};

template <class A>
using Plain = typename Shape<A>::V;
template <class A>
using ElementOf = typename Shape<A>::T;
template <class A>
constexpr bool kIsVector = Shape<A>::kIsVector;
template <class A, class R = Plain<A>>
using IfVector = typename EnableIf<kIsVector<A>, R>::Type;
template <class A, class R = Plain<A>>
using IfAny = typename EnableIf<Shape<A>::kSize != 0, R>::Type;

template <class V, int S, int A, int B, int C, int D>
class Swizzle {
 public:
  using T = ElementOf<V>;
  static constexpr int kSize = C < 0 ? 2 : D < 0 ? 3 : 4;

  constexpr operator V() const {
    if constexpr (kSize == 2) {
      return V(e_[A], e_[B]);
    } else if constexpr (kSize == 3) {
      return V(e_[A], e_[B], e_[C]);
    } else {
      return V(e_[A], e_[B], e_[C], e_[D]);
    }
  }
  constexpr Swizzle& operator=(const V& v) {
    static_assert(
        A != B && A != C && B != C && A != D && B != D && (C != D || C < 0),
        "an element can't be assigned twice");
    const T x = v[0], y = v[1];
    if constexpr (kSize > 2) {
      const T z = v[2];
      if constexpr (kSize > 3) e_[D] = v[3];
      e_[C] = z;
    }
    e_[A] = x;
    e_[B] = y;
    return *this;
  }
  constexpr Swizzle& operator=(const Swizzle& other) {
    return *this = static_cast<V>(other);
  }
  Swizzle() = default;
  Swizzle(const Swizzle&) = default;
  constexpr T operator[](int i) const {
    constexpr int kAt[] = {A, B, C, D};
    return e_[kAt[i]];
  }

 private:
  T e_[S];
};

// An unsigned integer of kBytes bytes.
template <int kBytes>
struct BitsOf;
template <>
struct BitsOf<1> : EnableIf<true, uchar> {};
template <>
struct BitsOf<2> : EnableIf<true, ushort> {};
template <>
struct BitsOf<4> : EnableIf<true, uint> {};
template <>
struct BitsOf<8> : EnableIf<true, ulong> {};

// A type with the size of a vector, which the compiler copies with one
// instruction.
#ifdef __METAL__
template <class U, int N>
using Raw __attribute__((may_alias)) = U __attribute__((ext_vector_type(N)));
#endif

// A member of this type aligns the struct or union that contains it. Vectors
// themselves declare no alignment, so that -fmax-type-align holds for them: a
// shader may cast a pointer that is only aligned for elements to a pointer to
// vectors, because GPUs can read and write vectors at such addresses.
template <int kBytes>
struct alignas(kBytes) Aligned {
  unsigned char bytes[kBytes];
};

// The storage of a vector of any size. The specialisations for 2, 3 and 4
// elements add names and swizzles.
template <class T, int N>
struct Elements {
  static constexpr int kStored = N;
  T e[N];
  constexpr T& At(int i) { return e[i]; }
  constexpr const T& At(int i) const { return e[i]; }
};

// The members that all specialisations below have. Constant expressions use
// the named elements, because these are the active members of the union.
#define SWITCHYARD_ELEMENTS(name)                             \
  Elements() = default;                                       \
  Elements(const Elements&) = default;                        \
  constexpr T& At(int i) {                                    \
    return __builtin_is_constant_evaluated() ? (name) : e[i]; \
  }                                                           \
  constexpr const T& At(int i) const {                        \
    return __builtin_is_constant_evaluated() ? (name) : e[i]; \
  }

template <class T>
struct Elements<T, 2> {
  static constexpr int kStored = 2;
  union {
    Aligned<2 * sizeof(T)> aligned;
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    T e[2];
#define SWITCHYARD_N 2
#include "switchyard_swizzles.h"
#undef SWITCHYARD_N
  };
  SWITCHYARD_ELEMENTS(i == 0 ? x : y)
  constexpr Elements(T a, T b) : x(a), y(b) {}
};

template <class T>
struct Elements<T, 3> {
  static constexpr int kStored = 4;
  union {
    Aligned<4 * sizeof(T)> aligned;
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    T e[3];
#define SWITCHYARD_N 3
#include "switchyard_swizzles.h"
#undef SWITCHYARD_N
  };
  SWITCHYARD_ELEMENTS(i == 0 ? x : i == 1 ? y : z)
  constexpr Elements(T a, T b, T c) : x(a), y(b), z(c) {}
};

template <class T>
struct Elements<T, 4> {
  static constexpr int kStored = 4;
  union {
    Aligned<4 * sizeof(T)> aligned;
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    T e[4];
#define SWITCHYARD_N 4
#include "switchyard_swizzles.h"
#undef SWITCHYARD_N
  };
  SWITCHYARD_ELEMENTS(i == 0 ? x : i == 1 ? y : i == 2 ? z : w)
  constexpr Elements(T x0, T x1, T x2, T x3) : x(x0), y(x1), z(x2), w(x3) {}
};
#undef SWITCHYARD_ELEMENTS

}  // namespace switchyard_metal

#endif  // SWITCHYARD_METAL_ELEMENTS_H_
