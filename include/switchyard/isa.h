// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The instruction sets that this library was compiled for, the ones this CPU
// can run, and the one in use. An engine does not need this header, because
// the library picks the best one on first use. It is for programs, tests and
// benchmarks.

#ifndef SWITCHYARD_ISA_H_
#define SWITCHYARD_ISA_H_

#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

struct Isa {
  // Highway's name: "AVX3_DL", "AVX2", "SSE4", "NEON", "SCALAR". AVX3_DL is
  // AVX-512 from Ice Lake on; kernels that have no use for its extra
  // instructions run the code of AVX3.
  const char* name;
  // Has a fused multiply-add. All ISAs with one give the same bits for the
  // same input; the others agree in expert ids and, within the bounds each
  // function states, in values.
  bool fma;
};

// Best first. The lists never change while the process runs.
Span<const Isa> CompiledIsas() noexcept;
// RunnableIsas(): compiled, and this CPU has the instructions, and its system
// saves the registers that they use. A virtual machine may hide the registers
// of AVX or AVX-512 and still list the instructions: OSXSAVE and XCR0 decide
// on x86.
Span<const Isa> RunnableIsas() noexcept;

// The ISA that the next call uses: the first runnable one that the cap allows.
const Isa& ActiveIsa() noexcept;

// The ISA that the most recent kernel call of the process ran, recorded by the
// code compiled for it; nullptr before the first call.
const Isa* LastIsa() noexcept;

// Uses no ISA better than the one named (case-sensitive); nullptr lifts the
// cap. kInvalidArgument, and no change, if this library is not compiled for it
// or this CPU cannot run it: RunnableIsas() has the choices.
//
// Meant to be called once, before the first kernel. Later calls are safe from
// any thread, but a kernel already running may finish with either ISA. Only
// this library is affected: Highway's process-wide target choice, which other
// users of Highway in the process share, is read and never written.
Status CapIsa(const char* name) noexcept;

// The environment variable SWITCHYARD_ISA caps the ISA in the same way, for
// debugging a program without changing it: SWITCHYARD_ISA=AVX2 ./engine. It
// is read once, on first use. With a name that CapIsa would refuse, this
// returns kInvalidArgument, and every kernel returns that without doing
// anything, because a run on another ISA would mislead. RunnableIsas() has
// the choices.
Status EnvironmentIsa() noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ISA_H_
