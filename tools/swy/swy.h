// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The commands of swy. Each prints to stdout and returns the exit code.

#ifndef SWITCHYARD_TOOLS_SWY_SWY_H_
#define SWITCHYARD_TOOLS_SWY_SWY_H_

#include <string>
#include <vector>

namespace swy {

// The compiled ISAs, best first: runnable ones, the active one.
int PrintIsas();

// The runnable ISAs' names.
std::vector<std::string> RunnableIsaNames();

// Computes the corpus on each of `isas`, on one thread and, unless `threads` is
// 1, on a pool of as many (0: one per core), and compares it with the digests
// that the library was released with. 1 if any differs.
int Verify(const std::vector<std::string>& isas, int threads);
// The lines of digests.inc, from the active ISA.
int PrintDigests();

// A short matrix of kernels and ISAs, each verified first.
int Bench(const std::vector<std::string>& isas);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_SWY_SWY_H_
