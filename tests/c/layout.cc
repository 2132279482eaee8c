// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Prints what a program that was compiled against switchyard.h relies on: sizes
// of structs, offsets, sizes and defaults of fields, and enumerators. The
// bindings of other languages test theirs against it.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "src/c/enums.h"
#include "tests/c/initial.h"

namespace switchyard::c {
namespace {

void PrintDefault(int32_t value) { std::printf(" %d", value); }
void PrintDefault(uint32_t value) { std::printf(" %u", value); }
void PrintDefault(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  std::printf(" 0x%08x", bits);
}
void PrintDefault(size_t value) {
  if (value == SIZE_MAX) {
    std::printf(" max");
  } else {
    std::printf(" %zu", value);
  }
}
template <class T>
void PrintDefault(const T&) {}  // all zeros

// Fields that C has alone.
template <class C>
auto PrintReport(const C*, int) -> decltype(static_cast<void>(C::report)) {
  std::printf("  report %zu %zu\n", offsetof(C, report), sizeof(C::report));
}
template <class C>
void PrintReport(const C*, long) {}
template <class C>
void PrintExtra() {
  if constexpr (Fields<C>::kExtra != 0) {
    std::printf("  size %zu %zu\n", offsetof(C, size), sizeof(C::size));
  }
  PrintReport(static_cast<const C*>(nullptr), 0);
  if constexpr (std::is_same_v<C, swy_combine_inputs>) {
    std::printf("  token_order %zu %zu 0\n", offsetof(C, token_order),
                sizeof(C::token_order));
  }
  if constexpr (std::is_same_v<C, swy_preset>) {
    std::printf("  activate %zu %zu\n  combine %zu %zu\n  form %zu %zu\n",
                offsetof(C, activate), sizeof(C::activate),
                offsetof(C, combine), sizeof(C::combine), offsetof(C, form),
                sizeof(C::form));
  }
}

#define SWITCHYARD_PRINT_FIELD(field)                                        \
  std::printf("  " #field " %zu %zu", offsetof(C, field), sizeof(C::field)); \
  PrintDefault(initial.field);                                               \
  std::printf("\n");
#define SWITCHYARD_PRINT_STRUCT(CStruct, Cpp, c_alone, cpp_alone, list) \
  {                                                                     \
    using C = CStruct;                                                  \
    [[maybe_unused]] const C initial = Initial<C>();                    \
    std::printf(#CStruct " %zu %zu\n", sizeof(C), alignof(C));          \
    PrintExtra<C>();                                                    \
    list                                                                \
  }
#define SWITCHYARD_PRINT_ENUMERATOR(c_name, name) \
  std::printf("  " #c_name " %d\n", static_cast<int>(c_name));
#define SWITCHYARD_PRINT_ENUM(CEnum, Cpp, list) \
  std::printf("enum " #CEnum "\n");             \
  list
// Structs that are on no list.
#define SWITCHYARD_PRINT_OTHER(field) \
  std::printf("  " #field " %zu %zu\n", offsetof(C, field), sizeof(C::field));
#define SWITCHYARD_OTHERS(S, X)                                      \
  S(swy_status, X(code) X(message))                                  \
  S(swy_matrix, X(data) X(rows) X(cols) X(stride) X(type))           \
  S(swy_rows, X(values) X(scales) X(sums))                           \
  S(swy_executor, X(size) X(context) X(concurrency) X(parallel_for)) \
  S(swy_isa, X(name) X(fma))                                         \
  S(swy_optional_count, X(is_set) X(value))                          \
  S(swy_optional_flag, X(is_set) X(value))                           \
  S(swy_optional_number, X(is_set) X(value))                         \
  S(swy_i32_span, X(data) X(size))                                   \
  S(swy_u32_span, X(data) X(size))                                   \
  S(swy_i64_span, X(data) X(size))                                   \
  S(swy_work_tile_span, X(data) X(size))                             \
  S(swy_block_q8_0, X(d) X(qs))                                      \
  S(swy_block_q8_1, X(d) X(s) X(qs))                                 \
  S(swy_block_q8_k, X(d) X(qs) X(bsums))
#define SWITCHYARD_PRINT_OTHER_STRUCT(CStruct, list)           \
  {                                                            \
    using C = CStruct;                                         \
    std::printf(#CStruct " %zu %zu\n", sizeof(C), alignof(C)); \
    list                                                       \
  }

}  // namespace

void PrintLayout() {
  SWITCHYARD_C_STRUCTS(SWITCHYARD_PRINT_STRUCT, SWITCHYARD_PRINT_FIELD)
  SWITCHYARD_OTHERS(SWITCHYARD_PRINT_OTHER_STRUCT, SWITCHYARD_PRINT_OTHER)
  SWITCHYARD_C_ENUMS(SWITCHYARD_PRINT_ENUM, SWITCHYARD_PRINT_ENUMERATOR)
}

}  // namespace switchyard::c

int main() { switchyard::c::PrintLayout(); }
