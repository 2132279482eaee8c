// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "src/base/details.h"
#include "src/base/fp_env.h"
#include "src/base/nearest.h"
#include "src/calls/activate.h"
#include "src/calls/combine.h"
#include "src/calls/route.h"
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

// Returns the value of an option, which is stored as a float or as an
// unsigned integer. `kind` determines the size of the integer.
double ValueOf(Kind kind, const unsigned char* at) {
  uint64_t bits = 0;
  float number = 0;
  std::memcpy(&bits, at, calls::SizeOf(kind));
  if (kind != Kind::kNumber) return static_cast<double>(bits);
  std::memcpy(&number, at, sizeof(number));
  return number;
}
// Returns the largest value of an option that is not a float.
int MostOf(Kind kind) {
  if (kind == Kind::kFlag) return 1;
  return calls::SizeOf(kind) == 1 ? 255 : INT32_MAX;
}
bool SetValue(Kind kind, double value, unsigned char* at) {
  const float number = static_cast<float>(value);
  if (kind == Kind::kNumber) return std::memcpy(at, &number, sizeof(number));
  const double most = MostOf(kind);
  const size_t size = calls::SizeOf(kind);
  if (!(value >= 0 && value <= most)) return false;
  const uint64_t bits = static_cast<uint64_t>(value);
  if (static_cast<double>(bits) != value) return false;
  return std::memcpy(at, &bits, size);
}

constexpr Status Refused(const char* message) {
  return {StatusCode::kInvalidArgument, message};
}
// Returns the error for an unknown name, with a suggestion. The suggestion
// for "combine.eps" is an option with a name like "eps".
Status RefuseName(const char* name) {
  internal::Details details;
  details.Put("got ").Put(name);
  const Preset any = {};
  size_t size = 0;
  while (OptionAt(any, size).name != nullptr) ++size;
  const std::string_view whole = name;
  std::string_view wanted = whole;
  for (const auto& part : kParts) {
    const std::string_view of = part.name;
    if (whole.substr(0, of.size()) == of && whole.size() > of.size() + 1 &&
        whole[of.size()] == '.') {
      wanted.remove_prefix(of.size() + 1);
    }
  }
  const size_t nearest = internal::NearestName(wanted, size, [&any](size_t i) {
    return std::string_view(OptionAt(any, i).name);
  });
  if (nearest < size) {
    details.Put("; did you mean ")
        .Put(whole.substr(0, whole.size() - wanted.size()))
        .Put(OptionAt(any, nearest).name);
  }
  return internal::Refuse(StatusCode::kInvalidArgument,
                          "SetOption: name: no option has this name", details);
}
void PutGot(double value, internal::Details* to) {
  if (value >= INT32_MIN && value <= INT32_MAX && value == std::floor(value)) {
    to->Put(static_cast<int>(value));
  } else {
    to->Put(static_cast<float>(value));
  }
}
void PutGot(const char* value, internal::Details* to) { to->Put(value); }
void PutNeeded(double, const Option& option, internal::Details* to) {
  const Kind kind = option.field.kind;
  if (kind == Kind::kFlag) {
    to->Put("0 or 1");
  } else {
    to->Put("a whole number from 0 to ").Put(MostOf(kind));
  }
}
void PutNeeded(const char*, const Option& option, internal::Details* to) {
  to->Put("a number");
  if (option.range.name_of == nullptr) return;
  const char* before = " or ";
  for (uint32_t value = 0; value < 32; ++value) {
    const char* const text = option.range.name_of(value);
    if (text == nullptr) continue;
    to->Put(before).Put(text);
    before = ", ";
  }
}
// Calls put(option, address) for the option called `name`.
template <class Value, class Set>
Status SetAny(const char* name, Value value, Preset* preset, const Set& put) {
  const internal::DefaultFpEnv fp_env;  // the caller's environment may trap
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
      if (put(option, at)) return Status();
      internal::Details details;
      details.Put("got ");
      PutGot(value, &details);
      details.Put(", needs ");
      PutNeeded(value, option, &details);
      return internal::Refuse(
          StatusCode::kInvalidArgument,
          "SetOption: value: does not fit this option's type", details);
    }
  }
  return RefuseName(name);
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
  return SetAny(name, value, preset, [value](const Option& option, auto* at) {
    return SetValue(option.field.kind, value, at);
  });
}
Status SetOption(const char* name, const char* enumerator,
                 Preset* preset) noexcept {
  if (enumerator == nullptr) return Refused("SetOption: enumerator: is null");
  return SetAny(name, enumerator, preset,
                [enumerator](const Option& option, auto* at) {
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
