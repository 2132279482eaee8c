// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// vec<T, N>, with its constructors and operators.

#ifndef SWITCHYARD_METAL_VEC_H_
#define SWITCHYARD_METAL_VEC_H_

#include "switchyard_elements.h"

#ifndef __METAL__
#pragma GCC system_header
#endif

namespace switchyard_metal {

// Writes the elements of a constructor's arguments one after the other.
template <class T>
struct Filler {
  T* at;
  template <class A>
  constexpr void operator()(const A& a) {
    if constexpr (kIsVector<A>) {
      const Plain<A>& v = a;
      for (int i = 0; i < Shape<A>::kSize; ++i) *at++ = static_cast<T>(v[i]);
    } else {
      *at++ = static_cast<T>(a);
    }
  }
};

// Returns the divisor to use. In C++, two divisions of integers would end the
// process with SIGFPE: x / 0, and the smallest integer / -1. In these cases
// this function returns 1. In .metal files it returns `divisor`, because the
// library changes all integer divisions of a compiled shader in this way, and
// checked mode reports them.
template <class T>
constexpr T Divisor(T dividend, T divisor) {
#ifdef __METAL__
  static_cast<void>(dividend);
#else
  if constexpr (kIsIntegral<T>) {
    constexpr T kLeast = static_cast<T>(1ull << (8 * sizeof(T) - 1));
    const bool overflows =
        T(-1) < T(0) && dividend == kLeast && divisor == static_cast<T>(-1);
    if (divisor == T(0) || overflows) return T(1);
  }
#endif
  return divisor;
}

}  // namespace switchyard_metal

namespace metal {

template <class T, int N>
struct vec : switchyard_metal::Elements<T, N> {
 private:
  using Base = switchyard_metal::Elements<T, N>;
  using Base::At;
#ifdef __METAL__
  using Copied =
      switchyard_metal::Raw<typename switchyard_metal::BitsOf<sizeof(T)>::Type,
                            Base::kStored>;
#endif
  template <class U>
  static constexpr int kSizeOf = switchyard_metal::Shape<U>::kSize;

 public:
  using element_type = T;

  vec() = default;
  vec(const vec&) = default;
  template <class U, class = switchyard_metal::IfScalar<U>>
  constexpr vec(U s) : vec(static_cast<T>(s), Same()) {}
  template <class U, class = switchyard_metal::IfVector<U>, class = void>
  explicit constexpr vec(const U& u)
      : vec(static_cast<const switchyard_metal::Plain<U>&>(u), Each()) {
    static_assert(kSizeOf<U> == N, "a vector of another size");
  }
  template <class A, class B, class... C,
            class = typename switchyard_metal::EnableIf<
                kSizeOf<A> + kSizeOf<B> + (0 + ... + kSizeOf<C>) == N>::Type>
  constexpr vec(const A& a, const B& b, const C&... c) : vec(T(), Same()) {
    T all[N] = {};
    switchyard_metal::Filler<T> fill{all};
    fill(a);
    fill(b);
    (fill(c), ...);
    for (int i = 0; i < N; ++i) At(i) = all[i];
  }
  // Takes the elements from a list in braces. Missing elements are 0.
  constexpr vec(std::initializer_list<T> list) : vec(T(), Same()) {
    int i = 0;
    for (const T& element : list) {
      if (i < N) At(i++) = element;
    }
  }
  constexpr vec& operator=(const vec& other) {
#ifdef __METAL__
    if (!__builtin_is_constant_evaluated() && ((N & (N - 1)) == 0 || N == 3)) {
      *reinterpret_cast<Copied*>(this) =
          *reinterpret_cast<const Copied*>(&other);
      return *this;
    }
#endif
    for (int i = 0; i < N; ++i) At(i) = other.At(i);
    return *this;
  }

  constexpr T& operator[](long i) { return At(static_cast<int>(i)); }
  constexpr const T& operator[](long i) const {
    return At(static_cast<int>(i));
  }

#define SWITCHYARD_EACH(R, expression)            \
  R r(a);                                         \
  _Pragma("unroll") for (int i = 0; i < N; ++i) { \
    r.At(i) = static_cast<T>(expression);         \
  }                                               \
  return r

#define SWITCHYARD_VEC_OPERATOR(op)                              \
  friend constexpr vec operator op(const vec& a, const vec& b) { \
    SWITCHYARD_EACH(vec, a.At(i) op b.At(i));                    \
  }                                                              \
  friend constexpr vec& operator op##=(vec& a, const vec& b) {   \
    return a = a op b;                                           \
  }
  SWITCHYARD_VEC_OPERATOR(+)
  SWITCHYARD_VEC_OPERATOR(-)
  SWITCHYARD_VEC_OPERATOR(*)
  SWITCHYARD_VEC_OPERATOR(&)
  SWITCHYARD_VEC_OPERATOR(|)
  SWITCHYARD_VEC_OPERATOR(^)
#undef SWITCHYARD_VEC_OPERATOR
#define SWITCHYARD_VEC_DIVISION(op)                                      \
  friend constexpr vec operator op(const vec& a, const vec& b) {         \
    SWITCHYARD_EACH(                                                     \
        vec, a.At(i) op switchyard_metal::Divisor<T>(a.At(i), b.At(i))); \
  }                                                                      \
  friend constexpr vec& operator op##=(vec& a, const vec& b) {           \
    return a = a op b;                                                   \
  }
  SWITCHYARD_VEC_DIVISION(/)
  SWITCHYARD_VEC_DIVISION(%)
#undef SWITCHYARD_VEC_DIVISION
  // Shift counts are taken modulo the number of bits, as on the GPU: a shift
  // by as many bits as the type has does nothing.
#define SWITCHYARD_VEC_SHIFT(op)                                 \
  friend constexpr vec operator op(const vec& a, const vec& b) { \
    constexpr int kMask = 8 * sizeof(T) - 1;                     \
    SWITCHYARD_EACH(vec, a.At(i) op(b.At(i) & kMask));           \
  }                                                              \
  friend constexpr vec& operator op##=(vec& a, const vec& b) {   \
    return a = a op b;                                           \
  }
  SWITCHYARD_VEC_SHIFT(<<)
  SWITCHYARD_VEC_SHIFT(>>)
#undef SWITCHYARD_VEC_SHIFT

#define SWITCHYARD_VEC_TEST(op)                                           \
  friend constexpr vec<bool, N> operator op(const vec& a, const vec& b) { \
    vec<bool, N> r(false);                                                \
    _Pragma("unroll") for (int i = 0; i < N; ++i) {                       \
      r[i] = a.At(i) op b.At(i);                                          \
    }                                                                     \
    return r;                                                             \
  }
  SWITCHYARD_VEC_TEST(==)
  SWITCHYARD_VEC_TEST(!=)
  SWITCHYARD_VEC_TEST(<)
  SWITCHYARD_VEC_TEST(>)
  SWITCHYARD_VEC_TEST(<=)
  SWITCHYARD_VEC_TEST(>=)
  SWITCHYARD_VEC_TEST(&&)
  SWITCHYARD_VEC_TEST(||)
#undef SWITCHYARD_VEC_TEST

  friend constexpr vec operator+(const vec& a) { return a; }
  friend constexpr vec operator-(const vec& a) {
    SWITCHYARD_EACH(vec, -a.At(i));
  }
  friend constexpr vec operator~(const vec& a) {
    SWITCHYARD_EACH(vec, ~a.At(i));
  }
#undef SWITCHYARD_EACH
  friend constexpr vec<bool, N> operator!(const vec& a) {
    return a == vec(T(0), Same());
  }
  friend constexpr vec& operator++(vec& a) { return a += vec(T(1), Same()); }
  friend constexpr vec& operator--(vec& a) { return a -= vec(T(1), Same()); }
  friend constexpr vec operator++(vec& a, int) {
    const vec before = a;
    ++a;
    return before;
  }
  friend constexpr vec operator--(vec& a, int) {
    const vec before = a;
    --a;
    return before;
  }

 private:
  struct Same {};
  struct Each {};
  constexpr vec(T s, Same) : Base(Make(s, static_cast<Base*>(nullptr))) {}
  template <class U>
  constexpr vec(const vec<U, N>& v, Each) : vec(T(), Same()) {
    _Pragma("unroll") for (int i = 0; i < N; ++i) {
      At(i) = static_cast<T>(v[i]);
    }
  }
  template <class U>
  static constexpr Base Make(T s, U*) {
    if constexpr (N == 2) {
      return U(s, s);
    } else if constexpr (N == 3) {
      return U(s, s, s);
    } else if constexpr (N == 4) {
      return U(s, s, s, s);
    } else {
      U r{};
      for (int i = 0; i < N; ++i) r.At(i) = s;
      return r;
    }
  }
};

}  // namespace metal

namespace switchyard_metal {

#define SWITCHYARD_SWIZZLE_OPERATOR(op)                          \
  template <class V, int S, int A, int B, int C, int D, class U> \
  constexpr Swizzle<V, S, A, B, C, D>& operator op##=(           \
      Swizzle<V, S, A, B, C, D>& a, const U& b) {                \
    return a = static_cast<V>(a) op b;                           \
  }
SWITCHYARD_SWIZZLE_OPERATOR(+)
SWITCHYARD_SWIZZLE_OPERATOR(-)
SWITCHYARD_SWIZZLE_OPERATOR(*)
SWITCHYARD_SWIZZLE_OPERATOR(/)
SWITCHYARD_SWIZZLE_OPERATOR(%)
SWITCHYARD_SWIZZLE_OPERATOR(&)
SWITCHYARD_SWIZZLE_OPERATOR(|)
SWITCHYARD_SWIZZLE_OPERATOR(^)
SWITCHYARD_SWIZZLE_OPERATOR(<<)
SWITCHYARD_SWIZZLE_OPERATOR(>>)
#undef SWITCHYARD_SWIZZLE_OPERATOR

// Returns the bits of a value as another type of the same size.
template <class To, class From>
constexpr To as_type(const From& from) {
  using Plain = Plain<From>;
  static_assert(sizeof(To) == sizeof(Plain), "as_type: sizes differ");
  if constexpr (__is_trivially_copyable(To) && __is_trivially_copyable(Plain)) {
    return __builtin_bit_cast(To, static_cast<const Plain&>(from));
  } else {
    const Plain& plain = from;
    To to;
    __builtin_memcpy(static_cast<void*>(&to), &plain, sizeof(to));
    return to;
  }
}

}  // namespace switchyard_metal

#endif  // SWITCHYARD_METAL_VEC_H_
