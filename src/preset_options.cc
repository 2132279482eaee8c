// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/calls/activate.h"
#include "src/calls/combine.h"
#include "src/calls/route.h"
#include "src/fp_env.h"
#include "switchyard/presets.h"

namespace switchyard {
namespace {

using calls::Kind;
using calls::Option;

constexpr struct {
  const char* name;
  size_t offset;
  Span<const Option> options;
} kParts[] = {
    {"route", offsetof(Preset, route), calls::RouteCall::kOptions},
    {"activate", offsetof(Preset, activate), calls::ActivateCall::kOptions},
    {"combine", offsetof(Preset, combine), calls::CombineCall::kOptions}};

// Options are floats, or numbers from 0 of several sizes.
double ValueOf(Kind kind, const unsigned char* at) {
  uint64_t bits = 0;
  float number = 0;
  std::memcpy(&bits, at, calls::SizeOf(kind));
  if (kind != Kind::kNumber) return static_cast<double>(bits);
  std::memcpy(&number, at, sizeof(number));
  return number;
}
bool SetValue(Kind kind, double value, unsigned char* at) {
  const float number = static_cast<float>(value);
  if (kind == Kind::kNumber) return std::memcpy(at, &number, sizeof(number));
  const size_t size = calls::SizeOf(kind);
  const double most = kind == Kind::kFlag ? 1 : size == 1 ? 255 : INT32_MAX;
  if (!(value >= 0 && value <= most)) return false;
  const uint64_t bits = static_cast<uint64_t>(value);
  if (static_cast<double>(bits) != value) return false;
  return std::memcpy(at, &bits, size);
}

constexpr Status Refused(const char* message) {
  return {StatusCode::kInvalidArgument, message};
}
// put(option, its place) for the option of that name.
template <class Set>
Status SetAny(const char* name, Preset* preset, const Set& put) {
  const internal::DefaultFpEnv fp_env;  // the caller's may trap
  if (name == nullptr) return Refused("SetOption: name: is null");
  if (preset == nullptr) return Refused("SetOption: preset: is null");
  for (const auto& part : kParts) {
    const size_t size = std::strlen(part.name);
    const bool has_part =
        std::strncmp(name, part.name, size) == 0 && name[size] == '.';
    const char* const wanted = has_part ? name + size + 1 : name;
    for (const Option& option : part.options) {
      if (std::strcmp(wanted, option.field.name) != 0) continue;
      auto* const at = reinterpret_cast<unsigned char*>(preset) + part.offset +
                       option.field.offset;
      return put(option, at)
                 ? Status()
                 : Refused("SetOption: value: is none of this option's type");
    }
  }
  return Refused("SetOption: name: no option has it");
}

}  // namespace

PresetOption OptionAt(const Preset& preset, size_t index) noexcept {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&preset);
  for (const auto& part : kParts) {
    if (index < part.options.size) {
      const calls::Field& field = part.options.data[index].field;
      return {part.name, field.name,
              ValueOf(field.kind, bytes + part.offset + field.offset)};
    }
    index -= part.options.size;
  }
  return {};
}

Status SetOption(const char* name, double value, Preset* preset) noexcept {
  return SetAny(name, preset, [value](const Option& option, auto* at) {
    return SetValue(option.field.kind, value, at);
  });
}
Status SetOption(const char* name, const char* enumerator,
                 Preset* preset) noexcept {
  if (enumerator == nullptr) return Refused("SetOption: enumerator: is null");
  return SetAny(name, preset, [enumerator](const Option& option, auto* at) {
    for (uint32_t value = 0; value < 32; ++value) {
      const char* const text = option.range.name_of == nullptr
                                   ? nullptr
                                   : option.range.name_of(value);
      if (text != nullptr && std::strcmp(text, enumerator) == 0) {
        return SetValue(option.field.kind, value, at);
      }
    }
    return false;
  });
}

}  // namespace switchyard
