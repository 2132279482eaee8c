// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Prints the facts on which a program compiled against switchyard.h relies:
// the sizes of structs; the offsets, sizes and defaults of fields; and the
// enumerators. Fails if an enumerator differs from C++ in value or name. The
// bindings of other languages compare their layouts with this list.

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "src/calls/names.h"
#include "switchyard/switchyard.h"

namespace switchyard {
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
void PrintDefault(const T&) {}  // prints nothing, because all bytes are zero

struct Enumerator {
  const char* name;
  int value;
};
// Prints the enumerators. Returns false if they differ from the enumerators
// of E.
template <class E>
bool PrintEnum(const char* name, const std::vector<Enumerator>& list) {
  std::printf("enum %s\n", name);
  bool is_same = list.size() == calls::kEnumerators<E>.size();
  for (const Enumerator& enumerator : list) {
    std::printf("  %s %d\n", enumerator.name, enumerator.value);
    const char* const name_in_cpp =
        calls::NameOf(static_cast<E>(enumerator.value));
    std::string text = name_in_cpp == nullptr ? "?" : name_in_cpp;
    for (char& c : text) {
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    const std::string c_name = enumerator.name;
    is_same &= c_name.size() > text.size() &&
               c_name.substr(c_name.size() - text.size()) == text;
  }
  if (!is_same) {
    std::fprintf(stderr, "%s: the enumerators are not those of C++\n", name);
  }
  return is_same;
}

// The C++ enumeration for each C enumeration. If a line for a C enumeration is
// missing here, this file does not compile.
using swy_status_code_cpp = StatusCode;
using swy_type_cpp = Type;
using swy_score_cpp = Score;
using swy_bias_place_cpp = BiasPlace;
using swy_weight_of_cpp = WeightOf;
using swy_divisor_cpp = Divisor;
using swy_bucket_order_cpp = BucketOrder;
using swy_activation_cpp = Activation;
using swy_gate_up_layout_cpp = GateUpLayout;
using swy_activate_place_cpp = ActivatePlace;
using swy_activate_stores_cpp = ActivateStores;
using swy_shared_gate_cpp = SharedGate;
using swy_norm_kind_cpp = NormKind;
using swy_expert_product_cpp = ExpertProduct;
using swy_weight_format_cpp = WeightFormat;
using swy_weight_layout_cpp = WeightLayout;

bool PrintLayout() {
#define F(field)                                                             \
  std::printf("  " #field " %zu %zu", offsetof(C, field), sizeof(C::field)); \
  if (has_defaults && std::strcmp(#field, "size") != 0) {                    \
    PrintDefault(initial.field);                                             \
  }                                                                          \
  std::printf("\n");
#define S(CStruct, has, initialiser, list)                     \
  {                                                            \
    using C = CStruct;                                         \
    constexpr bool has_defaults = has;                         \
    [[maybe_unused]] const C initial = initialiser;            \
    std::printf(#CStruct " %zu %zu\n", sizeof(C), alignof(C)); \
    list                                                       \
  }
#define N(enumerator) {#enumerator, enumerator},
#define P(function) std::printf("function " #function "\n");
#define CALL(...)
#define E(name, list) is_fine &= PrintEnum<name##_cpp>(#name, {list});
  bool is_fine = true;
#include "structs.inc"
  return is_fine;
}

}  // namespace
}  // namespace switchyard

int main() { return switchyard::PrintLayout() ? 0 : 1; }
