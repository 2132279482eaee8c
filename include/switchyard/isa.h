// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lists the instruction sets that this library was compiled for and the ones
// that this CPU can run, and tells which one is in use. An engine does not
// need this header, because the library picks the best instruction set on
// first use. The header is for programs, tests and benchmarks.

#ifndef SWITCHYARD_ISA_H_
#define SWITCHYARD_ISA_H_

#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// An instruction set that kernels are compiled for.
struct Isa {
  // Highway's name: "AVX3_DL", "AVX2", "SSE4", "NEON", "SCALAR". AVX3_DL is
  // AVX-512 from Ice Lake on. Kernels that do not use the extra instructions
  // of AVX3_DL run the code of AVX3.
  const char* name;
  // True if the ISA has a fused multiply-add. All ISAs that have it give the
  // same bits for the same input. ISAs without it give the same expert ids,
  // and values within the error bounds that each function states.
  bool fma;
};

// Returns the ISAs that the library was compiled for, the best one first. The
// list never changes while the process runs.
Span<const Isa> CompiledIsas() noexcept;
// Returns the compiled ISAs that can run here, the best one first: the CPU
// has their instructions, and the operating system saves their registers. The
// list never changes while the process runs. On x86 the library checks
// OSXSAVE and XCR0 too, because a virtual machine may hide the registers of
// AVX or AVX-512 and still list the instructions.
Span<const Isa> RunnableIsas() noexcept;

// Returns the ISA that the next call uses: the best runnable one that the cap
// allows.
const Isa& ActiveIsa() noexcept;

// Returns the ISA that the last kernel call of the process ran on, or nullptr
// before the first call. The code that was compiled for an ISA records the
// ISA when it runs.
const Isa* LastIsa() noexcept;

// Caps the ISA: later calls use no ISA better than `name` (case-sensitive).
// nullptr removes the cap. If `name` is not in RunnableIsas(), returns
// kInvalidArgument and changes nothing.
//
// Call CapIsa once, before the first kernel. Any thread may call it later,
// but a kernel that is already running may finish with either ISA. The cap
// affects only this library: other users of Highway in the process share
// Highway's choice of a target, which the library reads and never writes.
Status CapIsa(const char* name) noexcept;

// Returns the error of the environment variable SWITCHYARD_ISA, or OK. The
// variable caps the ISA as CapIsa does, to debug a program without changing
// it: SWITCHYARD_ISA=AVX2 ./engine. It is read once, on first use. If its
// value is not a name in RunnableIsas(), this function and every kernel
// return kInvalidArgument. Kernels then do nothing, because a run on another
// ISA would mislead the user.
Status EnvironmentIsa() noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ISA_H_
