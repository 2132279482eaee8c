// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/options.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <system_error>

#include "programs/conformance/text.h"
#include "programs/program.h"
#include "src/calls/route.h"
#include "switchyard/presets.h"

namespace switchyard::conformance {
namespace {

// The table of RouteOptions. An option has the same index here and in
// OptionAt(), because OptionAt() returns the options of RouteOptions first.
constexpr auto& kOptions = calls::RouteCall::kOptions;

std::string ValueText(size_t index, double value) {
  const auto name_of = kOptions[index].range.name_of;
  return name_of == nullptr ? TextOf(static_cast<float>(value))
                            : name_of(static_cast<uint32_t>(value));
}

bool IsOption(const std::string& name) {
  const Preset preset;
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    if (name == OptionAt(preset, i).name) return true;
  }
  return false;
}

}  // namespace

std::vector<OptionText> TextOf(const RouteOptions& options) {
  Preset preset, plain;
  preset.route = options;
  std::vector<OptionText> texts;
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    const PresetOption option = OptionAt(preset, i);
    const std::string value = ValueText(i, option.value);
    if (value == ValueText(i, OptionAt(plain, i).value)) continue;
    texts.emplace_back(option.name, value);
  }
  return texts;
}

RouteOptions OptionsFrom(const std::vector<OptionText>& texts,
                         const std::string& where) {
  Preset preset;
  for (const auto& [name, value] : texts) {
    const auto fail = [&, &name = name, &value = value](const char* why) {
      throw program::InputError(where + ": option " + name + " " + value +
                                ": " + why);
    };
    if (!IsOption(name)) fail("is not an option of RouteTopK");
    double number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    const bool is_number = error == std::errc() && stop == end;
    const Status status = is_number
                              ? SetOption(name.c_str(), number, &preset)
                              : SetOption(name.c_str(), value.c_str(), &preset);
    if (!status.ok()) fail(status.message());
  }
  return preset.route;
}

}  // namespace switchyard::conformance
