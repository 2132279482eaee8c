// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/quantize.h"

#include "src/calls/quantize.h"
#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/quantize.h"

namespace switchyard {

Status Quantize(const QuantizeInputs& inputs, const QuantizeOutputs& outputs,
                const QuantizeOptions& options, Executor& executor) noexcept {
  const Checked<calls::QuantizeCall> call(inputs, outputs, options);
  if (!call.status.ok() || call.sizes.cols == 0) return call.status;
  const auto& [from] = inputs;
  const auto& [rows] = outputs;
  const bool copy = internal::SameFormat(from, rows);
  return internal::RunRows(executor, rows.rows, internal::MoveRowPs(rows, copy),
                           simd::QuantizeRows(), {from, rows, copy});
}

}  // namespace switchyard
