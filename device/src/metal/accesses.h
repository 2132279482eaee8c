// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds the loads and stores in a checked module's LLVM text. Clang's
// -fsanitize=thread puts a call before each access of 8, 16, 32, 64 or 128
// bits. It puts no call before accesses of other sizes, such as a ulong4 or
// the 40 bits of {uint; bool}, so InstrumentRest() adds these calls.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// The numbers of accesses in the shader's functions. Accesses in the shim's
// functions are not counted, because these functions report them themselves.
struct Accesses {
  size_t all = 0;
  size_t by_clang = 0;  // accesses for which Clang has added a call
  size_t added = 0;     // accesses for which InstrumentRest() adds a call
  // Accesses to a thread's own variable, or to a constant.
  size_t need_none = 0;
};

// This text is part of a cached module's key. Change it whenever the code
// changes, so that cached modules are compiled again.
constexpr char kAccessesVersion[] = "accesses 1";

// Adds the missing calls. Throws std::runtime_error if an access has no call
// afterwards.
Accesses InstrumentRest(std::string& llvm);

// Counts the accesses and changes nothing. Throws std::runtime_error if an
// access has no call.
Accesses CountAccesses(const std::string& llvm);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_
