// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_VERIFY_H_
#define SWITCHYARD_TOOLS_CLI_VERIFY_H_

#include <cstddef>
#include <string>
#include <vector>

namespace swy {

// `swy verify`: computes the corpus of `kernels` (empty: all) on each of
// `isas`, first on one thread. Unless `threads` is 1, also computes it on a
// pool with that many threads (0: one per core). Compares the results with
// the digests of the release. Returns 1 if any case differs.
int Verify(const std::vector<std::string>& kernels,
           const std::vector<std::string>& isas, size_t threads);

// `swy verify --print`: prints the lines of digests.inc for the active ISA.
int PrintDigests(const std::vector<std::string>& kernels);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_VERIFY_H_
