// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include "src/c/call.h"

using namespace switchyard::c;

swy_status swy_route_top_k(const swy_route_inputs* inputs,
                           const swy_route_outputs* outputs,
                           const swy_route_options* options,
                           const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(RouteTopK, inputs, outputs, options, executor);
}
