// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Values of switchyard.h as those of the C++ API, and back. What is wrong with
// them is for the C++ functions to say: nothing is lost on the way.

#ifndef SWITCHYARD_SRC_C_CONVERT_H_
#define SWITCHYARD_SRC_C_CONVERT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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
inline void Convert(const swy_optional_count* from, std::optional<size_t>* to) {
  *to = from->is_set != 0 ? std::optional<size_t>(from->value) : std::nullopt;
}
inline void Convert(const swy_optional_flag* from, std::optional<bool>* to) {
  *to =
      from->is_set != 0 ? std::optional<bool>(from->value != 0) : std::nullopt;
}
inline void Convert(const swy_optional_number* from, std::optional<float>* to) {
  *to = from->is_set != 0 ? std::optional<float>(from->value) : std::nullopt;
}
inline void Convert(const char* const* from, std::optional<const char*>* to) {
  *to = *from != nullptr ? std::optional<const char*>(*from) : std::nullopt;
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
// Counts are those of swy_optional_count, or up to 2^31 - 1: see SetField().
inline void Convert(const std::optional<size_t>* from, swy_optional_count* to) {
  *to = {from->has_value(), static_cast<uint32_t>(from->value_or(0))};
}
inline void Convert(const std::optional<bool>* from, swy_optional_flag* to) {
  *to = {from->has_value(), from->value_or(false)};
}
inline void Convert(const std::optional<float>* from, swy_optional_number* to) {
  *to = {from->has_value(), from->value_or(0.0f)};
}
inline void Convert(const std::optional<const char*>* from, const char** to) {
  *to = from->value_or(nullptr);
}
template <class Void>
void Convert(const BasicAnyMatrix<Void>* from, swy_matrix* to) {
  to->data = const_cast<void*>(from->data);
  to->rows = from->rows;
  to->cols = from->cols;
  to->stride = from->stride;
  Convert(&from->type, &to->type);
}

template <class C, class = std::enable_if_t<(Fields<C>::kExtra == 0)>>
void Convert(const CppOf<C>* from, C* to) {
  Fields<C>::ForEach([&](const char*, size_t, auto in_c, auto in_cpp) {
    Convert(&(from->*in_cpp), &(to->*in_c));
  });
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
inline bool IsSame(const CombineScales& a, const CombineScales& b) {
  return a.routed == b.routed && a.block == b.block &&
         a.residual == b.residual && a.out == b.out;
}
template <class T>
bool IsSame(const T& a, const T& b) {
  return a == b;
}
template <class C>
bool HasRoomFor(const CppOf<C>& from, const C* given) {
  const size_t size = given->size;
  const CppOf<C> defaults = {};
  bool has_room = true;
  Fields<C>::ForEach([&](const char*, size_t end, auto, auto in_cpp) {
    has_room &= end <= size || IsSame(from.*in_cpp, defaults.*in_cpp);
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
