// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cstddef>
#include <cstdint>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/activate.h"
#include "src/simd/targets.h"

namespace switchyard {
namespace {

// The arguments are checked: their bytes fit the address space.
bool Streams(const ConstAnyMatrix& gate, const ConstAnyMatrix& up,
             const AnyMatrix& out, ActivateStores stores) {
  const bool in_place = out.data == gate.data || out.data == up.data;
  if (in_place || stores == ActivateStores::kCached) return false;
  // Streaming stores need whole vectors at multiples of their size.
  const size_t size = SizeOf(out.type);
  if (reinterpret_cast<uintptr_t>(out.data) % size != 0) return false;
  return stores == ActivateStores::kStreaming ||
         out.rows * out.cols > kActivateStreamingBytes / (3 * size);
}

// Of views that are known to be right, but for what `out` overlaps.
Status Run(const ConstAnyMatrix& gate, const ConstAnyMatrix& up,
           const AnyMatrix& out, const ActivateOptions& options,
           Executor& executor) {
  const bool interleaved = options.layout == GateUpLayout::kInterleaved;
  if (interleaved) {
    SWITCHYARD_CHECK_APART(Activate, out, gate);
  } else {
    SWITCHYARD_CHECK_APART_OR_SAME(Activate, out, gate);
    SWITCHYARD_CHECK_APART_OR_SAME(Activate, out, up);
  }
  if (out.cols == 0) return Status();

  const auto kernel = simd::ActivateRows(gate.type, out.type);
  SWITCHYARD_CHECK_KERNEL(Activate, kernel);
  const size_t row_ps = out.rows <= 1 ? 0 : simd::ComputePs(300 * out.cols);
  return internal::RunRows(executor, out.rows, row_ps, kernel,
                           {gate, up, out, options.activation, interleaved,
                            Streams(gate, up, out, options.stores)});
}

}  // namespace

Status Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
                const ActivateOptions& options, Executor& executor) noexcept {
  const auto& [gate, up] = inputs;
  const auto& [out] = outputs;
  const size_t rows = out.rows, cols = out.cols;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_LISTED(Activate, activation, Activation,
                          SWITCHYARD_ACTIVATIONS);
  SWITCHYARD_CHECK(options.layout == GateUpLayout::kSplit ||
                       options.layout == GateUpLayout::kConcatenated ||
                       options.layout == GateUpLayout::kInterleaved,
                   "Activate: options: layout is not a known GateUpLayout");
  SWITCHYARD_CHECK(options.stores == ActivateStores::kAuto ||
                       options.stores == ActivateStores::kCached ||
                       options.stores == ActivateStores::kStreaming,
                   "Activate: options: stores is not a known ActivateStores");
  SWITCHYARD_CHECK_F32(Activate, gate);
  SWITCHYARD_CHECK_F32(Activate, up);
  SWITCHYARD_CHECK_F32(Activate, out);
  if (options.layout == GateUpLayout::kSplit) {
    SWITCHYARD_CHECK_SHAPE(Activate, gate, rows, cols);
    SWITCHYARD_CHECK_SHAPE(Activate, up, rows, cols);
  } else {
    SWITCHYARD_CHECK_SHAPE(Activate, gate, rows, 2 * cols);
    SWITCHYARD_CHECK(!internal::Given(up),
                     "Activate: up: given beside both in gate");
  }
  if (options.layout != GateUpLayout::kConcatenated) {
    return Run(gate, up, out, options, executor);
  }
  return Run(gate.ColRange(0, cols), gate.ColRange(cols, 2 * cols), out,
             options, executor);
}

}  // namespace switchyard
