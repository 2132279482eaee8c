// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Loads and stores in a checked module's LLVM text. Clang's -fsanitize=thread
// puts a call before each access of 8, 16, 32, 64 or 128 bits, and skips all
// other sizes: a ulong4, the 40 bits of {uint; bool}.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_
#define SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// Counts of accesses in functions of the shader. The shim's functions report
// their accesses themselves.
struct Accesses {
  size_t all = 0;
  size_t by_clang = 0;   // with a call by Clang
  size_t added = 0;      // with a call that InstrumentRest() adds
  size_t need_none = 0;  // to a thread's own variable, or a constant
};

// Part of a cached module's key. Change it with the code, so that cached
// modules are compiled again.
constexpr char kAccessesVersion[] = "accesses 1";

// Adds the missing calls. Throws std::runtime_error if an access has no call
// afterwards.
Accesses InstrumentRest(std::string& llvm);

// Only counts. Throws std::runtime_error for an access without a call.
Accesses CountAccesses(const std::string& llvm);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_ACCESSES_H_
