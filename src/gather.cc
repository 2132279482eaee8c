// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"

#include <atomic>

#include "src/calls/gather.h"
#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/gather.h"

namespace switchyard {

Status GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs,
                  const GatherOptions& options, Executor& executor) noexcept {
  const Checked<calls::GatherCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const auto& [tokens, pairs, topk_ids, row_index] = inputs;
  const auto& [rows, report] = outputs;
  const auto& [num_tokens, hidden, n, top_k] = call.sizes;
  const bool copy = internal::SameFormat(tokens, rows);
  std::atomic<size_t> counter{0};
  if (n != 0 && hidden != 0) {
    const simd::GatherArgs args = {inputs, rows, copy, &counter};
    const size_t row_ps = internal::MoveRowPs(rows, copy);
    Status status;
    if (internal::Given(row_index) && !copy) {
      status = internal::RunRows(executor, num_tokens, row_ps,
                                 simd::GatherTokens(), args);
      if (status.ok()) {
        status = internal::RunRows(executor, n, internal::MoveRowPs(rows, true),
                                   simd::GatherOthers(), args);
      }
    } else {
      status = internal::RunRows(executor, n, row_ps, simd::GatherRows(), args);
    }
    if (!status.ok()) return status;
  }
  const size_t invalid = counter.load(std::memory_order_relaxed);
  if (report != nullptr) report->invalid = invalid;
  if (invalid == 0 || options.allow_invalid) return Status();
  return internal::DoesNotFit(
      "GatherRows: pairs: outside [0, num_tokens * top_k), "
      "and options.allow_invalid is not set",
      invalid, n);
}

Status ScatterRows(const ScatterInputs& inputs, const ScatterOutputs& outputs,
                   const ScatterOptions& options, Executor& executor) noexcept {
  const Checked<calls::ScatterCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const auto& [packed, row_index] = inputs;
  const auto& [rows, report] = outputs;
  const bool copy = internal::SameFormat(packed, rows);
  std::atomic<size_t> counter{0};
  if (call.sizes.hidden != 0) {
    const Status status =
        internal::RunRows(executor, rows.rows, internal::MoveRowPs(rows, copy),
                          simd::ScatterRows(), {inputs, rows, copy, &counter});
    if (!status.ok()) return status;
  }
  const size_t skipped = counter.load(std::memory_order_relaxed);
  if (report != nullptr) report->skipped = skipped;
  if (skipped == 0 || options.allow_skipped) return Status();
  return internal::DoesNotFit(
      "ScatterRows: row_index: outside [-1, num_rows), and "
      "options.allow_skipped is not set",
      skipped, row_index.rows * row_index.cols);
}

}  // namespace switchyard
