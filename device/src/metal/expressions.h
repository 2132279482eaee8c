// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The passes over expressions where C++ and Metal differ on their types. Both
// only edit, and need no knowledge of declarations.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_

#include "device/src/metal/text.h"

namespace switchyard::device::metal {

// A swizzle where C++ sees more than a vector (v.xyz.xy, auto a = v.xy,
// f(v.xy)): a swizzle of a swizzle becomes the one of both. What a variable's
// auto or a template parameter of the shader's functions takes its type from
// becomes a vec: +v.xy. Names that the shader itself declares are members of
// its own, and left alone.
void ResolveSwizzles(Text& text);

// half is a class here, which becomes a float and is made of one. Of two such
// types C++ says that `c ? h : f` has two meanings, where Metal has one: this
// marks the parts of conditional expressions for the shim to say what type they
// have: `c ? a : b` is switchyard_metal::Either(c ? (a, Arm()) : (b, Arm())).
// Does nothing where no half or bfloat is named, and leaves out what may be
// something else than it looks like. For balanced text.
void MarkConditionals(Text& text);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_EXPRESSIONS_H_
