// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Values of switchyard.h as those of the C++ API, and back. What is wrong with
// them is for the C++ functions to say: nothing is lost on the way.

#ifndef SWITCHYARD_SRC_C_CONVERT_H_
#define SWITCHYARD_SRC_C_CONVERT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "src/c/fields.h"

namespace switchyard::c {

template <class T>
void Convert(const T* from, T* to) {
  *to = *from;
}
inline void Convert(const int32_t* from, bool* to) { *to = *from != 0; }
// No enumeration has so many members that its type's last value is one.
template <class E, class = std::enable_if_t<std::is_enum_v<E>>>
void Convert(const int32_t* from, E* to) {
  using Value = std::underlying_type_t<E>;
  constexpr auto kLast = std::numeric_limits<Value>::max();
  const bool fits = *from >= 0 && static_cast<uint32_t>(*from) <= kLast;
  *to = static_cast<E>(fits ? static_cast<Value>(*from) : kLast);
}
template <class Void>
void Convert(const swy_matrix* from, BasicAnyMatrix<Void>* to) {
  to->data = from->data;
  to->rows = from->rows;
  to->cols = from->cols;
  to->stride = from->stride;
  Convert(&from->type, &to->type);
}
inline void Convert(const swy_matrix* from, RowIndex* to) {
  Convert(from, static_cast<ConstAnyMatrix*>(to));
}
template <class Void>
void Convert(const swy_rows* from, BasicAnyRows<Void>* to) {
  Convert(&from->values, static_cast<BasicAnyMatrix<Void>*>(to));
  Convert(&from->scales, &to->scales);
  Convert(&from->sums, &to->sums);
}
template <
    class CSpan, class T,
    class = std::enable_if_t<std::is_convertible_v<decltype(CSpan::data), T*>>>
void Convert(const CSpan* from, Span<T>* to) {
  *to = {from->data, from->size};
}
static_assert(sizeof(swy_work_tile) == sizeof(WorkTile) &&
                  offsetof(swy_work_tile, rows) == offsetof(WorkTile, rows) &&
                  offsetof(swy_work_tile, expert) == offsetof(WorkTile, expert),
              "WorkTile is not swy_work_tile");
inline void Convert(const swy_work_tile_span* from, Span<WorkTile>* to) {
  *to = {reinterpret_cast<WorkTile*>(from->data), from->size};
}
// A struct in a struct.
template <class C, class = std::enable_if_t<(Fields<C>::kExtra == 0)>>
void Convert(const C* from, CppOf<C>* to) {
  Fields<C>::ForEach([&](const char*, size_t, auto in_c, auto in_cpp) {
    Convert(&(from->*in_c), &(to->*in_cpp));
  });
}

// Back.
inline void Convert(const bool* from, int32_t* to) { *to = *from; }
template <class E, class = std::enable_if_t<std::is_enum_v<E>>>
void Convert(const E* from, int32_t* to) {
  *to = static_cast<int32_t>(*from);
}
template <class Void>
void Convert(const BasicAnyMatrix<Void>* from, swy_matrix* to) {
  to->data = const_cast<void*>(from->data);
  to->rows = from->rows;
  to->cols = from->cols;
  to->stride = from->stride;
  Convert(&from->type, &to->type);
}

// A struct that may be shorter or longer than the C that this library knows.
// Shorter ones may end where the caller's memory ends: only pointers, which
// promise no more than what is read, and no references.
template <class C>
bool HasSize(const C* given) {
  return given->size >= sizeof(given->size);
}
template <class C>
bool IsTooLong(const C* given) {
  return given->size > SWY_MAX_STRUCT_SIZE;
}
// Asked where it is not too long: bytes up to its size are read.
template <class C>
bool IsKnown(const C* given) {
  static_assert(offsetof(C, size) == 0, "");
  static_assert(sizeof(C) <= SWY_MAX_STRUCT_SIZE, "");
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(C); i < given->size; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}
// Converts the fields that the caller's struct has; the rest of `to` stays.
template <class C>
void ReadFields(const C* given, CppOf<C>* to) {
  const size_t size = given->size;
  Fields<C>::ForEach([&](const char*, size_t end, auto in_c, auto in_cpp) {
    if (end <= size) Convert(&(given->*in_c), &(to->*in_cpp));
  });
}
// Whether the caller's struct has room for all of `from` that is not its
// default.
template <class C>
bool HasRoomFor(const CppOf<C>& from, const C* given) {
  const size_t size = given->size;
  const CppOf<C> defaults = {};
  bool has_room = true;
  Fields<C>::ForEach([&](const char*, size_t end, auto, auto in_cpp) {
    has_room &= end <= size || from.*in_cpp == defaults.*in_cpp;
  });
  return has_room;
}
template <class C>
void WriteFields(const CppOf<C>& from, C* given) {
  const size_t size = given->size;
  Fields<C>::ForEach([&](const char*, size_t end, auto in_c, auto in_cpp) {
    if (end <= size) Convert(&(from.*in_cpp), &(given->*in_c));
  });
}

}  // namespace switchyard::c

#endif  // SWITCHYARD_SRC_C_CONVERT_H_
