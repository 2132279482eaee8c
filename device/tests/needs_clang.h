// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for tests that compile shaders at run time. Such tests need Clang,
// which some machines do not have.

#ifndef SWITCHYARD_DEVICE_TESTS_NEEDS_CLANG_H_
#define SWITCHYARD_DEVICE_TESTS_NEEDS_CLANG_H_

#include <cstdlib>
#include <exception>
#include <string>

#include "device/src/metal/compile.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {

// Returns the path of Clang, or "" if it is missing.
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

// Skips the rest of the test if Clang is missing. If SWITCHYARD_NEED_CLANG is
// in the environment, the test fails instead, so that a machine which should
// have Clang cannot skip the test unnoticed.
#define SWITCHYARD_NEEDS_CLANG()                                  \
  if (!::switchyard::testing_support::FindClang().empty()) {      \
  } else if (std::getenv("SWITCHYARD_NEED_CLANG") != nullptr) {   \
    FAIL() << "no Clang, and SWITCHYARD_NEED_CLANG asks for one"; \
  } else /* NOLINT(readability/braces) */                         \
    GTEST_SKIP() << "no Clang for shaders: apt-get install clang"

#endif  // SWITCHYARD_DEVICE_TESTS_NEEDS_CLANG_H_
