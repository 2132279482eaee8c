// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Two passes over the shader's expressions. They change expressions that have
// another type in C++ than in Metal. Both passes only edit the text, and do
// not look at declarations.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_

#include "device/src/metal/text.h"

namespace switchyard::device::metal {

// Rewrites swizzles that mean something else in C++ than in Metal:
// * A swizzle of a swizzle becomes one swizzle: v.xyz.xy becomes v.xy.
// * If `auto` or a template parameter takes its type from a swizzle, a plus
//   before the swizzle makes it a vec: auto a = +v.xy, f(+v.xy).
// Names that the shader declares as members are left alone.
void ResolveSwizzles(Text& text);

// In the shim half is a class that converts to and from float. So C++ calls a
// conditional of a half and a float ambiguous, and Metal does not. This pass
// marks both arms, so that the shim chooses the type: `c ? a : b` becomes
// switchyard_metal::Either(c ? (a, Arm()) : (b, Arm())). The pass does
// nothing if the text names no half or bfloat, and it skips conditionals
// whose parts it cannot identify for sure. The text must be balanced.
void MarkConditionals(Text& text);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_
