// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Cuts the kernels of an unchecked module at their barriers. A region is the
// code from one barrier to the next. In the LLVM text it becomes a work-item
// loop over the threads of a row, which Clang vectorises. So threads need no
// stacks.
//
// The regions are the continuations of Karrenberg and Hack, "Improving
// Performance of OpenCL on CPUs" (CC 2012). Each is a function that takes the
// live values from a context, spills the live values of the next region into
// it, and returns the number of that region. Divergent values are found as in
// the authors' "Whole-Function Vectorization" (CGO 2011): all values count as
// uniform until one is found to depend on a thread's position or on a
// divergent branch.
//
// The work-item loop is that of pocl (Jääskeläinen et al., "pocl: A
// Performance-Portable OpenCL Implementation", International Journal of
// Parallel Programming, 2015). Its accesses are marked as parallel for LLVM's
// loop vectoriser. Each spilled value has an array, and a uniform value has a
// single copy.
//
// Three points are different here:
// * A uniform branch between different barriers ends a region, too, so that
//   the next region is chosen once for all threads. pocl peels off the loop's
//   first iteration for this choice.
// * A kernel with a divergent branch between different barriers is not cut,
//   because only some of the threads may come to a SIMD-group function, which
//   is a barrier here. Such a kernel runs with a fiber for each thread.
// * A divergent value that can be computed from the position and from uniform
//   values in up to 32 steps is rematerialized, and not spilled.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_REGIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_REGIONS_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// This text is part of a cached module's key. Change it whenever the code
// changes, so that cached modules are compiled again.
constexpr char kRegionsVersion[] = "regions 2";

// Cuts kernels, and returns the number of kernels that were cut. Also lets
// Clang inline the shim's barriers and the other functions that the cut looks
// for. With `cut_any` false, cuts no kernel and only lets Clang inline these
// functions.
size_t CutIntoRegions(std::string& llvm, bool cut_any = true);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_REGIONS_H_
