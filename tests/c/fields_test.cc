// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests that each field of each struct of switchyard.h is copied to its
// counterpart in the C++ API, and to no other field. Fields that are not given
// have their defaults.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "src/c/call.h"

namespace switchyard::c {
namespace {

static_assert(NumFields<Report>() == 11);  // tests NumFields() itself

// True if a value of a C struct equals one of a C++ struct. Does not use the
// library's conversions, because they are under test.
template <class T>
bool Same(const T& c, const T& cpp) {
  return c == cpp;
}
bool Same(int32_t c, bool cpp) { return (c != 0) == cpp; }
bool Same(int32_t c, uint8_t cpp) { return c == cpp; }
bool Same(int32_t c, Type cpp) { return c == static_cast<int32_t>(cpp); }
bool Same(const calls::Pointer& c, const calls::Pointer& cpp) {
  return std::memcmp(&c, &cpp, sizeof(c)) == 0;
}
// Reports are not compared here, because Reporting converts them.
bool Same(swy_report*, Report*) { return true; }
template <class Void>
bool Same(const swy_matrix& c, const BasicAnyMatrix<Void>& cpp) {
  return c.data == cpp.data && c.rows == cpp.rows && c.cols == cpp.cols &&
         c.stride == cpp.stride && Same(c.type, cpp.type);
}
bool Same(const swy_matrix& c, const RowIndex& cpp) {
  return Same(c, static_cast<const ConstAnyMatrix&>(cpp)) && !cpp.token_order;
}
template <class Void>
bool Same(const swy_rows& c, const BasicAnyRows<Void>& cpp) {
  return Same(c.values, static_cast<const BasicAnyMatrix<Void>&>(cpp)) &&
         Same(c.scales, cpp.scales) && Same(c.sums, cpp.sums);
}
bool Same(uint32_t c, size_t cpp) { return c == cpp; }
template <class Field, class T>
auto Same(const Field& c, const std::optional<T>& cpp)
    -> decltype(c.is_set, true) {
  return cpp.has_value() == (c.is_set != 0) &&
         (c.is_set == 0 || Same(c.value, *cpp));
}
bool Same(const char* c, const std::optional<const char*>& cpp) {
  return cpp.value_or(nullptr) == c;
}
template <class CSpan, class T>
bool Same(const CSpan& c, const Span<T>& cpp) {
  return static_cast<const void*>(c.data) == cpp.data && c.size == cpp.size;
}
// Compares `field` of a C struct with `field` of a C++ struct.
bool Same(const Field& field, const void* c, const void* cpp) {
  bool same = false;
  WithTypes(field.kind, [&](auto types) {
    using T = decltype(types);
    same = Same(*At<typename T::C>(c, field.c_offset),
                *At<typename T::Cpp>(cpp, field.offset));
  });
  return same;
}

// Changes a field's value. Each new value differs from earlier ones.
size_t number = 1;
void Change(int32_t* value) { *value = *value == 0; }
void Change(uint32_t* value) { *value += 3; }
void Change(size_t* value) { *value += ++number; }
void Change(float* value) { *value += 0.25f * static_cast<float>(++number); }
void Change(const char** value) { *value = "changed"; }
void Change(calls::Pointer* value) {
  value->bytes[0] ^= static_cast<unsigned char>(++number);
}
template <class T>
void Change(T** value) {
  static char bytes[4096];
  *value = reinterpret_cast<T*>(bytes + 8 * (++number % 512));
}
void Change(swy_matrix* m) {
  Change(&m->data);
  Change(&m->rows);
  Change(&m->cols);
  Change(&m->stride);
  Change(&m->type);
}
void Change(swy_rows* rows) {
  Change(&rows->values);
  Change(&rows->scales);
  Change(&rows->sums);
}
template <class Field>
auto Change(Field* field) -> decltype(static_cast<void>(field->is_set)) {
  Change(&field->is_set);
  Change(&field->value);
}
template <class CSpan>
auto Change(CSpan* span) -> decltype(static_cast<void>(span->size)) {
  Change(&span->data);
  Change(&span->size);
}
void Change(const Field& field, void* c) {
  WithTypes(field.kind, [&](auto types) {
    Change(At<typename decltype(types)::C>(c, field.c_offset));
  });
}

template <class C>
CppOf<C> Read(const C& c) {
  CppOf<C> cpp = Default<CppOf<C>>();
  ReadFields(&c, &cpp);
  return cpp;
}

// Calls test(initial) for each struct that has a table of its fields.
// `initial` is the struct as its macro initialises it.
template <class Test, class C>
void TestStruct(const Test& test, const char* name, const C& initial) {
  if constexpr (!std::is_null_pointer_v<std::decay_t<decltype(kTable<C>)>>) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, name);
    test(initial);
  }
}
template <class C>
constexpr bool kHasTable =
    !std::is_null_pointer_v<std::decay_t<decltype(kTable<C>)>>;
// Only structs that may grow have a 32-bit size.
template <class C>
constexpr auto HasSizeField(int) -> decltype(C::size, true) {
  return std::is_same_v<decltype(C::size), uint32_t>;
}
template <class C>
constexpr bool HasSizeField(long) {
  return false;
}
template <class Test, class C>
auto TestSizes(const Test& test, const C& initial, const char* name,
               const std::vector<size_t>& ends)
    -> std::enable_if_t<HasSizeField<C>(0)> {
  test(initial, name, ends);
}
template <class Test, class C>
auto TestSizes(const Test&, const C&, const char*, const std::vector<size_t>&)
    -> std::enable_if_t<!HasSizeField<C>(0)> {}
template <class Test>
void ForEachStruct(const Test& test){
#define S(C, has_defaults, initialiser, fields) \
  {                                             \
    const C initial = initialiser;              \
    TestStruct(test, #C, initial);              \
  }
#define E(...)
#define P(...)
#define CALL(...)
#include "structs.inc"
#undef S
#undef E
#undef P
}

TEST(Fields, HaveTheDefaultsOfCpp) {
  size_t structs = 0;
  ForEachStruct([&](const auto& c) {
    using C = std::decay_t<decltype(c)>;
    const CppOf<C> cpp = Default<CppOf<C>>();
    for (const Field& field : FieldsOf<C>()) {
      EXPECT_TRUE(Same(field, &c, &cpp)) << field.name;
    }
    ++structs;
  });
  EXPECT_GE(structs, 46u);
}

TEST(Fields, ArriveEachAlone) {
  ForEachStruct([](const auto& initial) {
    using C = std::decay_t<decltype(initial)>;
    const CppOf<C> unchanged = Read(initial);
    for (const Field& field : FieldsOf<C>()) {
      C c = initial;
      Change(field, &c);
      EXPECT_EQ(Same(field, &c, &unchanged), field.kind == calls::Kind::kReport)
          << field.name;
      const CppOf<C> cpp = Read(c);
      for (const Field& other : FieldsOf<C>()) {
        EXPECT_TRUE(Same(other, &c, &cpp)) << field.name << ": " << other.name;
      }
    }
  });
}

// The memory ends where the struct ends, so that AddressSanitizer finds reads
// beyond it.
TEST(Fields, ThatAreMissingHaveTheirDefaults) {
  ForEachStruct([](const auto& initial) {
    using C = std::decay_t<decltype(initial)>;
    C whole = initial;
    for (const Field& field : FieldsOf<C>()) Change(field, &whole);
    for (size_t size = sizeof(uint32_t); size <= sizeof whole; ++size) {
      whole.size = static_cast<uint32_t>(size);
      const std::unique_ptr<unsigned char[]> bytes(new unsigned char[size]);
      std::memcpy(bytes.get(), &whole, size);
      const auto* given = reinterpret_cast<const C*>(bytes.get());
      ASSERT_TRUE(HasSize(given) && IsKnown(given));
      const CppOf<C> cpp = Read(*given);
      for (const Field& field : FieldsOf<C>()) {
        EXPECT_TRUE(Same(field, field.c_end <= size ? &whole : &initial, &cpp))
            << field.name << " of " << size;
      }
    }
  });
}

// If a struct ended with padding, a later version would read an older
// caller's padding as a field.
TEST(Fields, LeaveNoPaddingBehindThem) {
  ForEachStruct([](const auto& initial) {
    using C = std::decay_t<decltype(initial)>;
    size_t last = sizeof(uint32_t);
    for (const Field& field : FieldsOf<C>()) {
      last = std::max<size_t>(last, field.c_end);
    }
    if (std::is_same_v<C, swy_preset>) {
      last = offsetof(swy_preset, form) + sizeof(swy_preset::form);
    }
    if (std::is_same_v<C, swy_experts_options>) {
      last = offsetof(swy_experts_options, down_operands) + sizeof(void*);
    }
    if (std::is_same_v<C, swy_model_config>) {
      last = std::max(
          last, offsetof(swy_model_config, names) + sizeof(swy_config_names));
    }
    EXPECT_EQ(last, sizeof(C));
  });
}

// Tests which values the field `size` of a struct may have. Valid are the ends
// of the struct's fields, except those before the size of the first version,
// and all values above sizeof. Does not test the ends of a nested struct's
// fields.
TEST(Sizes, AreThoseOfVersions) {
  size_t structs = 0;
  const auto test = [&](const auto& initial, const char* name,
                        const std::vector<size_t>& ends) {
    using C = std::decay_t<decltype(initial)>;
    const std::string text = name;
    const size_t least =
        text == "swy_quantize_options" || text == "swy_pack_weights_options" ? 4
        : text == "swy_gather_options" || text == "swy_scatter_options"      ? 8
                                                                        : 12;
    C c = initial;
    for (size_t size = 4; size <= sizeof(C) + 9; ++size) {
      c.size = static_cast<uint32_t>(size);
      bool is_end = size >= sizeof(C), is_in_part = false;
      for (const size_t end : ends) is_end |= end == size;
      if constexpr (kHasTable<C>) {
        for (const Field& field : FieldsOf<C>()) {
          is_in_part |= field.c_end == size;
        }
      }
      if (is_in_part && !is_end) continue;
      EXPECT_EQ(IsOfVersion(&c), is_end && size >= least)
          << name << " of " << size;
    }
    ++structs;
  };
#define F(field) offsetof(Struct, field) + sizeof(Struct::field),
#define S(C, has_defaults, initialiser, fields) \
  {                                             \
    using Struct = C;                           \
    const C initial = initialiser;              \
    const std::vector<size_t> ends = {fields};  \
    TestSizes(test, initial, #C, ends);         \
  }
#define E(...)
#define P(...)
#define CALL(...)
#include "structs.inc"
#undef F
#undef S
#undef E
#undef P
#undef CALL
  EXPECT_GE(structs, 49u);
}

// Writes a C++ value to C structs of every size, and expects each field that
// the struct is long enough to hold.
template <class C>
void ExpectEachWritten(const C& before) {
  C changed = before;
  for (const Field& field : FieldsOf<C>()) Change(field, &changed);
  const CppOf<C> cpp = Read(changed);
  for (size_t size = sizeof(uint32_t); size <= sizeof(C); ++size) {
    const std::unique_ptr<unsigned char[]> bytes(new unsigned char[size]);
    std::memcpy(bytes.get(), &before, size);
    auto* given = reinterpret_cast<C*>(bytes.get());
    given->size = static_cast<uint32_t>(size);
    WriteFields(cpp, given);
    EXPECT_EQ(given->size, size);
    for (const Field& field : FieldsOf<C>()) {
      if (field.c_end > size) continue;
      EXPECT_TRUE(Same(field, given, &cpp)) << field.name << " of " << size;
    }
  }
}
TEST(Written, EachFieldOfPresets) {
  ExpectEachWritten<swy_preset>(SWY_PRESET_INIT);
  ExpectEachWritten<swy_route_options>(SWY_ROUTE_OPTIONS_INIT);
  ExpectEachWritten<swy_activate_options>(SWY_ACTIVATE_OPTIONS_INIT);
  ExpectEachWritten<swy_combine_options>(SWY_COMBINE_OPTIONS_INIT);
  ExpectEachWritten<swy_combine_form>(SWY_COMBINE_FORM_INIT);
  ExpectEachWritten<swy_model_config>(SWY_MODEL_CONFIG_INIT);
}

// Sets one field of a report at a time. The other fields keep their values.
TEST(Reporting, TellsWhatWasSet) {
  for (const Field& field : FieldsOf<swy_report>()) {
    swy_report given = {
        sizeof(swy_report), 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81};
    const swy_report before = given;
    Reporting reporting(&given, ArgumentTexts());
    ASSERT_TRUE(reporting.status.ok());
    *At<size_t>(reporting.report(), field.offset) = 0;
    reporting.Tell();
    for (const Field& other : FieldsOf<swy_report>()) {
      const size_t had = *At<size_t>(&before, other.c_offset);
      EXPECT_EQ(*At<size_t>(&given, other.c_offset), &other == &field ? 0 : had)
          << other.name;
    }
  }
  EXPECT_EQ(Reporting(nullptr, ArgumentTexts()).report(), nullptr);
}

// If the C++ type cannot hold an enumerator, the conversion gives a value
// that is not an enumerator of the type.
TEST(Enums, DoNotWrap) {
  for (const int32_t value : {-1, 256, 257, 1 << 30}) {
    swy_route_options options = SWY_ROUTE_OPTIONS_INIT;
    options.score = value;
    EXPECT_EQ(static_cast<int>(Read(options).score), 255) << value;
  }
}

}  // namespace
}  // namespace switchyard::c
