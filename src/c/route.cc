// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include "src/c/call.h"
#include "switchyard/presets.h"

using namespace switchyard::c;

swy_status swy_route_top_k(const swy_route_inputs* inputs,
                           const swy_route_outputs* outputs,
                           const swy_route_options* options,
                           const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(RouteTopK, inputs, outputs, options, executor);
}

swy_status swy_find_preset(const char* family, swy_preset* preset,
                           swy_route_options* options) noexcept {
  switchyard::Preset found;
  switchyard::Status status = switchyard::FindPreset(family, &found);
  if (status.ok() && preset != nullptr) {
    status = Check(preset, SWITCHYARD_C_ARGUMENT_TEXTS("FindPreset", "preset"));
    // The struct's end when it was new. What it got later tells callers who
    // know of it more; the options are what a family cannot be without.
    constexpr size_t kEnd = offsetof(swy_preset, top_k) + sizeof(preset->top_k);
    if (status.ok() && preset->size < kEnd) {
      status = Invalid("FindPreset: preset: size is below that of any version");
    }
  }
  if (status.ok() && options != nullptr) {
    status =
        Check(options, SWITCHYARD_C_ARGUMENT_TEXTS("FindPreset", "options"));
    if (status.ok() && !HasRoomFor(found.route, options)) {
      status = Invalid(
          "FindPreset: options: too short, of a version that lacks an option "
          "of this family");
    }
  }
  if (!status.ok()) return ToC(status);
  if (preset != nullptr) WriteFields(found, preset);
  if (options != nullptr) WriteFields(found.route, options);
  return ToC(status);
}

const char* swy_preset_family(size_t index) noexcept {
  const auto presets = switchyard::Presets();
  return index < presets.size ? presets.data[index].family : nullptr;
}
