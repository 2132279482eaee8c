// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compiles the .metal files of device/tests/metal for a device.

#ifndef SWITCHYARD_DEVICE_TESTS_METAL_TEXT_H_
#define SWITCHYARD_DEVICE_TESTS_METAL_TEXT_H_

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "device/tests/device_test.h"
#include "device/tests/needs_clang.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/library.h"

namespace switchyard::testing_support {

// Returns the path of a file in device/tests/metal. `name` has no extension.
inline std::string MetalPath(const std::string& name) {
  return std::string(SWITCHYARD_METAL_TEXTS) + "/" + name + ".metal";
}
inline std::string TextOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The libraries of the files in device/tests/metal, for one device. Each file
// is compiled when it is first requested.
class MetalTexts {
 public:
  explicit MetalTexts(std::shared_ptr<Device> device)
      : device_(std::move(device)) {}

  // Returns the library of a file. If the file does not compile, fails the
  // test and returns null.
  std::shared_ptr<Library> Get(const std::string& name) {
    const auto found = libraries_.find(name);
    if (found != libraries_.end()) return found->second;
    std::string error;
    const auto library =
        device_->newLibraryFromFile(MetalPath(name).c_str(), {}, &error);
    EXPECT_NE(library, nullptr) << error;
    return libraries_[name] = library;
  }
  std::shared_ptr<Function> Get(
      const std::string& name, const std::string& kernel,
      const FunctionConstantValues* values = nullptr) {
    const auto library = Get(name);
    if (library == nullptr) return nullptr;
    std::string error;
    const auto function =
        values == nullptr
            ? library->newFunction(kernel.c_str(), &error)
            : library->newFunction(kernel.c_str(), *values, &error);
    EXPECT_NE(function, nullptr)
        << name << ".metal, " << kernel << ": " << error;
    return function;
  }

 private:
  const std::shared_ptr<Device> device_;
  std::map<std::string, std::shared_ptr<Library>> libraries_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_METAL_TEXT_H_
