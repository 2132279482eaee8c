// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"

#include <atomic>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/gather.h"

namespace switchyard {

Status GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs,
                  const GatherOptions& /*options*/,
                  Executor& executor) noexcept {
  const auto& [tokens, pairs, top_k] = inputs;
  const auto& [rows, report] = outputs;
  const size_t n = pairs.size, hidden = tokens.cols;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_F32(GatherRows, tokens);
  SWITCHYARD_CHECK_VIEW(GatherRows, pairs);
  SWITCHYARD_CHECK_F32(GatherRows, rows);
  SWITCHYARD_CHECK(top_k != 0, "GatherRows: top_k: is 0");
  SWITCHYARD_CHECK_SHAPE(GatherRows, rows, n, hidden);
  SWITCHYARD_CHECK_APART(GatherRows, rows, tokens, pairs);

  const auto kernel = simd::GatherRows(tokens.type, rows.type);
  SWITCHYARD_CHECK_KERNEL(GatherRows, kernel);

  std::atomic<size_t> invalid{0};
  if (n != 0 && hidden != 0) {
    const double row_ns = 0.15 * static_cast<double>(hidden);
    const Status status = internal::RunRows(executor, n, row_ns, kernel,
                                            {inputs, rows, &invalid});
    if (!status.ok()) return status;
  }
  if (report != nullptr) {
    report->invalid = invalid.load(std::memory_order_relaxed);
  }
  return Status();
}

}  // namespace switchyard
