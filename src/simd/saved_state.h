// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The vector registers that the operating system saves when it changes threads.

#ifndef SWITCHYARD_SRC_SIMD_SAVED_STATE_H_
#define SWITCHYARD_SRC_SIMD_SAVED_STATE_H_

#include <cstdint>

namespace switchyard::simd {

// CPUID lists the instructions that the CPU has. Instructions on YMM and ZMM
// registers are illegal unless the system also saves these registers when it
// changes threads. System kernels and virtual machines can hide registers, but
// leave the instructions in CPUID. If OSXSAVE (CPUID 1, bit 27 of ECX) is set,
// XGETBV may be called. It reads XCR0, which has a bit per set of registers.
struct SavedState {
  bool avx;     // XMM and YMM are saved, so AVX2 may run
  bool avx512;  // also opmasks and both parts of ZMM, so AVX-512 may run
};
constexpr SavedState SavedStateOf(bool has_osxsave, uint64_t xcr0) {
  constexpr uint64_t kXmmAndYmm = 0x6, kOpmasksAndZmm = 0xE0;
  const bool avx = has_osxsave && (xcr0 & kXmmAndYmm) == kXmmAndYmm;
  return {avx, avx && (xcr0 & kOpmasksAndZmm) == kOpmasksAndZmm};
}

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_SAVED_STATE_H_
