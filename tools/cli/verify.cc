// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/verify.h"

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "programs/arguments.h"
#include "programs/program.h"
#include "switchyard/isa.h"
#include "tools/cli/isas.h"
#include "tools/corpus/corpus.h"

namespace swy {
namespace {

using switchyard::corpus::Case;
using switchyard::corpus::Digests;
using switchyard::corpus::Expected;

Digests Compute(const Case& c, switchyard::Executor& executor) {
  Digests digests;
  c.run(executor, digests);
  if (!digests.status.ok()) {
    throw std::runtime_error(c.name + ": " + digests.status.message());
  }
  return digests;
}

// Returns "equal" or the difference from the case's stored digest.
const char* CompareWithKept(const Case& c, const Digests& digests, bool fma) {
  const Expected* const expected = switchyard::corpus::Find(c.name);
  if (expected == nullptr) return "has no digest";
  if (digests.exact.value() != expected->exact) return "differs in integers";
  // On ISAs without FMA, only the integers have to be equal.
  if (fma && digests.floats.value() != expected->floats) {
    return "differs in floats";
  }
  return "equal";
}

// Prints and counts the cases that differ.
size_t CountDifferent(const std::vector<Case>& cases,
                      switchyard::Executor& executor, const char* threads) {
  const switchyard::Isa& isa = switchyard::ActiveIsa();
  size_t different = 0;
  for (const Case& c : cases) {
    const std::string result =
        CompareWithKept(c, Compute(c, executor), isa.fma);
    // Asks which ISA the last kernel ran on. Otherwise nothing would show if
    // the cap did not work.
    if (switchyard::LastIsa()->name != std::string(isa.name)) {
      throw std::runtime_error(std::string("asked for ") + isa.name + ", ran " +
                               switchyard::LastIsa()->name);
    }
    if (result == "equal") continue;
    ++different;
    std::printf("%s, %s: \"%s\" %s\n", isa.name, threads, c.name.c_str(),
                result.c_str());
  }
  return different;
}

}  // namespace

int Verify(const std::vector<std::string>& kernels,
           const std::vector<std::string>& isas, size_t threads) {
  const std::vector<Case> cases = switchyard::corpus::Cases(kernels);
  std::shared_ptr<switchyard::Executor> pool;
  if (threads != 1) {
    pool = program::MakePool(threads == 0 ? std::nullopt
                                          : std::optional<size_t>(threads));
  }
  size_t different = 0;
  for (const std::string& name : isas) {
    Check(switchyard::CapIsa(name.c_str()));
    const switchyard::Isa& isa = switchyard::ActiveIsa();
    size_t here =
        CountDifferent(cases, switchyard::SerialExecutor(), "one thread");
    if (pool != nullptr) {
      here += CountDifferent(cases, *pool, "a pool");
    }
    std::printf("%-8s %zu cases, %s%s: %s\n", isa.name, cases.size(),
                isa.fma ? "every bit" : "integers (no FMA)",
                pool == nullptr ? ", one thread" : "",
                here == 0 ? "equal" : "DIFFERENT");
    program::FlushOutput();
    different += here;
  }
  Check(switchyard::CapIsa(nullptr));
  return different == 0 ? 0 : 1;
}

int PrintDigests(const std::vector<std::string>& kernels) {
  for (const Case& c : switchyard::corpus::Cases(kernels)) {
    const Digests digests = Compute(c, switchyard::SerialExecutor());
    std::printf("{\"%s\", 0x%016" PRIx64 "u, 0x%016" PRIx64 "u},\n",
                c.name.c_str(), digests.exact.value(), digests.floats.value());
  }
  return 0;
}

}  // namespace swy
