// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/quantize.h"

#include "src/check.h"
#include "src/check_rows.h"
#include "src/schedule.h"
#include "src/shapes.h"
#include "src/simd/quantize.h"

namespace switchyard {
namespace {

using internal::Role;

[[gnu::cold, gnu::noinline]] const char* ShapeError(
    const QuantizeInputs& inputs, const QuantizeOutputs& outputs) {
  const ConstAnyRows& from = inputs.from;
  const AnyRows& rows = outputs.rows;
  const internal::Shaped arguments[] = {
      SWITCHYARD_SHAPED(Quantize, Role::kInput, from, rows, cols),
      {Role::kOutput, rows, "rows", "cols",
       "Quantize: rows: is not [from.rows, from.cols]",
       "Quantize: rows: not given"}};
  return internal::OddOneOut(arguments, arguments[1].misshaped);
}

}  // namespace

Status Quantize(const QuantizeInputs& inputs, const QuantizeOutputs& outputs,
                const QuantizeOptions&, Executor& executor) noexcept {
  const auto& [from] = inputs;
  const auto& [rows] = outputs;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_ROWS(Quantize, from);
  SWITCHYARD_CHECK_ROWS(Quantize, rows);
  SWITCHYARD_CHECK(rows.rows == from.rows && rows.cols == from.cols,
                   ShapeError(inputs, outputs));
  SWITCHYARD_CHECK_APART(Quantize, rows, from, from.scales, from.sums);
  SWITCHYARD_CHECK_PARTS_APART(Quantize, rows, from, from.scales, from.sums);
  const bool copy = internal::SameFormat(from, rows);
  SWITCHYARD_CHECK(copy || internal::IsReadable(from),
                   "Quantize: from: nothing converts from its format");
  if (rows.cols == 0) return Status();
  return internal::RunRows(executor, rows.rows, internal::MoveRowPs(rows, copy),
                           simd::QuantizeRows(), {from, rows, copy});
}

}  // namespace switchyard
