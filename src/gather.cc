// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"

#include <atomic>

#include "src/check.h"
#include "src/check_rows.h"
#include "src/schedule.h"
#include "src/shapes.h"
#include "src/simd/gather.h"

namespace switchyard {

using internal::Given;
using internal::Role;

namespace {

[[gnu::cold, gnu::noinline]] const char* ShapeError(
    const GatherInputs& inputs, const GatherOutputs& outputs) {
  const AnyRows& rows = outputs.rows;
  const auto& [tokens, pairs, topk_ids, row_index] = inputs;
  const internal::Shaped arguments[] = {
      SWITCHYARD_SHAPED(GatherRows, Role::kInput, tokens, num_tokens, hidden),
      SWITCHYARD_SHAPED(GatherRows, Role::kInput, pairs, n, 1),
      SWITCHYARD_SHAPED(GatherRows, Role::kInput, topk_ids, num_tokens, top_k),
      SWITCHYARD_SHAPED(GatherRows, Role::kOptional, row_index, num_tokens,
                        top_k),
      SWITCHYARD_SHAPED(GatherRows, Role::kOutput, rows, n, hidden)};
  return internal::OddOneOut(arguments, "GatherRows: rows: is not [n, hidden]");
}

[[gnu::cold, gnu::noinline]] const char* ShapeError(
    const ScatterInputs& inputs, const ScatterOutputs& outputs) {
  const AnyRows& rows = outputs.rows;
  const auto& [packed, row_index] = inputs;
  const internal::Shaped arguments[] = {
      SWITCHYARD_SHAPED(ScatterRows, Role::kInput, packed, num_rows, hidden),
      SWITCHYARD_SHAPED(ScatterRows, Role::kInput, row_index, tokens, top_k),
      SWITCHYARD_SHAPED(ScatterRows, Role::kOutput, rows, tokens * top_k,
                        hidden)};
  return internal::OddOneOut(arguments, arguments[2].misshaped);
}

}  // namespace

Status GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs,
                  const GatherOptions& options, Executor& executor) noexcept {
  const auto& [tokens, pairs, topk_ids, row_index] = inputs;
  const auto& [rows, report] = outputs;
  const size_t n = pairs.size, hidden = tokens.cols;
  const size_t num_tokens = tokens.rows, top_k = topk_ids.cols;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_ROWS(GatherRows, tokens);
  SWITCHYARD_CHECK_VIEW(GatherRows, pairs);
  SWITCHYARD_CHECK_ROWS(GatherRows, rows);
  SWITCHYARD_CHECK_IDS(GatherRows, topk_ids);
  SWITCHYARD_CHECK(topk_ids.rows == num_tokens, ShapeError(inputs, outputs));
  SWITCHYARD_CHECK(top_k != 0, "GatherRows: topk_ids: top_k (cols) is 0");
  SWITCHYARD_CHECK(rows.rows == n && rows.cols == hidden,
                   ShapeError(inputs, outputs));
  if (Given(row_index)) {
    SWITCHYARD_CHECK_TYPED(GatherRows, row_index, Type::kI32, "int32");
    SWITCHYARD_CHECK(row_index.rows == num_tokens && row_index.cols == top_k,
                     ShapeError(inputs, outputs));
  }
  SWITCHYARD_CHECK_APART(GatherRows, rows, tokens, pairs, row_index,
                         tokens.scales, tokens.sums);
  SWITCHYARD_CHECK_PARTS_APART(GatherRows, rows, tokens, pairs, row_index,
                               tokens.scales, tokens.sums);
  const bool copy = internal::SameFormat(tokens, rows);
  SWITCHYARD_CHECK(copy || internal::IsReadable(tokens),
                   "GatherRows: tokens: nothing converts from its format");

  std::atomic<size_t> counter{0};
  if (n != 0 && hidden != 0) {
    const simd::GatherArgs args = {inputs, rows, copy, &counter};
    const size_t row_ps = internal::MoveRowPs(rows, copy);
    Status status;
    if (Given(row_index) && !copy) {
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
  SWITCHYARD_CHECK_DATA(invalid == 0 || options.allow_invalid,
                        "GatherRows: pairs: outside [0, num_tokens * top_k), "
                        "and options.allow_invalid is not set");
  return Status();
}

Status ScatterRows(const ScatterInputs& inputs, const ScatterOutputs& outputs,
                   const ScatterOptions& options, Executor& executor) noexcept {
  const auto& [packed, row_index] = inputs;
  const auto& [rows, report] = outputs;
  const size_t hidden = packed.cols;
  const size_t tokens = row_index.rows, top_k = row_index.cols;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_ROWS(ScatterRows, packed);
  SWITCHYARD_CHECK_NEEDED(ScatterRows, row_index, row_index.type == Type::kI32,
                          "has to be int32");
  SWITCHYARD_CHECK_VIEW(ScatterRows, row_index);
  SWITCHYARD_CHECK_ROWS(ScatterRows, rows);
  // The product does not wrap: row_index fits the address space.
  SWITCHYARD_CHECK(rows.rows == tokens * top_k && rows.cols == hidden,
                   ShapeError(inputs, outputs));
  SWITCHYARD_CHECK_APART(ScatterRows, rows, packed, row_index, packed.scales,
                         packed.sums);
  SWITCHYARD_CHECK_PARTS_APART(ScatterRows, rows, packed, row_index,
                               packed.scales, packed.sums);
  const bool copy = internal::SameFormat(packed, rows);
  SWITCHYARD_CHECK(copy || internal::IsReadable(packed),
                   "ScatterRows: packed: nothing converts from its format");

  std::atomic<size_t> counter{0};
  if (hidden != 0) {
    const Status status =
        internal::RunRows(executor, rows.rows, internal::MoveRowPs(rows, copy),
                          simd::ScatterRows(), {inputs, rows, copy, &counter});
    if (!status.ok()) return status;
  }
  const size_t skipped = counter.load(std::memory_order_relaxed);
  if (report != nullptr) report->skipped = skipped;
  SWITCHYARD_CHECK_DATA(skipped == 0 || options.allow_skipped,
                        "ScatterRows: row_index: outside [-1, num_rows), and "
                        "options.allow_skipped is not set");
  return Status();
}

}  // namespace switchyard
