// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Swizzles where C++ sees more than a vector: v.xyz.xy, auto a = v.xy, f(v.xy).

#ifndef SWITCHYARD_SRC_DEVICE_METAL_SWIZZLES_H_
#define SWITCHYARD_SRC_DEVICE_METAL_SWIZZLES_H_

#include "src/device/metal/edits.h"
#include "src/device/metal/lexer.h"

namespace switchyard::device::metal {

// A swizzle of a swizzle becomes the one of both. What a variable's auto or a
// template parameter of the shader's functions takes its type from becomes a
// vec: +v.xy. Names that the shader itself declares are members of its own, and
// left alone.
void ResolveSwizzles(const Tokens& tokens, Edits& edits);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_SRC_DEVICE_METAL_SWIZZLES_H_
