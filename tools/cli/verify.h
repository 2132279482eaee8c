// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_VERIFY_H_
#define SWITCHYARD_TOOLS_CLI_VERIFY_H_

#include <cstddef>
#include <string>
#include <vector>

namespace swy {

// `swy verify`: computes the corpus of `kernels` (none: of all) on each of
// `isas`, on one thread and, unless `threads` is 1, on a pool of as many (0:
// one per core), and compares it with the digests that the library was released
// with. 1 if any differs.
int Verify(const std::vector<std::string>& kernels,
           const std::vector<std::string>& isas, size_t threads);

// `swy verify --print`: the lines of digests.inc, from the active ISA.
int PrintDigests(const std::vector<std::string>& kernels);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_VERIFY_H_
