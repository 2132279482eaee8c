// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"

#include <atomic>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/gather.h"

namespace switchyard {

Status GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs,
                  const GatherOptions& options, Executor& executor) noexcept {
  const auto& [tokens, pairs, topk_ids] = inputs;
  const auto& [rows, report] = outputs;
  const size_t n = pairs.size, hidden = tokens.cols;
  const size_t num_tokens = tokens.rows, top_k = topk_ids.cols;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_F32(GatherRows, tokens);
  SWITCHYARD_CHECK_VIEW(GatherRows, pairs);
  SWITCHYARD_CHECK_F32(GatherRows, rows);
  SWITCHYARD_CHECK_IDS(GatherRows, topk_ids);
  SWITCHYARD_CHECK_SHAPE(GatherRows, topk_ids, num_tokens, top_k);
  SWITCHYARD_CHECK(top_k != 0, "GatherRows: topk_ids: top_k (cols) is 0");
  SWITCHYARD_CHECK_SHAPE(GatherRows, rows, n, hidden);
  SWITCHYARD_CHECK_APART(GatherRows, rows, tokens, pairs);

  const auto kernel = simd::GatherRows(tokens.type, rows.type);
  SWITCHYARD_CHECK_KERNEL(GatherRows, kernel);

  std::atomic<size_t> counter{0};
  if (n != 0 && hidden != 0) {
    const Status status = internal::RunRows(executor, n, 150 * hidden, kernel,
                                            {inputs, rows, &counter});
    if (!status.ok()) return status;
  }
  const size_t invalid = counter.load(std::memory_order_relaxed);
  if (report != nullptr) report->invalid = invalid;
  SWITCHYARD_CHECK_DATA(invalid == 0 || options.allow_invalid,
                        "GatherRows: pairs: outside [0, num_tokens * top_k), "
                        "and options.allow_invalid is not set");
  return Status();
}

}  // namespace switchyard
