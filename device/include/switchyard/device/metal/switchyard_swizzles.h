// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Declares the swizzles xx, xy, ... wwww and their other names rr, rg, ...
// aaaa. switchyard_elements.h includes this file in the union of Elements<T,
// SWITCHYARD_N>, once for each N, so the file has no include guard.

#ifdef SWITCHYARD_N

#if SWITCHYARD_N > 2
#define SWY_Z(M, n, c, ...) M(n##z, c##b, __VA_ARGS__, 2)
#define SWY_FIRST_Z(M) M(z, b, 2)
#else
#define SWY_Z(M, n, c, ...)
#define SWY_FIRST_Z(M)
#endif
#if SWITCHYARD_N > 3
#define SWY_W(M, n, c, ...) M(n##w, c##a, __VA_ARGS__, 3)
#define SWY_FIRST_W(M) M(w, a, 3)
#else
#define SWY_W(M, n, c, ...)
#define SWY_FIRST_W(M)
#endif

// There is one level of macros for each letter, because a macro does not
// expand within itself.
#define SWY_NEXT(M, n, c, ...)  \
  M(n##x, c##r, __VA_ARGS__, 0) \
  M(n##y, c##g, __VA_ARGS__, 1) \
  SWY_Z(M, n, c, __VA_ARGS__)   \
  SWY_W(M, n, c, __VA_ARGS__)
#define SWY_NEXT_2(M, n, c, ...) \
  M(n##x, c##r, __VA_ARGS__, 0)  \
  M(n##y, c##g, __VA_ARGS__, 1)  \
  SWY_Z_2(M, n, c, __VA_ARGS__)  \
  SWY_W_2(M, n, c, __VA_ARGS__)
#define SWY_NEXT_3(M, n, c, ...) \
  M(n##x, c##r, __VA_ARGS__, 0)  \
  M(n##y, c##g, __VA_ARGS__, 1)  \
  SWY_Z_3(M, n, c, __VA_ARGS__)  \
  SWY_W_3(M, n, c, __VA_ARGS__)
#if SWITCHYARD_N > 2
#define SWY_Z_2(M, n, c, ...) M(n##z, c##b, __VA_ARGS__, 2)
#define SWY_Z_3(M, n, c, ...) M(n##z, c##b, __VA_ARGS__, 2)
#else
#define SWY_Z_2(M, n, c, ...)
#define SWY_Z_3(M, n, c, ...)
#endif
#if SWITCHYARD_N > 3
#define SWY_W_2(M, n, c, ...) M(n##w, c##a, __VA_ARGS__, 3)
#define SWY_W_3(M, n, c, ...) M(n##w, c##a, __VA_ARGS__, 3)
#else
#define SWY_W_2(M, n, c, ...)
#define SWY_W_3(M, n, c, ...)
#endif

#define SWY_MEMBER_2(n, c, i, j) Swizzle<vec<T, 2>, kStored, i, j> n, c;
#define SWY_MEMBER_3(n, c, i, j, k) Swizzle<vec<T, 3>, kStored, i, j, k> n, c;
#define SWY_MEMBER_4(n, c, i, j, k, l) \
  Swizzle<vec<T, 4>, kStored, i, j, k, l> n, c;
#define SWY_FROM_3(n, c, i, j, k) SWY_NEXT_3(SWY_MEMBER_4, n, c, i, j, k)
#define SWY_FROM_2(n, c, i, j) \
  SWY_MEMBER_2(n, c, i, j)     \
  SWY_NEXT_2(SWY_BOTH_3, n, c, i, j)
#define SWY_BOTH_3(n, c, i, j, k) \
  SWY_MEMBER_3(n, c, i, j, k)     \
  SWY_FROM_3(n, c, i, j, k)
#define SWY_FROM_1(n, c, i) SWY_NEXT(SWY_FROM_2, n, c, i)

SWY_FROM_1(x, r, 0)
SWY_FROM_1(y, g, 1)
SWY_FIRST_Z(SWY_FROM_1)
SWY_FIRST_W(SWY_FROM_1)

#undef SWY_FROM_1
#undef SWY_BOTH_3
#undef SWY_FROM_2
#undef SWY_FROM_3
#undef SWY_MEMBER_4
#undef SWY_MEMBER_3
#undef SWY_MEMBER_2
#undef SWY_W_3
#undef SWY_W_2
#undef SWY_Z_3
#undef SWY_Z_2
#undef SWY_NEXT_3
#undef SWY_NEXT_2
#undef SWY_NEXT
#undef SWY_FIRST_W
#undef SWY_FIRST_Z
#undef SWY_W
#undef SWY_Z

#endif  // SWITCHYARD_N
