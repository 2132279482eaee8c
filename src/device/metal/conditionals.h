// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// half is a class here, which becomes a float and is made of one. Of two such
// types C++ says that `c ? h : f` has two meanings, where Metal has one.

#ifndef SWITCHYARD_SRC_DEVICE_METAL_CONDITIONALS_H_
#define SWITCHYARD_SRC_DEVICE_METAL_CONDITIONALS_H_

#include "src/device/metal/edits.h"
#include "src/device/metal/lexer.h"

namespace switchyard::device::metal {

// Marks the parts of conditional expressions for the shim to say what type they
// have: `c ? a : b` is switchyard_metal::Either(c ? (a, Arm()) : (b, Arm())).
// Does nothing where no half or bfloat is named, and leaves out what may be
// something else than it looks like. For balanced text.
void MarkConditionals(const Tokens& tokens, Edits& edits);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_SRC_DEVICE_METAL_CONDITIONALS_H_
