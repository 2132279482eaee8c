// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Integer divisions in a module's LLVM text. x86 raises SIGFPE, which ends
// the process, if the divisor is zero or the quotient overflows (INT_MIN /
// -1). Metal leaves these results unspecified and goes on.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// Part of a cached module's key. Change it with the code, so that cached
// modules are compiled again.
constexpr char kDivisionsVersion[] = "divisions 1";

// Replaces the divisor by 1 where the division would trap. The quotient is
// then the dividend, which is right for INT_MIN / -1, and the remainder is 0.
// A checked module also reports the division to the library. Returns the
// number of changed divisions.
//
// Run this before Clang's optimisations, because they take a division for
// proof that its divisor is not zero.
size_t DefineDivisions(std::string& llvm, bool checked);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_
