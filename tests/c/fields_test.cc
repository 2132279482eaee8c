// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Each field of each struct of switchyard.h arrives in the one of the C++ API,
// and no other does; what is not given has the default.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "gtest/gtest.h"
#include "src/c/call.h"
#include "tests/c/initial.h"

namespace switchyard::c {
namespace {

static_assert(NumFields<Report>() == 10);  // the count itself

// Whether a value of C is that of C++, told without the conversions.
template <class T>
bool Same(const T& c, const T& cpp) {
  return c == cpp;
}
template <class T, class = std::enable_if_t<std::is_enum_v<T> ||
                                            std::is_same_v<T, bool>>>
bool Same(int32_t c, T cpp) {
  return c == static_cast<int32_t>(cpp);
}
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
template <class C, class = std::enable_if_t<(Fields<C>::kExtra == 0)>>
bool Same(const C& c, const CppOf<C>& cpp) {
  bool same = true;
  Fields<C>::ForEach([&](const char*, size_t, auto in_c, auto in_cpp) {
    same &= Same(c.*in_c, cpp.*in_cpp);
  });
  return same;
}

template <class C>
auto EndOfReport(const C* c, size_t) -> decltype(sizeof(c->report)) {
  return offsetof(C, report) + sizeof(c->report);
}
size_t EndOfReport(const swy_preset*, size_t) {
  return offsetof(swy_preset, form) + sizeof(swy_preset::form);
}
template <class... None>
size_t EndOfReport(const void*, size_t last, None...) {
  return last;
}

// Another value of each field, each different from the one before.
size_t number = 1;
void Change(int32_t* value) { *value = *value == 0; }
void Change(uint32_t* value) { *value += 3; }
void Change(int64_t* value) { *value += 3; }
void Change(size_t* value) { *value += ++number; }
void Change(float* value) { *value += 0.25f * static_cast<float>(++number); }
void Change(const char** value) { *value = "changed"; }
void Change(void (**value)(void*)) {
  *value = [](void*) {};
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
template <class C>
auto Change(C* c) -> std::enable_if_t<(Fields<C>::kExtra == 0)> {
  Fields<C>::ForEach(
      [&](const char*, size_t, auto field, auto) { Change(&(c->*field)); });
}

template <class C>
CppOf<C> Read(const C& c) {
  CppOf<C> cpp = Default<CppOf<C>>();
  if constexpr (Fields<C>::kExtra == 0) {
    Convert(&c, &cpp);
  } else {
    ReadFields(&c, &cpp);
  }
  return cpp;
}

// test(value of the struct as its macro makes it), for each of them.
template <class Test>
void ForEachStruct(const Test& test){
#define SWITCHYARD_TEST_STRUCT(C, ...)                        \
  {                                                           \
    const testing::ScopedTrace trace(__FILE__, __LINE__, #C); \
    test(Initial<C>());                                       \
  }
#define SWITCHYARD_NO_FIELD(field)
    SWITCHYARD_C_STRUCTS(SWITCHYARD_TEST_STRUCT, SWITCHYARD_NO_FIELD)
#undef SWITCHYARD_TEST_STRUCT
#undef SWITCHYARD_NO_FIELD
}

TEST(Fields, HaveTheDefaultsOfCpp) {
  ForEachStruct([](const auto& c) {
    using C = std::decay_t<decltype(c)>;
    const CppOf<C> cpp = Default<CppOf<C>>();
    Fields<C>::ForEach([&](const char* name, size_t, auto in_c, auto in_cpp) {
      EXPECT_TRUE(Same(c.*in_c, cpp.*in_cpp)) << name;
    });
  });
}

TEST(Fields, ArriveEachAlone) {
  ForEachStruct([](const auto& initial) {
    using C = std::decay_t<decltype(initial)>;
    const CppOf<C> unchanged = Read(initial);
    Fields<C>::ForEach([&](const char* name, size_t, auto in_c, auto in_cpp) {
      C c = initial;
      Change(&(c.*in_c));
      EXPECT_FALSE(Same(c.*in_c, unchanged.*in_cpp)) << name;
      const CppOf<C> cpp = Read(c);
      Fields<C>::ForEach([&](const char* other, size_t, auto other_c,
                             auto other_cpp) {
        EXPECT_TRUE(Same(c.*other_c, cpp.*other_cpp)) << name << ": " << other;
      });
    });
  });
}

// In memory that ends where the struct does, which AddressSanitizer sees.
TEST(Fields, ThatAreMissingHaveTheirDefaults) {
  ForEachStruct([](const auto& initial) {
    using C = std::decay_t<decltype(initial)>;
    if constexpr (Fields<C>::kExtra != 0) {
      C whole = initial;
      Fields<C>::ForEach([&](const char*, size_t, auto field, auto) {
        Change(&(whole.*field));
      });
      for (size_t size = sizeof(uint32_t); size <= sizeof whole; ++size) {
        whole.size = static_cast<uint32_t>(size);
        const std::unique_ptr<unsigned char[]> bytes(new unsigned char[size]);
        std::memcpy(bytes.get(), &whole, size);
        const auto* given = reinterpret_cast<const C*>(bytes.get());
        ASSERT_TRUE(HasSize(given) && IsKnown(given));
        CppOf<C> cpp = Default<CppOf<C>>();
        ReadFields(given, &cpp);
        Fields<C>::ForEach([&](const char* name, size_t end, auto in_c,
                               auto in_cpp) {
          EXPECT_TRUE(Same((end <= size ? whole : initial).*in_c, cpp.*in_cpp))
              << name << " of " << size;
        });
      }
    }
  });
}

// An older caller's padding would be taken for a later field.
TEST(Fields, LeaveNoPaddingBehindThem) {
  ForEachStruct([](const auto& initial) {
    using C = std::decay_t<decltype(initial)>;
    if constexpr (Fields<C>::kExtra != 0) {
      size_t last = sizeof(uint32_t);
      Fields<C>::ForEach([&](const char*, size_t end, auto, auto) {
        last = std::max(last, end);
      });
      EXPECT_EQ(EndOfReport(&initial, last), sizeof(C));
    }
  });
}

// A value of C++, written to structs of C of every size.
template <class C>
void ExpectWritten(const CppOf<C>& cpp) {
  for (size_t size = sizeof(uint32_t); size <= sizeof(C); ++size) {
    const C before = Initial<C>();
    const std::unique_ptr<unsigned char[]> bytes(new unsigned char[size]);
    std::memcpy(bytes.get(), &before, size);
    auto* given = reinterpret_cast<C*>(bytes.get());
    given->size = static_cast<uint32_t>(size);
    WriteFields(cpp, given);
    EXPECT_EQ(given->size, size);
    Fields<C>::ForEach([&](const char* name, size_t end, auto in_c,
                           auto in_cpp) {
      if (end <= size) {
        EXPECT_TRUE(Same(given->*in_c, cpp.*in_cpp)) << name << " of " << size;
      }
    });
  }
}
template <class C>
void ExpectEachWritten() {
  C changed = Initial<C>();
  Fields<C>::ForEach([&](const char*, size_t, auto field, auto) {
    Change(&(changed.*field));
  });
  ExpectWritten<C>(Read(changed));
}
TEST(Written, EachFieldOfPresets) {
  ExpectEachWritten<swy_preset>();
  ExpectEachWritten<swy_route_options>();
  ExpectEachWritten<swy_activate_options>();
  ExpectEachWritten<swy_combine_options>();
  ExpectEachWritten<swy_combine_form>();
  ExpectEachWritten<swy_model_config>();
}

// The others stay as they are, and are not even read: they may be another
// thread's.
TEST(Reporting, TellsWhatWasSet) {
  Fields<swy_report>::ForEach(
      [&](const char* name, size_t, auto in_c, auto in_cpp) {
        swy_report given = {
            sizeof(swy_report), 71, 72, 73, 74, 75, 76, 77, 78, 79, 80};
        const swy_report before = given;
        Reporting reporting(&given, ArgumentTexts());
        ASSERT_TRUE(reporting.status.ok());
        reporting.report()->*in_cpp = 0;
        reporting.Tell();
        Fields<swy_report>::ForEach(
            [&](const char* other, size_t, auto other_c, auto) {
              const bool is_it = std::strcmp(name, other) == 0;
              EXPECT_EQ(given.*other_c, is_it ? 0 : before.*other_c) << other;
            });
        EXPECT_EQ(given.*in_c, 0u);
        // Once: another thread may have read it, and set it anew.
        given.*in_c = 81;
        reporting.Tell();
        EXPECT_EQ(given.*in_c, 81u);
      });
  EXPECT_EQ(Reporting(nullptr, ArgumentTexts()).report(), nullptr);
}

// An enumerator that does not fit the C++ type is none of its members.
TEST(Enums, DoNotWrap) {
  for (const int32_t value : {-1, 256, 257, 1 << 30}) {
    Score score = Score::kSoftmax;
    Convert(&value, &score);
    EXPECT_EQ(static_cast<int>(score), 255) << value;
  }
}

}  // namespace
}  // namespace switchyard::c
