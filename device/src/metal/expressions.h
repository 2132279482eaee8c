// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Passes over expressions that have other types in C++ than in Metal. Both
// only edit the text, and do not look at declarations.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_

#include "device/src/metal/text.h"

namespace switchyard::device::metal {

// Rewrites swizzles that C++ reads differently. A swizzle of a swizzle
// becomes one: v.xyz.xy is v.xy. A swizzle that `auto` or a template
// parameter deduces a type from becomes a vec by a plus: auto a = +v.xy,
// f(+v.xy). Names that the shader declares as members are left alone.
void ResolveSwizzles(Text& text);

// half is a class here, with conversions to and from float. C++ calls a
// conditional of a half and a float ambiguous; Metal does not. This marks
// both arms, so that the shim chooses the type: `c ? a : b` becomes
// switchyard_metal::Either(c ? (a, Arm()) : (b, Arm())). Does nothing if the
// text names no half or bfloat, and skips forms that it can't tell for sure.
// The text must be balanced.
void MarkConditionals(Text& text);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_
