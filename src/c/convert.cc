// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/c/convert.h"

namespace switchyard::c {

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
