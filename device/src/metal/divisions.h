// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Changes integer divisions in a module's LLVM text. On x86 a division raises
// SIGFPE, which ends the process, if the divisor is zero or if the quotient
// overflows (INT_MIN / -1). In Metal the result is then unspecified and the
// kernel goes on.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// This text is part of a cached module's key. Change it whenever the code
// changes, so that cached modules are compiled again.
constexpr char kDivisionsVersion[] = "divisions 1";

// Makes each division that would trap divide by 1 instead. The quotient is
// then the dividend, which is right for INT_MIN / -1, and the remainder is 0.
// In a checked module such a division is also reported to the library.
// Returns the number of changed divisions.
//
// Run this before Clang's optimisations, because they take a division as
// proof that its divisor is not zero.
size_t DefineDivisions(std::string& llvm, bool checked);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_
