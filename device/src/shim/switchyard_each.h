// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Applies functions for scalars to scalars and to each element of vectors.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_EACH_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_EACH_H_

#include "metal_types"

namespace switchyard_metal {

// The common type of two arguments. It is the vector type if one of them is a
// vector, otherwise the type of their sum. There are two exceptions: equal
// types stay as they are (two shorts do not become int), and double becomes
// float, because Metal has no double.
template <class A, class B, class = void>
struct ScalarCommon : SmallResult<A, B> {};
template <class A, class B>
struct ScalarCommon<
    A, B,
    typename EnableIf<__is_arithmetic(A) && __is_arithmetic(B) &&
                      !__is_same(A, B)>::Type> {
  using Type = decltype(A() + B());
};
template <class A>
struct ScalarCommon<A, A, void> {
  using Type = A;
};
template <class A>
struct NoDouble {
  using Type = A;
};
template <>
struct NoDouble<double> {
  using Type = float;
};

template <class A, class B, bool kA, bool kB>
struct ShapeCommon;
template <class A, class B>
struct ShapeCommon<A, B, false, false>
    : NoDouble<typename ScalarCommon<A, B>::Type> {};
template <class A, class B>
struct ShapeCommon<A, B, true, false> {
  using Type = A;
};
template <class A, class B>
struct ShapeCommon<A, B, false, true> {
  using Type = B;
};
template <class A>
struct ShapeCommon<A, A, true, true> {
  using Type = A;
};

template <class A, class B>
using CommonOfTwo =
    typename ShapeCommon<IfAny<A>, IfAny<B>, kIsVector<A>, kIsVector<B>>::Type;
template <class A, class B = A, class C = A>
using Common = CommonOfTwo<CommonOfTwo<A, B>, C>;

// A type with the shape of A and elements of type T.
template <class A, class T>
struct Reshaped {
  using Type = T;
};
template <class E, int N, class T>
struct Reshaped<vec<E, N>, T> {
  using Type = vec<T, N>;
};
template <class A, class T>
using Like = typename Reshaped<Plain<A>, T>::Type;

// The type R itself, or float if R is an integer.
template <class R, bool kIsInteger = __is_integral(R)>
struct FloatOf {
  using Type = R;
};
template <class R>
struct FloatOf<R, true> {
  using Type = float;
};
template <class A, class B = A, class C = A>
using FloatCommon = typename FloatOf<Common<A, B, C>>::Type;
// The result types of two kinds of functions: tests of floats, and functions
// from floats to integers.
template <class A, class B = A>
using FloatTests = Like<FloatCommon<A, B>, bool>;
template <class A>
using FloatIntegers = Like<FloatCommon<A>, int>;
template <class A, class B = A, class C = A>
using IntegerCommon =
    typename EnableIf<__is_integral(ElementOf<Common<A, B, C>>),
                      Common<A, B, C>>::Type;

template <class A>
constexpr auto Pick(const A& a, int i) {
  if constexpr (kIsVector<A>) {
    const Plain<A>& v = a;
    return v[i];
  } else {
    return a;
  }
}

// Converts each element of the arguments to T, and applies F::Apply to them. T
// is the element type of R, or float for functions that are computed in
// float.
template <class R, class T, class F, class... A>
constexpr R EachAs(const A&... a) {
  using E = ElementOf<R>;
  if constexpr (kIsVector<R>) {
    R r(E(0));
    _Pragma("unroll") for (int i = 0; i < Shape<R>::kSize; ++i) {
      r[i] = static_cast<E>(F::Apply(static_cast<T>(Pick(a, i))...));
    }
    return r;
  } else {
    return static_cast<R>(F::Apply(static_cast<T>(a)...));
  }
}

}  // namespace switchyard_metal

// These macros define functions with one, two or three arguments. The last
// macro argument is the function's body. A function can be:
// * FLOAT: for floats. It is computed in float, and the result is rounded to
//   the arguments' type.
// * ANY: for all numbers. It is computed in the arguments' common type T.
// * INTEGER: for integers. It is computed in the arguments' common type T.
#define SWITCHYARD_OF_1(name, R, T, decl, ...)                  \
  struct name##_function {                                      \
    decl { __VA_ARGS__; }                                       \
  };                                                            \
  template <class A, class R_ = switchyard_metal::R<A>>         \
  constexpr R_ name(const A& a) {                               \
    return switchyard_metal::EachAs<R_, T, name##_function>(a); \
  }
#define SWITCHYARD_OF_2(name, R, T, decl, ...)                      \
  struct name##_function {                                          \
    decl { __VA_ARGS__; }                                           \
  };                                                                \
  template <class A, class B, class R_ = switchyard_metal::R<A, B>> \
  constexpr R_ name(const A& a, const B& b) {                       \
    return switchyard_metal::EachAs<R_, T, name##_function>(a, b);  \
  }
#define SWITCHYARD_OF_3(name, R, T, decl, ...)                        \
  struct name##_function {                                            \
    decl { __VA_ARGS__; }                                             \
  };                                                                  \
  template <class A, class B, class C,                                \
            class R_ = switchyard_metal::R<A, B, C>>                  \
  constexpr R_ name(const A& a, const B& b, const C& c) {             \
    return switchyard_metal::EachAs<R_, T, name##_function>(a, b, c); \
  }

#define SWITCHYARD_FLOAT_1(name, ...)       \
  SWITCHYARD_OF_1(name, FloatCommon, float, \
                  static constexpr float Apply(float x), __VA_ARGS__)
#define SWITCHYARD_FLOAT_2(name, ...)       \
  SWITCHYARD_OF_2(name, FloatCommon, float, \
                  static constexpr float Apply(float x, float y), __VA_ARGS__)
#define SWITCHYARD_FLOAT_3(name, ...)                                      \
  SWITCHYARD_OF_3(name, FloatCommon, float,                                \
                  static constexpr float Apply(float x, float y, float z), \
                  __VA_ARGS__)

#define SWITCHYARD_ANY_1(name, ...)                                 \
  SWITCHYARD_OF_1(name, Common, switchyard_metal::ElementOf<R_>,    \
                  template <class T> static constexpr T Apply(T x), \
                  __VA_ARGS__)
#define SWITCHYARD_ANY_2(name, ...)                                      \
  SWITCHYARD_OF_2(name, Common, switchyard_metal::ElementOf<R_>,         \
                  template <class T> static constexpr T Apply(T x, T y), \
                  __VA_ARGS__)
#define SWITCHYARD_ANY_3(name, ...)                                           \
  SWITCHYARD_OF_3(name, Common, switchyard_metal::ElementOf<R_>,              \
                  template <class T> static constexpr T Apply(T x, T y, T z), \
                  __VA_ARGS__)

#define SWITCHYARD_INTEGER_1(name, ...)                                 \
  SWITCHYARD_OF_1(name, IntegerCommon, switchyard_metal::ElementOf<R_>, \
                  template <class T> static constexpr T Apply(T x),     \
                  __VA_ARGS__)
#define SWITCHYARD_INTEGER_2(name, ...)                                  \
  SWITCHYARD_OF_2(name, IntegerCommon, switchyard_metal::ElementOf<R_>,  \
                  template <class T> static constexpr T Apply(T x, T y), \
                  __VA_ARGS__)
#define SWITCHYARD_INTEGER_3(name, ...)                                       \
  SWITCHYARD_OF_3(name, IntegerCommon, switchyard_metal::ElementOf<R_>,       \
                  template <class T> static constexpr T Apply(T x, T y, T z), \
                  __VA_ARGS__)

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_EACH_H_
