// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Ways to spoil a copy of a checkpoint, for what moe_layer refuses.

#ifndef SWITCHYARD_TESTS_MOE_LAYER_SPOIL_H_
#define SWITCHYARD_TESTS_MOE_LAYER_SPOIL_H_

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "tests/moe_layer_files.h"

namespace moe_layer::testing_support {

inline constexpr char kConfig[] = "config.json";
inline constexpr char kModel[] = "model.safetensors";
inline constexpr char kIndex[] = "model.safetensors.index.json";
inline constexpr char kRouter[] = "model.layers.0.mlp.gate.weight";

using Spoil = std::function<void(const TempFolder&)>;

inline Spoil Remove(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
  };
}
inline Spoil Write(const std::string& file, const std::string& content) {
  return
      [=](const TempFolder& folder) { WriteFile(folder.File(file), content); };
}
// A pipe that nobody writes to.
inline Spoil MakePipe(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
    ASSERT_EQ(mkfifo(folder.File(file).c_str(), 0600), 0);
  };
}
inline Spoil MakeFolder(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
    std::filesystem::create_directory(folder.File(file));
  };
}
inline Spoil Set(const std::string& key, const json& value) {
  return [=](const TempFolder& folder) {
    folder.EditJson(kConfig, [&](json& config) { config[key] = value; });
  };
}
inline Spoil Erase(const std::string& key) {
  return [=](const TempFolder& folder) {
    folder.EditJson(kConfig, [&](json& config) { config.erase(key); });
  };
}
// Cuts a file to its first `size` bytes, or takes -`size` off its end.
inline Spoil Cut(const std::string& file, long size) {
  return [=](const TempFolder& folder) {
    const std::string bytes = ReadFile(folder.File(file));
    const size_t keep = size >= 0 ? static_cast<size_t>(size)
                                  : bytes.size() - static_cast<size_t>(-size);
    WriteFile(folder.File(file), bytes.substr(0, keep));
  };
}
inline Spoil EditHeader(const std::function<void(json&)>& change) {
  return [=](const TempFolder& folder) {
    folder.EditTensors(kModel,
                       [&](json& header, std::string&) { change(header); });
  };
}
inline Spoil SetRouter(const std::string& member, const json& value) {
  return EditHeader([=](json& header) { header[kRouter][member] = value; });
}
// `whole` with `value`, which need not be good JSON, at `place`.
inline std::string WithText(json whole, const std::string& place,
                            const std::string& value) {
  whole[json::json_pointer(place)] = "PLACE";
  std::string text = whole.dump();
  return text.replace(text.find("\"PLACE\""), 7, value);
}
inline Spoil SetText(const std::string& file, const std::string& key,
                     const std::string& value) {
  return [=](const TempFolder& folder) {
    const json whole = json::parse(ReadFile(folder.File(file)));
    WriteFile(folder.File(file), WithText(whole, "/" + key, value));
  };
}
inline Spoil SetShapeText(const std::string& value) {
  return [=](const TempFolder& folder) {
    std::string spoilt;
    folder.EditTensors(kModel, [&](const json& header, std::string& data) {
      const std::string place = std::string("/") + kRouter + "/shape";
      spoilt = Safetensors(WithText(header, place, value), data);
    });
    WriteFile(folder.File(kModel), spoilt);
  };
}
// Writes `bits`, little-endian, over an element of a tensor.
inline Spoil SetElement(const std::string& file, const std::string& name,
                        size_t element, const std::string& bits) {
  return [=](const TempFolder& folder) {
    folder.EditTensors(file, [&](const json& header, std::string& data) {
      const size_t begin = header[name]["data_offsets"][0].get<size_t>();
      data.replace(begin + element * bits.size(), bits.size(), bits);
    });
  };
}
// Lists in each other: what recursion overflows the stack with.
inline std::string Nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}
inline Spoil EditIndex(const std::function<void(json&)>& change) {
  return [=](const TempFolder& folder) { folder.EditJson(kIndex, change); };
}

}  // namespace moe_layer::testing_support

#endif  // SWITCHYARD_TESTS_MOE_LAYER_SPOIL_H_
