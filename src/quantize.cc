// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/quantize.h"

#include <atomic>
#include <cstddef>

#include "src/calls/quantize.h"
#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/quantize.h"

namespace switchyard {

Status Quantize(const QuantizeInputs& inputs, const QuantizeOutputs& outputs,
                const QuantizeOptions& options, Executor& executor) noexcept {
  const Checked<calls::QuantizeCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const auto& [from] = inputs;
  const auto& [rows, report] = outputs;
  const bool copy = internal::SameFormat(from, rows);
  std::atomic<size_t> overflowed{0};
  if (call.sizes.cols != 0) {
    const Status status =
        internal::RunRows(executor, rows.rows, internal::MoveRowPs(rows, copy),
                          simd::QuantizeRows(),
                          {from, rows, copy, options.clamp_overflow,
                           report != nullptr ? &overflowed : nullptr});
    if (!status.ok()) return status;
  }
  if (report != nullptr) {
    report->overflowed_blocks = overflowed.load(std::memory_order_relaxed);
  }
  return Status();
}

}  // namespace switchyard
