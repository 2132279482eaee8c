// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checks of rows that may be quantised, beside those of check.h.

#ifndef SWITCHYARD_SRC_CHECK_ROWS_H_
#define SWITCHYARD_SRC_CHECK_ROWS_H_

#include "src/check.h"
#include "src/simd/row_format.h"

// Rows by themselves: a type, scales and sums that go together.
#define SWITCHYARD_CHECK_ROWS(fn, m)                                         \
  do {                                                                       \
    SWITCHYARD_CHECK(::switchyard::internal::IsRowType((m).type),            \
                     #fn ": " #m ": has to be f32, bf16, f16 or quantised"); \
    SWITCHYARD_CHECK_VIEW(fn, m);                                            \
    if (__builtin_expect(::switchyard::internal::IsFloat((m).type) &&        \
                             !::switchyard::internal::HasParts(m),           \
                         1)) {                                               \
      break;                                                                 \
    }                                                                        \
    SWITCHYARD_CHECK_PARTS(fn, m);                                           \
  } while (false)
#define SWITCHYARD_CHECK_PARTS(fn, m)                                          \
  do {                                                                         \
    using ::switchyard::Type;                                                  \
    const bool codes = ::switchyard::internal::IsCode((m).type);               \
    SWITCHYARD_CHECK(::switchyard::internal::InWholeBlocks(m),                 \
                     #fn ": " #m                                               \
                         ": cols or stride is not a multiple of its block");   \
    if (!codes) {                                                              \
      SWITCHYARD_CHECK(!::switchyard::internal::Given((m).scales),             \
                       #fn ": " #m ".scales: given with a type without");      \
    } else {                                                                   \
      const bool power = (m).scales.type == Type::kE8M0;                       \
      SWITCHYARD_CHECK((m).scales.type == Type::kF32 ||                        \
                           (power && ((m).type == Type::kF8E4M3 ||             \
                                      (m).type == Type::kF8E5M2)),             \
                       #fn ": " #m ".scales: has to be f32, or e8m0 with f8"); \
      SWITCHYARD_CHECK_VIEW(fn, m.scales);                                     \
      SWITCHYARD_CHECK_NEEDED(                                                 \
          fn, m.scales,                                                        \
          (m).scales.rows == (m).rows && ::switchyard::internal::ScalesFit(m), \
          "is not [rows, 1] or one for 32, 64 or 128 columns (e8m0: 32)");     \
    }                                                                          \
    if (::switchyard::internal::Given((m).sums)) {                             \
      SWITCHYARD_CHECK((m).type == Type::kI8 || (m).type == Type::kU8,         \
                       #fn ": " #m ".sums: given with a type without");        \
      SWITCHYARD_CHECK_TYPED(fn, m.sums, Type::kI32, "int32");                 \
      SWITCHYARD_CHECK((m).sums.rows == (m).rows && (m).sums.cols == 1,        \
                       #fn ": " #m ".sums: is not [rows, 1]");                 \
      SWITCHYARD_CHECK((m).cols <= size_t{1} << 24,                            \
                       #fn ": " #m ".sums: of more than 2^24 columns");        \
    }                                                                          \
  } while (false)

// Scales and sums of an output share no byte with what the list has, nor with
// the output itself; up to seven others.
#define SWITCHYARD_CHECK_PARTS_APART(fn, out, ...)                      \
  do {                                                                  \
    if (__builtin_expect(!::switchyard::internal::HasParts(out), 1)) {  \
      break;                                                            \
    }                                                                   \
    SWITCHYARD_CHECK_APART(fn, out.scales, out, __VA_ARGS__);           \
    SWITCHYARD_CHECK_APART(fn, out.sums, out, out.scales, __VA_ARGS__); \
  } while (false)

namespace switchyard::internal {

constexpr bool IsCode(Type type) {
  return type == Type::kI8 || type == Type::kU8 || type == Type::kF8E4M3 ||
         type == Type::kF8E5M2;
}
constexpr bool IsRowType(Type type) {
  return IsFloat(type) || IsCode(type) || BlockBits(type) != 0;
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
  const size_t group = simd::GroupOf(rows.cols, rows.scales.cols);
  // Where a row has no more columns than a group, one scale is both.
  return rows.scales.type == Type::kE8M0
             ? rows.scales.cols == (rows.cols + 31) / 32
             : group != 0;
}

// Whether a row can be copied byte for byte.
inline bool SameFormat(const ConstAnyRows& from, const AnyRows& to) {
  return from.type == to.type &&
         (!IsCode(to.type) || (from.scales.type == to.scales.type &&
                               from.scales.cols == to.scales.cols)) &&
         (!Given(to.sums) || Given(from.sums));
}

// Whether rows can be read as floats.
inline bool IsReadable(const ConstAnyRows& rows) {
  return IsFloat(rows.type) ||
         (IsCode(rows.type) && rows.scales.type == Type::kF32);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_CHECK_ROWS_H_
