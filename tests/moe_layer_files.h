// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for the MoeLayer tests. They run the program, and copy checkpoints
// that make_checkpoints.py has made, because tests spoil the copies.

#ifndef SWITCHYARD_TESTS_MOE_LAYER_FILES_H_
#define SWITCHYARD_TESTS_MOE_LAYER_FILES_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "dtype.h"
#include "gemm.h"
#include "programs/program.h"
#include "tests/run_program.h"

namespace moe_layer {

inline std::ostream& operator<<(std::ostream& os, const Dtype& dtype) {
  return os << dtype.name;
}

}  // namespace moe_layer

namespace moe_layer::testing_support {

// Returns the folder of a family's checkpoint. Before the tests, a ctest
// fixture runs make_checkpoints.py, which makes all checkpoints.
inline std::string CheckpointPath(const std::string& family) {
  return std::string(MOE_LAYER_CHECKPOINTS) + "/" + family;
}

using nlohmann::json;
using switchyard::testing_support::ExpectRefused;
using switchyard::testing_support::Outcome;
using switchyard::testing_support::ReadFile;

inline Outcome RunProgram(const std::string& arguments,
                          const std::string& before = "") {
  return switchyard::testing_support::RunProgram(MOE_LAYER_PROGRAM, arguments,
                                                 before);
}

// Returns the dtypes that accept experts of any size. Weights in blocks need
// multiples of 32 columns.
inline std::vector<Dtype> DtypesOfAnySize() {
  std::vector<Dtype> dtypes;
  for (const Dtype& dtype : kDtypes) {
    if (dtype.weights.value_or(switchyard::WeightFormat::kInt8) ==
        switchyard::WeightFormat::kInt8) {
      dtypes.push_back(dtype);
    }
  }
  return dtypes;
}

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

template <class T>
std::vector<T> ReadNumbers(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  bytes.copy(reinterpret_cast<char*>(numbers.data()), bytes.size());
  return numbers;
}

// Returns a file in the safetensors format: the header's length, the header
// and the data.
inline std::string Safetensors(const std::string& header,
                               const std::string& data, uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>((length >> (8 * i)) & 0xFF);
  }
  return bytes + header + data;
}
inline std::string Safetensors(const std::string& header,
                               const std::string& data) {
  return Safetensors(header, data, header.size());
}

// A temporary folder with a checkpoint to spoil.
class TempFolder : public switchyard::testing_support::TempFolder {
 public:
  // Copies a generated checkpoint to this folder.
  void CopyFrom(const std::string& family) const {
    std::filesystem::copy(CheckpointPath(family), path());
  }
  // Edits a JSON file with change(json&).
  template <class Change>
  void EditJson(const std::string& name, Change change) const {
    auto value = json::parse(ReadFile(File(name)));
    change(value);
    WriteFile(File(name), value.dump());
  }
  // Edits a safetensors file with change(json& header, string& data).
  template <class Change>
  void EditTensors(const std::string& name, Change change) const {
    const std::string bytes = ReadFile(File(name));
    size_t length = 0;
    for (size_t i = 0; i < 8; ++i) {
      length |= size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    auto header = json::parse(bytes.substr(8, length));
    std::string data = bytes.substr(8 + length);
    change(header, data);
    WriteFile(File(name), Safetensors(header.dump(), data));
  }
};

}  // namespace moe_layer::testing_support

#endif  // SWITCHYARD_TESTS_MOE_LAYER_FILES_H_
