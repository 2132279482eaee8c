// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Cuts the kernels of an unchecked module where their threads meet, in its LLVM
// text: a region, from one meeting to the next, is a loop over the threads,
// which Clang vectorises. So no thread needs a stack of its own. Threads'
// values that later regions need are in a context, an array for each.
//
// A kernel can be cut if all threads of a threadgroup come to the same
// meetings: if each branch that decides between two depends on nothing of a
// thread's own. Others run with a fiber for each thread.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_REGIONS_H_
#define SWITCHYARD_DEVICE_SRC_METAL_REGIONS_H_

#include <cstddef>
#include <string>

namespace switchyard::device::metal {

// Part of a cached module's key: another one for each change of the cuts.
constexpr char kRegionsVersion[] = "regions 2";

// Returns how many kernels have been cut. The places where threads meet are
// calls that have to be inlined afterwards; with `cut_any` false that is all.
size_t CutIntoRegions(std::string& llvm, bool cut_any = true);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_REGIONS_H_
