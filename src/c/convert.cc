// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/c/convert.h"

namespace switchyard::c {

const Field* FindWrongFlag(const Field* begin, const Field* end, const void* c,
                           size_t size, int32_t* value) {
  for (const Field* field = begin; field != end; ++field) {
    if (field->c_end > size) continue;
    bool is_fine = true;
    WithTypes(field->kind, [&](auto types) {
      using Cpp = typename decltype(types)::Cpp;
      is_fine = IsFlagOrOther(static_cast<const Cpp*>(nullptr),
                              At<unsigned char>(c, field->c_offset), value);
    });
    if (!is_fine) return field;
  }
  return nullptr;
}

void ToCpp(const Field& field, const void* c, void* cpp) {
  WithTypes(field.kind, [&](auto types) {
    using T = decltype(types);
    Convert(At<typename T::C>(c, field.c_offset),
            At<typename T::Cpp>(cpp, field.offset));
  });
}
void ToC(const Field& field, const void* cpp, void* c) {
  WithTypes(field.kind, [&](auto types) {
    using T = decltype(types);
    if constexpr (!calls::IsView(T::kKind) &&
                  T::kKind != calls::Kind::kReport) {
      Convert(At<typename T::Cpp>(cpp, field.offset),
              At<typename T::C>(c, field.c_offset));
    }
  });
}

}  // namespace switchyard::c
