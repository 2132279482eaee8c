// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The loads and stores in a checked module's LLVM text. Clang's
// -fsanitize=thread calls a function before each of 8, 16, 32, 64 or 128 bits,
// and leaves out all others: a ulong4, the 40 bits of {uint; bool}.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// In functions of the shader; those of the shim tell of theirs by themselves.
struct Accesses {
  size_t all = 0;
  size_t by_clang = 0;   // a call is before it
  size_t added = 0;      // it is ours
  size_t need_none = 0;  // of a thread's own variable, or of a constant
};

// Part of a cached module's key: another one for each change of the calls.
constexpr char kAccessesVersion[] = "accesses 1";

// Puts calls before the accesses that have none. Throws std::runtime_error if
// afterwards one is without.
Accesses InstrumentRest(std::string& llvm);

// Counts, and adds nothing. Throws as above.
Accesses CountAccesses(const std::string& llvm);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_
