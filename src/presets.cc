// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/presets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "src/base/nearest.h"
#include "src/families.h"
#include "src/preset_fields.h"

namespace switchyard {
namespace {

using families::Family;
using families::kFamilies;
using internal::FamilyFields;

struct Table {
  std::array<Preset, std::size(kFamilies)> presets;
  std::array<FamilyFields, std::size(kFamilies)> fields;
};

// Gives each copy the options of the row that it names. Does not compile if
// that row does not exist, or if rows are out of order.
constexpr Table Resolved() {
  Table table = {};
  for (size_t i = 0; i < std::size(kFamilies); ++i) {
    const Preset& named = kFamilies[i].preset;
    const Family* original = &kFamilies[i];
    for (const Family& other : kFamilies) {
      if (named.same_as == nullptr) break;
      if (other.preset.same_as == nullptr &&
          std::string_view(other.preset.family) == named.same_as) {
        original = &other;
      }
    }
    if (original->preset.same_as != nullptr)
      throw "a copy of what is not there";
    if (i > 0 &&
        std::string_view(kFamilies[i - 1].preset.family) >= named.family) {
      throw "not in alphabetical order";
    }
    table.fields[i] = original->fields;
    table.fields[i].has_identity_experts =
        original->preset.form.has_identity_experts;
    table.presets[i] = original->preset;
    table.presets[i].family = named.family;
    table.presets[i].same_as = named.same_as;
    if (named.source != nullptr) table.presets[i].source = named.source;
  }
  return table;
}
constexpr auto kPresets = Resolved().presets;
constexpr auto kFieldsOfPresets = Resolved().fields;

const Preset* Find(std::string_view family) {
  const auto found = std::lower_bound(
      kPresets.begin(), kPresets.end(), family,
      [](const Preset& p, std::string_view name) { return p.family < name; });
  return found == kPresets.end() || found->family != family ? nullptr : &*found;
}

// FindPreset()'s messages for misspelt names: one for each preset that may be
// meant.
constexpr auto kDidYouMean = [] {
  std::array<internal::Message<96>, kPresets.size()> messages = {};
  for (size_t i = 0; i < messages.size(); ++i) {
    messages[i]
        .Add("FindPreset: family: is not in Presets(); did you mean ")
        .Add(kPresets[i].family);
  }
  return messages;
}();

// Returns the family of a class of transformers: "Qwen3Moe" for
// "Qwen3MoeForCausalLM" and "Qwen3MoeModel". Returns other names unchanged.
std::string_view FamilyOfClass(std::string_view name) {
  if (name.empty() || name[0] < 'A' || name[0] > 'Z') return name;
  constexpr std::string_view kModel = "Model";
  const size_t end = name.find("For");
  if (end != name.npos) return name.substr(0, end);
  if (name.size() > kModel.size() &&
      name.substr(name.size() - kModel.size()) == kModel) {
    name.remove_suffix(kModel.size());
  }
  return name;
}

}  // namespace

const FamilyFields* internal::FieldsOfFamily(const char* family) {
  const Preset* found = Find(family);
  return found == nullptr
             ? nullptr
             : &kFieldsOfPresets[static_cast<size_t>(found - kPresets.data())];
}

Span<const Preset> Presets() noexcept { return kPresets; }

Status FindPreset(const char* family, Preset* preset) noexcept {
  if (family == nullptr) {
    return {StatusCode::kInvalidArgument, "FindPreset: family: is null"};
  }
  if (preset == nullptr) {
    return {StatusCode::kInvalidArgument, "FindPreset: preset: is null"};
  }
  const Preset* found = Find(family);
  if (found == nullptr) {
    const size_t nearest = internal::NearestName(
        FamilyOfClass(family), kPresets.size(),
        [](size_t i) { return std::string_view(kPresets[i].family); });
    return {StatusCode::kInvalidArgument,
            nearest < kPresets.size()
                ? kDidYouMean[nearest].text
                : "FindPreset: family: is not in Presets()"};
  }
  *preset = *found;
  return {};
}

}  // namespace switchyard
