// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// layout FOLDER: prints the facts that a program compiled against switchyard.h
// relies on: sizes of structs, offsets, sizes and defaults of fields, and the
// enumerators of the headers in FOLDER, which have to be those of C++ by value
// and name. The bindings of other languages test theirs against it.

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <type_traits>

#include "src/c/fields.h"
#include "src/calls/names.h"
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
  if constexpr (std::is_same_v<C, swy_experts_plan_outputs>) {
    std::printf("  plan %zu %zu\n", offsetof(C, plan), sizeof(C::plan));
  }
  if constexpr (std::is_same_v<C, swy_experts_inputs>) {
    std::printf("  plan %zu %zu\n  combine %zu %zu\n", offsetof(C, plan),
                sizeof(C::plan), offsetof(C, combine), sizeof(C::combine));
  }
  if constexpr (std::is_same_v<C, swy_experts_options>) {
    std::printf(
        "  activate %zu %zu\n  combine %zu %zu\n"
        "  shared_activate %zu %zu\n",
        offsetof(C, activate), sizeof(C::activate), offsetof(C, combine),
        sizeof(C::combine), offsetof(C, shared_activate),
        sizeof(C::shared_activate));
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
// Structs that are on no list.
#define SWITCHYARD_PRINT_OTHER(field) \
  std::printf("  " #field " %zu %zu\n", offsetof(C, field), sizeof(C::field));
#define SWITCHYARD_OTHERS(S, X)                                    \
  S(swy_status, X(code) X(message))                                \
  S(swy_matrix, X(data) X(rows) X(cols) X(stride) X(type))         \
  S(swy_rows, X(values) X(scales) X(sums))                         \
  S(swy_executor,                                                  \
    X(size) X(context) X(concurrency) X(parallel_for) X(fork_ns))  \
  S(swy_isa, X(name) X(fma))                                       \
  S(swy_optional_count, X(is_set) X(value))                        \
  S(swy_optional_flag, X(is_set) X(value))                         \
  S(swy_optional_number, X(is_set) X(value))                       \
  S(swy_i32_span, X(data) X(size))                                 \
  S(swy_u32_span, X(data) X(size))                                 \
  S(swy_i64_span, X(data) X(size))                                 \
  S(swy_work_tile_span, X(data) X(size))                           \
  S(swy_block_q8_0, X(d) X(qs))                                    \
  S(swy_block_q8_1, X(d) X(s) X(qs))                               \
  S(swy_block_q8_k, X(d) X(qs) X(bsums))                           \
  S(swy_expert_tile,                                               \
    X(product) X(expert) X(first_column) X(worker) X(rows) X(out)) \
  S(swy_expert_gemm, X(size) X(run) X(context))                    \
  S(swy_experts_plan, X(opaque))
#define SWITCHYARD_PRINT_OTHER_STRUCT(CStruct, list)           \
  {                                                            \
    using C = CStruct;                                         \
    std::printf(#CStruct " %zu %zu\n", sizeof(C), alignof(C)); \
    list                                                       \
  }

// The enumerators of each enumeration of the headers, by value.
using Enums = std::map<std::string, std::map<int, std::string>>;
Enums ReadEnums(const char* folder) {
  Enums enums;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::string line, name;
    while (std::getline(file, line)) {
      static const std::regex kBegin("enum (swy_\\w+) \\{.*"),
          kEnumerator("(SWY_\\w+) = (\\d+)");
      std::smatch found;
      if (std::regex_match(line, found, kBegin)) name = found[1];
      if (name.empty()) continue;
      const std::string code = line.substr(0, line.find("//"));
      for (std::sregex_iterator i(code.begin(), code.end(), kEnumerator), end;
           i != end; ++i) {
        enums[name][std::stoi((*i)[2])] = (*i)[1];
      }
      if (code.find('}') != code.npos) name.clear();
    }
  }
  return enums;
}

// Prints them; false unless they are those of E.
template <class E>
bool PrintEnum(const Enums& enums, const char* name) {
  std::printf("enum %s\n", name);
  const auto found = enums.find(name);
  if (found == enums.end()) return false;
  bool is_same = found->second.size() == calls::kEnumerators<E>.size();
  for (const auto& [value, c_name] : found->second) {
    std::printf("  %s %d\n", c_name.c_str(), value);
    std::string text;
    const char* const cpp_name = calls::NameOf(static_cast<E>(value));
    for (const char* c = cpp_name; c != nullptr && *c != '\0'; ++c) {
      text += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
    }
    is_same &=
        !text.empty() && c_name.size() > text.size() &&
        c_name.compare(c_name.size() - text.size(), text.size(), text) == 0;
  }
  if (!is_same) {
    std::fprintf(stderr, "%s: the enumerators are not those of C++\n", name);
  }
  return is_same;
}

}  // namespace

bool PrintLayout(const char* folder) {
  SWITCHYARD_C_STRUCTS(SWITCHYARD_PRINT_STRUCT, SWITCHYARD_PRINT_FIELD)
  SWITCHYARD_OTHERS(SWITCHYARD_PRINT_OTHER_STRUCT, SWITCHYARD_PRINT_OTHER)
  const Enums enums = ReadEnums(folder);
  bool is_fine = PrintEnum<StatusCode>(enums, "swy_status_code");
  is_fine &= PrintEnum<Type>(enums, "swy_type");
  is_fine &= PrintEnum<Score>(enums, "swy_score");
  is_fine &= PrintEnum<BiasPlace>(enums, "swy_bias_place");
  is_fine &= PrintEnum<WeightOf>(enums, "swy_weight_of");
  is_fine &= PrintEnum<Divisor>(enums, "swy_divisor");
  is_fine &= PrintEnum<BucketOrder>(enums, "swy_bucket_order");
  is_fine &= PrintEnum<Activation>(enums, "swy_activation");
  is_fine &= PrintEnum<GateUpLayout>(enums, "swy_gate_up_layout");
  is_fine &= PrintEnum<ActivatePlace>(enums, "swy_activate_place");
  is_fine &= PrintEnum<ActivateStores>(enums, "swy_activate_stores");
  is_fine &= PrintEnum<SharedGate>(enums, "swy_shared_gate");
  is_fine &= PrintEnum<NormKind>(enums, "swy_norm_kind");
  is_fine &= PrintEnum<ExpertProduct>(enums, "swy_expert_product");
  return is_fine && enums.size() == 14;
}

}  // namespace switchyard::c

int main(int argc, char** argv) {
  return argc == 2 && switchyard::c::PrintLayout(argv[1]) ? 0 : 1;
}
