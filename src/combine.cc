// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include <atomic>
#include <cmath>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/combine.h"

namespace switchyard {
namespace {

using internal::Given;

Status CheckShapes(const CombineInputs& inputs, const CombineOutputs& outputs) {
  const auto& [rows, topk_weights, row_index, residual, norm_weight, shared] =
      inputs;
  const auto& [out, normed, report] = outputs;
  const size_t tokens = out.rows, hidden = out.cols, top_k = topk_weights.cols,
               num_rows = rows.rows;
  SWITCHYARD_CHECK_F32(Combine, rows);
  SWITCHYARD_CHECK_F32(Combine, topk_weights);
  SWITCHYARD_CHECK_F32(Combine, out);
  SWITCHYARD_CHECK(top_k != 0, "Combine: topk_weights: top_k (cols) is 0");
  SWITCHYARD_CHECK_SHAPE(Combine, topk_weights, tokens, top_k);
  if (!row_index.token_order) {
    SWITCHYARD_CHECK_TYPED(Combine, row_index, Type::kI32, "int32");
    SWITCHYARD_CHECK_SHAPE(Combine, row_index, tokens, top_k);
    SWITCHYARD_CHECK_SHAPE(Combine, rows, num_rows, hidden);
  } else {
    // The product does not wrap: topk_weights fits the address space.
    SWITCHYARD_CHECK_SHAPE(Combine, rows, tokens * top_k, hidden);
  }
  if (Given(shared.rows) || Given(shared.gate)) {
    SWITCHYARD_CHECK_F32(Combine, shared.rows);
    SWITCHYARD_CHECK_F32(Combine, shared.gate);
    SWITCHYARD_CHECK_SHAPE(Combine, shared.rows, tokens, hidden);
    SWITCHYARD_CHECK(shared.kind == SharedGate::kLogit ||
                         shared.kind == SharedGate::kScalar ||
                         shared.kind == SharedGate::kNone,
                     "Combine: shared.kind: is not a known SharedGate");
    if (shared.kind == SharedGate::kNone) {
      SWITCHYARD_CHECK(!Given(shared.gate),
                       "Combine: shared.gate: given with SharedGate::kNone");
    } else {
      const auto& gate = shared.gate;
      SWITCHYARD_CHECK((gate.rows == tokens && gate.cols == 1) ||
                           (gate.rows == 1 && gate.cols == tokens) ||
                           (tokens == 0 && !Given(gate)),
                       "Combine: shared.gate: is not [tokens, 1] or "
                       "[1, tokens]");
    }
  }
  if (Given(residual)) {
    SWITCHYARD_CHECK_F32(Combine, residual);
    SWITCHYARD_CHECK_SHAPE(Combine, residual, tokens, hidden);
  }
  if (Given(normed) || Given(norm_weight)) {
    SWITCHYARD_CHECK_F32(Combine, normed);
    SWITCHYARD_CHECK_F32(Combine, norm_weight);
    SWITCHYARD_CHECK_SHAPE(Combine, normed, tokens, hidden);
    SWITCHYARD_CHECK_SHAPE(Combine, norm_weight, 1, hidden);
  }
  return Status();
}

// `out` may be one of the views that are read element by element as it is
// written, `normed` overlaps nothing.
Status CheckOverlaps(const CombineInputs& inputs,
                     const CombineOutputs& outputs) {
  const auto& [rows, topk_weights, row_index, residual, norm_weight, shared] =
      inputs;
  const auto& [out, normed, report] = outputs;
  SWITCHYARD_CHECK_APART(Combine, out, rows, topk_weights, row_index,
                         norm_weight, shared.gate);
  if (Given(residual)) SWITCHYARD_CHECK_APART_OR_SAME(Combine, out, residual);
  if (Given(shared.rows)) {
    SWITCHYARD_CHECK_APART_OR_SAME(Combine, out, shared.rows);
  }
  if (Given(normed)) {
    SWITCHYARD_CHECK_APART(Combine, normed, out, rows, topk_weights, row_index,
                           residual, norm_weight, shared.rows, shared.gate);
  }
  return Status();
}

}  // namespace

Status Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
               const CombineOptions& options, Executor& executor) noexcept {
  SWITCHYARD_CHECK_ISA();
  Status status = CheckShapes(inputs, outputs);
  if (status.ok()) status = CheckOverlaps(inputs, outputs);
  if (!status.ok()) return status;
  SWITCHYARD_CHECK(internal::IsUpTo(INFINITY, options.eps),
                   "Combine: options: eps is negative or NaN");

  const auto kernel = simd::CombineRows(inputs.rows.type, outputs.out.type);
  SWITCHYARD_CHECK_KERNEL(Combine, kernel);

  std::atomic<size_t> counter{0};
  const size_t tokens = outputs.out.rows, hidden = outputs.out.cols;
  if (hidden != 0) {
    // 0.06 ns an element and term: 0.7 us for H = 2048 and top_k = 8 in cache.
    const size_t row_ps = 60 * hidden * (inputs.topk_weights.cols + 2);
    status = internal::RunRows(executor, tokens, row_ps, kernel,
                               {inputs, outputs, options, &counter});
    if (!status.ok()) return status;
  }
  const size_t skipped = counter.load(std::memory_order_relaxed);
  if (outputs.report != nullptr) outputs.report->skipped = skipped;
  SWITCHYARD_CHECK_DATA(skipped == 0 || options.allow_skipped,
                        "Combine: row_index: outside [-1, num_rows), and "
                        "options.allow_skipped is not set");
  return Status();
}

}  // namespace switchyard
