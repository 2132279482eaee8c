// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Integer divisions in a module's LLVM text. x86 raises SIGFPE where the
// divisor is zero and where the quotient overflows (INT_MIN / -1), which ends
// the process. Metal leaves these results unspecified and goes on.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// Part of a cached module's key: another one for each change of the divisions.
constexpr char kDivisionsVersion[] = "divisions 1";

// Replaces the divisor by 1 where the division would trap: the quotient is the
// dividend, which is right for INT_MIN / -1, and the remainder is 0. A checked
// module also tells the library of it. Returns how many divisions have changed.
//
// The text must be the one in front of Clang's optimisations, because these
// take a division for a proof that its divisor is not zero.
size_t DefineDivisions(std::string& llvm, bool checked);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_DIVISIONS_H_
