// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The seeds' shaders as they stand, from the folder that SWITCHYARD_SEEDS names
// in the environment: compiled at test time, and never copied. Tests skip
// without it.

#ifndef SWITCHYARD_TESTS_DEVICE_SEED_TEXTS_H_
#define SWITCHYARD_TESTS_DEVICE_SEED_TEXTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/library.h"
#include "tests/device/device_test.h"
#include "tests/device/oracle_case.h"

namespace switchyard::testing_support {

// The texts in a folder that have kernels, without what a page has in front of
// them; the lines keep their numbers.
inline std::vector<std::string> MetalTextsIn(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.push_back(entry.path());
  }
  EXPECT_FALSE(error) << folder << ": " << error.message();
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    if (all.find("\n#include <metal_stdlib>") == std::string::npos) continue;
    std::istringstream lines(all);
    std::string line, text;
    bool begun = false;
    while (std::getline(lines, line)) {
      begun |= line.rfind("//", 0) == 0 || line.rfind("#", 0) == 0;
      text += begun ? line + "\n" : "\n";
    }
    texts.push_back(text);
  }
  return texts;
}

// Their kernels, for checked devices or for others.
class SeedTexts {
 public:
  static const char* Folder() { return std::getenv("SWITCHYARD_SEEDS"); }
  static SeedTexts& Of(bool checked) {
    static SeedTexts* const texts[] = {new SeedTexts(false),
                                       new SeedTexts(true)};
    return *texts[checked];
  }

  bool Has(const std::string& kernel) const {
    return functions_.count(kernel) != 0;
  }
  std::shared_ptr<Function> Get(const std::string& kernel) const {
    const auto found = functions_.find(kernel);
    return found == functions_.end() ? nullptr : found->second;
  }
  size_t size() const { return functions_.size(); }
  // The line of the text that the kernel is in, from 1 on.
  std::string Line(const std::string& kernel, size_t number) const {
    std::istringstream lines(texts_.at(kernel));
    std::string line;
    for (size_t i = 0; i < number; ++i) std::getline(lines, line);
    return line;
  }

  // A device that has their functions.
  static OracleDevice NewOracleDevice(bool checked, uint64_t schedule = 0) {
    OracleDevice device(checked, schedule);
    device.SetTexts(
        [checked](const std::string& name) { return Of(checked).Get(name); });
    return device;
  }

 private:
  explicit SeedTexts(bool checked) {
    const auto device = NewDevice(false, {checked, 0});
    for (const std::string& text : MetalTextsIn(Folder())) {
      std::string error;
      const auto library = device->newLibrary(text.c_str(), {}, &error);
      EXPECT_NE(library, nullptr) << error;
      if (library == nullptr) continue;
      EXPECT_TRUE(library->unsupported().empty());
      for (const std::string& name : library->functionNames()) {
        functions_[name] = library->newFunction(name.c_str(), &error);
        EXPECT_NE(functions_[name], nullptr) << error;
        texts_[name] = text;
      }
    }
  }

  std::map<std::string, std::shared_ptr<Function>> functions_;
  std::map<std::string, std::string> texts_;
};

#define SWITCHYARD_NEEDS_SEEDS()                                   \
  if (SeedTexts::Folder() == nullptr) {                            \
    GTEST_SKIP() << "SWITCHYARD_SEEDS does not name their folder"; \
  }

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_SEED_TEXTS_H_
