// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Converts values of switchyard.h to the C++ API and back. Invalid values stay
// invalid, so that the C++ functions refuse them.

#ifndef SWITCHYARD_SRC_C_CONVERT_H_
#define SWITCHYARD_SRC_C_CONVERT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "src/c/fields.h"

namespace switchyard::c {

template <class T>
void Convert(const T* from, T* to) {
  *to = *from;
}
inline void Convert(const int32_t* from, bool* to) { *to = *from != 0; }
// A value that does not fit in 8 bits becomes 255. No enumerator has this
// value, because no enumeration is that long.
inline void Convert(const int32_t* from, uint8_t* to) {
  const bool fits = *from >= 0 && *from <= UINT8_MAX;
  *to = fits ? static_cast<uint8_t>(*from) : UINT8_MAX;
}
inline void Convert(const int32_t* from, Type* to) {
  uint8_t value;
  Convert(from, &value);
  *to = static_cast<Type>(value);
}
// Does nothing: Reporting in call.h converts reports.
inline void Convert(swy_report* const*, Report**) {}
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

// Conversions from C++ to C.
inline void Convert(const bool* from, int32_t* to) { *to = *from; }
inline void Convert(const uint8_t* from, int32_t* to) { *to = *from; }
inline void Convert(const Type* from, int32_t* to) {
  *to = static_cast<int32_t>(*from);
}
// The cast is exact, because counts come from a swy_optional_count, or
// SetField() limits them to 2^31 - 1.
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

// Calls visit(TypesOf<kind>()) with the C++ type and the C type of a field.
template <class Visit>
void WithTypes(calls::Kind kind, const Visit& visit) {
  switch (kind) {
#define SWITCHYARD_KIND(kind, ...) \
  case calls::Kind::kind:          \
    return visit(calls::TypesOf<calls::Kind::kind>());
    SWITCHYARD_KINDS(SWITCHYARD_KIND)
#undef SWITCHYARD_KIND
  }
}
// Returns the field at `offset` in the struct at `data`.
template <class T>
T* At(void* data, size_t offset) {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(data) + offset);
}
template <class T>
const T* At(const void* data, size_t offset) {
  return reinterpret_cast<const T*>(static_cast<const unsigned char*>(data) +
                                    offset);
}
void ToCpp(const Field& field, const void* c, void* cpp);
// Converts a field to C, unless it is a view or a report.
void ToC(const Field& field, const void* cpp, void* c);

// True if a field's flag, or the is_set of an optional field, is 0 or 1. Also
// true for a field without a flag, because the C++ functions check its value.
template <class T>
bool IsFlagOrOther(const T*, const void*, int32_t*) {
  return true;
}
inline bool IsFlagOrOther(const bool*, const void* c, int32_t* value) {
  *value = *static_cast<const int32_t*>(c);
  return (*value & ~1) == 0;
}
template <class T>
bool IsFlagOrOther(const std::optional<T>*, const void* c, int32_t* value) {
  if constexpr (std::is_pointer_v<T>) {
    return true;
  } else {
    // Checks is_set and, in an optional flag, the flag's value.
    return IsFlagOrOther(static_cast<bool*>(nullptr), c, value) &&
           (!std::is_same_v<T, bool> ||
            IsFlagOrOther(static_cast<bool*>(nullptr),
                          static_cast<const int32_t*>(c) + 1, value));
  }
}

// The caller's struct may be shorter or longer than this library's. A shorter
// struct may end where the caller's memory ends. So the code uses pointers to
// the caller's struct, because a reference would promise a whole struct.
template <class C>
bool HasSize(const C* given) {
  return given->size >= sizeof(given->size);
}
template <class C>
bool IsTooLong(const C* given) {
  return given->size > SWY_MAX_STRUCT_SIZE;
}
// True if the struct has the size of one of its versions: it ends where a field
// ends, and not before the end of its first version.
template <class C>
bool IsOfVersion(const C* given) {
  const size_t size = given->size;
  if (size >= sizeof(C)) return true;
  if (size < kLeastSize<C>) return false;
  if (size == sizeof(given->size)) return true;
  for (const size_t end : kOtherEnds<C>) {
    if (size == end) return true;
  }
  if constexpr (!std::is_null_pointer_v<std::decay_t<decltype(kTable<C>)>>) {
    for (const Field& field : FieldsOf<C>()) {
      if (size == field.c_end) return true;
    }
  }
  return false;
}
// True if all bytes behind the known struct are 0, so that no unknown field is
// set. Reads all bytes of the struct, which must not be too long (IsTooLong()).
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
// Returns the first flag of the caller's struct that is neither 0 nor 1, and
// writes its value to `value`. Returns null if there is no such flag.
const Field* FindWrongFlag(const Field* begin, const Field* end, const void* c,
                           size_t size, int32_t* value);
template <class C>
const Field* FindWrongFlag(const C* given, int32_t* value) {
  const auto& fields = FieldsOf<C>();
  return FindWrongFlag(fields.data(), fields.data() + fields.size(), given,
                       given->size, value);
}
// Converts the caller's fields. Leaves other fields of `to` unchanged.
template <class C>
void ReadFields(const C* given, CppOf<C>* to) {
  for (const Field& field : FieldsOf<C>()) {
    if (field.c_end <= given->size) ToCpp(field, given, to);
  }
}
template <class C>
void WriteFields(const CppOf<C>& from, C* given) {
  for (const Field& field : FieldsOf<C>()) {
    if (field.c_end <= given->size) ToC(field, &from, given);
  }
}
// True if the caller's struct has room for each field of `from` that differs
// from its default.
template <class C>
bool HasRoomFor(const CppOf<C>& from, const C* given) {
  const CppOf<C> defaults = {};
  for (const Field& field : FieldsOf<C>()) {
    C a = {}, b = {};
    ToC(field, &from, &a);
    ToC(field, &defaults, &b);
    if (field.c_end > given->size && std::memcmp(&a, &b, sizeof(C)) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace switchyard::c

#endif  // SWITCHYARD_SRC_C_CONVERT_H_
