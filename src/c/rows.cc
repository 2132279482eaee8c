// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/c/call.h"
#include "switchyard/activate.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"

using namespace switchyard::c;

swy_status swy_gather_rows(const swy_gather_inputs* inputs,
                           const swy_gather_outputs* outputs,
                           const swy_gather_options* options,
                           const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(GatherRows, inputs, outputs, options, executor);
}
swy_status swy_scatter_rows(const swy_scatter_inputs* inputs,
                            const swy_scatter_outputs* outputs,
                            const swy_scatter_options* options,
                            const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(ScatterRows, inputs, outputs, options, executor);
}
swy_status swy_quantize(const swy_quantize_inputs* inputs,
                        const swy_quantize_outputs* outputs,
                        const swy_quantize_options* options,
                        const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(Quantize, inputs, outputs, options, executor);
}
swy_status swy_activate(const swy_activate_inputs* inputs,
                        const swy_activate_outputs* outputs,
                        const swy_activate_options* options,
                        const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(Activate, inputs, outputs, options, executor);
}
