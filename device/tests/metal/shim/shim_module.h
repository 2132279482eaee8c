// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compiles the shaders in this folder as the library does, when a test asks
// for them, and runs them in a simdgroup of threads.

#ifndef SWITCHYARD_DEVICE_TESTS_METAL_SHIM_SHIM_MODULE_H_
#define SWITCHYARD_DEVICE_TESTS_METAL_SHIM_SHIM_MODULE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/src/shim/switchyard_abi.h"
#include "device/tests/needs_clang.h"

namespace switchyard::testing_support {

// An access that a checked module has reported.
struct Access {
  const void* address;
  size_t bytes;
  uint32_t kind;
  uint32_t lane;
};

class ShimModule {
 public:
  // Compiles NAME_shader.cc. If Clang is present but cannot compile the file,
  // fails the test.
  ShimModule(const std::string& name, bool checked);
  ~ShimModule();
  ShimModule(const ShimModule&) = delete;
  ShimModule& operator=(const ShimModule&) = delete;

  // Returns the function, or null if the module has no such function.
  void* Find(const char* function) const;
  template <class F>
  F* Function(const char* function) const {
    return reinterpret_cast<F*>(Find(function));
  }

  // Runs `function` once in each of `lanes` lanes. The lanes are threads,
  // which meet in simd functions.
  static void RunLanes(uint32_t lanes,
                       const std::function<void(uint32_t lane)>& function);
  // TakeAccesses() returns the accesses since its previous call.
  // TakeFailures() returns the messages of fail() since its previous call.
  static std::vector<Access> TakeAccesses();
  static std::vector<std::string> TakeFailures();

 private:
  void* handle_ = nullptr;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_METAL_SHIM_SHIM_MODULE_H_
