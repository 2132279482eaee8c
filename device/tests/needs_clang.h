// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests that compile at run time need a Clang, which not every machine has.

#ifndef SWITCHYARD_DEVICE_TESTS_NEEDS_CLANG_H_
#define SWITCHYARD_DEVICE_TESTS_NEEDS_CLANG_H_

#include <cstdlib>
#include <exception>
#include <string>

#include "device/src/metal/compile.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {

// Its path; empty if there is none.
inline const std::string& FindClang() {
  static const std::string found = [] {
    try {
      return device::metal::FindCompiler("");
    } catch (const std::exception&) {
      return std::string();
    }
  }();
  return found;
}

}  // namespace switchyard::testing_support

// The rest of the test needs one. With SWITCHYARD_NEED_CLANG in the environment
// it fails without, so that no machine that has one leaves it out unnoticed.
#define SWITCHYARD_NEEDS_CLANG()                                  \
  if (!::switchyard::testing_support::FindClang().empty()) {      \
  } else if (std::getenv("SWITCHYARD_NEED_CLANG") != nullptr) {   \
    FAIL() << "no Clang, and SWITCHYARD_NEED_CLANG asks for one"; \
  } else /* NOLINT(readability/braces) */                         \
    GTEST_SKIP() << "no Clang for shaders: apt-get install clang"

#endif  // SWITCHYARD_DEVICE_TESTS_NEEDS_CLANG_H_
