// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cstddef>
#include <cstdint>

#include "src/calls/activate.h"
#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/activate.h"
#include "src/simd/targets.h"

namespace switchyard {
namespace {

// True if the call uses streaming stores. The caller has checked the arguments,
// so their sizes in bytes do not overflow.
bool Streams(const ConstAnyMatrix& gate, const ConstAnyMatrix& up,
             const AnyRows& out, ActivateStores stores) {
  const bool in_place = out.data == gate.data || out.data == up.data;
  if (in_place || stores == ActivateStores::kCached) return false;
  if (!internal::IsFloat(out.type)) return false;
  // Streaming stores need elements at multiples of their size.
  const size_t size = SizeOf(out.type);
  if (reinterpret_cast<uintptr_t>(out.data) % size != 0) return false;
  return stores == ActivateStores::kStreaming ||
         out.rows * out.cols >
             kActivateStreamingBytes / (size + 2 * SizeOf(gate.type));
}

// Returns the index of the first offset that is smaller than the previous
// offset (or than 0, for the first one), or larger than `rows`. Returns
// offsets.size if all offsets are good.
size_t FindDescent(Span<const int32_t> offsets, size_t rows) {
  int32_t last = 0;
  for (size_t i = 0; i < offsets.size; ++i) {
    const int32_t offset = offsets.data[i];
    if (offset < last || static_cast<size_t>(offset) > rows) return i;
    last = offset;
  }
  return offsets.size;
}
// Returns the index of the first count outside [0, most], or counts.size.
size_t FindAbove(size_t most, Span<const int32_t> counts) {
  for (size_t i = 0; i < counts.size; ++i) {
    const int32_t count = counts.data[i];
    if (count < 0 || static_cast<size_t>(count) > most) return i;
  }
  return counts.size;
}

// Checks offsets or tokens_per_expert, which say where each expert's rows are.
Status CheckCounts(const ActivateInputs& inputs, size_t rows) {
  const Span<const int32_t>& offsets = inputs.offsets;
  const size_t descent = FindDescent(offsets, rows);
  if (descent < offsets.size) {
    return internal::RefuseElement(
        "Activate: offsets: not ascending from 0 or more to rows or less",
        offsets, descent, descent == 0 ? 0 : offsets.data[descent - 1], rows);
  }
  const Span<const int32_t>& counts = inputs.tokens_per_expert;
  if (!internal::Given(counts)) return Status();
  const size_t most = rows / counts.size, above = FindAbove(most, counts);
  if (above == counts.size) return Status();
  return internal::RefuseElement(
      "Activate: tokens_per_expert: not from 0 to rows / num_experts", counts,
      above, 0, most);
}

// Runs the kernel that the options need. The caller has checked the views.
Status Run(const ConstAnyMatrix& gate, const ConstAnyMatrix& up,
           const ConstAnyMatrix& gate_bias, const ConstAnyMatrix& up_bias,
           const ActivateInputs& inputs, const AnyRows& out,
           const ActivateOptions& options, bool is_ordinary,
           Executor& executor) {
  const bool interleaved = options.layout == GateUpLayout::kInterleaved;
  const simd::ActivateArgs args = {gate, up, out, interleaved,
                                   Streams(gate, up, out, options.stores)};
  const size_t row_ps = out.rows <= 1 ? 0 : simd::ComputePs(300 * out.cols);
  const bool gated = options.layout != GateUpLayout::kUngated;
  if (is_ordinary && gated) {
    if (const auto kernel = simd::ActivateRows(gate.type)) {
      return internal::RunRows(executor, out.rows, row_ps, kernel, args);
    }
    return internal::Invalid(
        "Activate: no kernel has these types of arguments");
  }
  return internal::RunRows<simd::ActivateTilesArgs>(
      executor, out.rows, 2 * row_ps, simd::ActivateTiles(),
      {args, inputs, options, gate_bias, up_bias, gated});
}

}  // namespace

Status Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
                const ActivateOptions& options, Executor& executor) noexcept {
  const Checked<calls::ActivateCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const ConstAnyMatrix &gate = inputs.gate, &up = inputs.up,
                       &bias = inputs.gate_bias;
  const auto& [out] = outputs;
  const auto& [rows, cols, gate_cols, num_experts] = call.sizes;
  if (!call.is_ordinary) {
    const Status status = CheckCounts(inputs, rows);
    if (!status.ok()) return status;
  }
  if (cols == 0) return Status();
  if (options.layout != GateUpLayout::kConcatenated) {
    return Run(gate, up, bias, inputs.up_bias, inputs, out, options,
               call.is_ordinary, executor);
  }
  const auto half = [cols = cols](const ConstAnyMatrix& both, size_t begin) {
    return both.data != nullptr ? both.ColRange(begin, begin + cols) : both;
  };
  return Run(half(gate, 0), half(gate, cols), half(bias, 0), half(bias, cols),
             inputs, out, options, call.is_ordinary, executor);
}

}  // namespace switchyard
