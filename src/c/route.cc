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
  }
  if (status.ok() && options != nullptr) {
    status =
        Check(options, SWITCHYARD_C_ARGUMENT_TEXTS("FindPreset", "options"));
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
