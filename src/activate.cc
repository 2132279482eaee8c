// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/check.h"
#include "src/check_rows.h"
#include "src/schedule.h"
#include "src/shapes.h"
#include "src/simd/activate.h"
#include "src/simd/targets.h"

namespace switchyard {
namespace {

// The arguments are checked: their bytes fit the address space.
bool Streams(const ConstAnyMatrix& gate, const ConstAnyMatrix& up,
             const AnyRows& out, ActivateStores stores) {
  const bool in_place = out.data == gate.data || out.data == up.data;
  if (in_place || stores == ActivateStores::kCached) return false;
  if (!internal::IsFloat(out.type)) return false;
  // Streaming stores need whole vectors at multiples of their size.
  const size_t size = SizeOf(out.type);
  if (reinterpret_cast<uintptr_t>(out.data) % size != 0) return false;
  return stores == ActivateStores::kStreaming ||
         out.rows * out.cols >
             kActivateStreamingBytes / (size + 2 * SizeOf(gate.type));
}

constexpr bool IsOfGate(Activation activation) {
  switch (activation) {
#define SWITCHYARD_CASE(name, Function, of_gate) \
  case Activation::name:                         \
    return of_gate;
    SWITCHYARD_ACTIVATIONS(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
  return false;
}

using internal::Given;
using internal::Role;

// Whether there is anything but gate and up.
bool HasMore(const ActivateInputs& in) {
  return Given(in.gate_bias) || Given(in.up_bias) || Given(in.row_scale) ||
         Given(in.offsets) || Given(in.tokens_per_expert);
}

// Of normal size: so is 1 / x, or as good as. By the bits, see IsUpTo().
bool IsPositive(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(x));
  return bits >= 0x00800000 && bits < 0x7F800000;
}

bool Ascends(Span<const int32_t> offsets, size_t rows) {
  int32_t last = 0;
  for (const int32_t offset : offsets) {
    if (offset < last) return false;
    last = offset;
  }
  return static_cast<size_t>(last) <= rows;
}
bool AreUpTo(size_t most, Span<const int32_t> counts) {
  for (const int32_t count : counts) {
    if (count < 0 || static_cast<size_t>(count) > most) return false;
  }
  return true;
}

// Gate, up and out do not fit each other.
[[gnu::cold, gnu::noinline]] const char* ShapeError(
    const ActivateInputs& inputs, const ActivateOutputs& outputs,
    GateUpLayout layout) {
  const auto& [out] = outputs;
  const auto& gate = inputs.gate;
  const auto& up = inputs.up;
  if (layout == GateUpLayout::kSplit) {
    const internal::Shaped arguments[] = {
        SWITCHYARD_SHAPED(Activate, Role::kInput, gate, rows, cols),
        SWITCHYARD_SHAPED(Activate, Role::kInput, up, rows, cols),
        SWITCHYARD_SHAPED(Activate, Role::kOutput, out, rows, cols)};
    return internal::OddOneOut(arguments,
                               "Activate: gate: is not [rows, cols]");
  }
  if (!Given(gate)) return "Activate: gate: not given";
  if (!Given(out)) return "Activate: out: not given";
  // Two views, of which either may be wrong.
  if (layout == GateUpLayout::kUngated) {
    return "Activate: out: is not [rows, cols] of gate";
  }
  if (gate.cols == out.cols || gate.cols % 2 != 0) {
    return "Activate: gate: is not [rows, 2 * cols]";
  }
  return "Activate: out: is not [rows, cols] of both in gate";
}

[[gnu::cold, gnu::noinline]] const char* UpTypeError(const ConstAnyMatrix& gate,
                                                     const ConstAnyMatrix& up) {
  if (!Given(gate)) return "Activate: gate: not given";
  return Given(up) ? "Activate: up: is not of the type of gate"
                   : "Activate: up: not given";
}

// A bias that has not as many rows as there are experts.
[[gnu::cold, gnu::noinline]] const char* BiasError(const ActivateInputs& inputs,
                                                   const ConstAnyMatrix& bias,
                                                   const char* otherwise) {
  if (bias.rows > 1 && !Given(inputs.offsets) &&
      !Given(inputs.tokens_per_expert)) {
    return "Activate: offsets: not given, nor tokens_per_expert, with biases "
           "of several experts";
  }
  return inputs.offsets.size == bias.rows
             ? "Activate: offsets: size is not num_experts + 1"
             : otherwise;
}

// What is given beside gate and up.
Status CheckMore(const ActivateInputs& inputs, const AnyRows& out,
                 const ActivateOptions& options) {
  const auto& [gate, up, gate_bias, up_bias, row_scale, offsets,
               tokens_per_expert] = inputs;
  const size_t rows = out.rows, cols = out.cols;
  const bool packed = Given(offsets), padded = Given(tokens_per_expert);
  SWITCHYARD_CHECK(!packed || !padded,
                   "Activate: offsets: given beside tokens_per_expert");
  if (packed) {
    SWITCHYARD_CHECK_VIEW(Activate, offsets);
    SWITCHYARD_CHECK(offsets.size >= 2,
                     "Activate: offsets: size is not num_experts + 1");
  }
  if (padded) {
    SWITCHYARD_CHECK_VIEW(Activate, tokens_per_expert);
    SWITCHYARD_CHECK(
        tokens_per_expert.size != 0 && rows % tokens_per_expert.size == 0,
        "Activate: tokens_per_expert: size does not divide the rows");
  }
  const size_t num_experts = packed   ? offsets.size - 1
                             : padded ? tokens_per_expert.size
                                      : 1;
  if (Given(gate_bias)) {
    SWITCHYARD_CHECK_FLOATS(Activate, gate_bias);
    SWITCHYARD_CHECK(
        gate_bias.rows == num_experts && gate_bias.cols == gate.cols,
        BiasError(inputs, gate_bias,
                  "Activate: gate_bias: is not [num_experts, gate.cols]"));
  }
  if (Given(up_bias)) {
    SWITCHYARD_CHECK(options.layout == GateUpLayout::kSplit,
                     "Activate: up_bias: given without up");
    SWITCHYARD_CHECK_FLOATS(Activate, up_bias);
    SWITCHYARD_CHECK(
        up_bias.rows == num_experts && up_bias.cols == cols,
        BiasError(inputs, up_bias,
                  "Activate: up_bias: is not [num_experts, cols]"));
  }
  if (Given(row_scale)) {
    SWITCHYARD_CHECK_FLOATS(Activate, row_scale);
    SWITCHYARD_CHECK_SHAPE(Activate, row_scale, rows, 1);
  }
  SWITCHYARD_CHECK_APART(Activate, out, gate_bias, up_bias, row_scale, offsets,
                         tokens_per_expert);
  SWITCHYARD_CHECK_PARTS_APART(Activate, out, gate_bias, up_bias, row_scale,
                               offsets, tokens_per_expert);
  SWITCHYARD_CHECK_DATA(
      Ascends(offsets, rows),
      "Activate: offsets: not ascending from 0 or more to rows or less");
  SWITCHYARD_CHECK_DATA(
      !padded || AreUpTo(rows / tokens_per_expert.size, tokens_per_expert),
      "Activate: tokens_per_expert: not from 0 to rows / num_experts");
  return Status();
}

// Of views that are known to be right, but for what `out` overlaps.
Status Run(const ConstAnyMatrix& gate, const ConstAnyMatrix& up,
           const ConstAnyMatrix& gate_bias, const ConstAnyMatrix& up_bias,
           const ActivateInputs& inputs, const AnyRows& out,
           const ActivateOptions& options, Executor& executor) {
  const bool interleaved = options.layout == GateUpLayout::kInterleaved;
  if (interleaved) {
    SWITCHYARD_CHECK_APART(Activate, out, gate);
  } else {
    SWITCHYARD_CHECK_APART_OR_SAME(Activate, out, gate);
    SWITCHYARD_CHECK_APART_OR_SAME(Activate, out, up);
  }
  SWITCHYARD_CHECK_PARTS_APART(Activate, out, gate, up);
  const bool more = HasMore(inputs);
  if (more) {
    const Status status = CheckMore(inputs, out, options);
    if (!status.ok()) return status;
  }
  if (out.cols == 0) return Status();

  const simd::ActivateArgs args = {gate, up, out, interleaved,
                                   Streams(gate, up, out, options.stores)};
  const size_t row_ps = out.rows <= 1 ? 0 : simd::ComputePs(300 * out.cols);
  const bool gated = options.layout != GateUpLayout::kUngated;
  if (options.activation == Activation::kSilu && gated && !more &&
      options.limit == 0.0f && !options.round_like_unfused) {
    const auto kernel = simd::ActivateRows(gate.type);
    SWITCHYARD_CHECK_KERNEL(Activate, kernel);
    return internal::RunRows(executor, out.rows, row_ps, kernel, args);
  }
  return internal::RunRows<simd::ActivateTilesArgs>(
      executor, out.rows, 2 * row_ps, simd::ActivateTiles(),
      {args, inputs, options, gate_bias, up_bias, gated});
}

}  // namespace

Status Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
                const ActivateOptions& options, Executor& executor) noexcept {
  const ConstAnyMatrix &gate = inputs.gate, &up = inputs.up;
  const auto& [out] = outputs;
  const size_t rows = out.rows, cols = out.cols;
  const GateUpLayout layout = options.layout;
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_LISTED(Activate, activation, Activation,
                          SWITCHYARD_ACTIVATIONS);
  SWITCHYARD_CHECK(layout <= GateUpLayout::kUngated,
                   "Activate: options: layout is not a known GateUpLayout");
  SWITCHYARD_CHECK(options.stores <= ActivateStores::kStreaming,
                   "Activate: options: stores is not a known ActivateStores");
  SWITCHYARD_CHECK(
      options.limit_place <= ActivatePlace::kAfter,
      "Activate: options: limit_place is not a known ActivatePlace");
  SWITCHYARD_CHECK(
      options.row_scale_place <= ActivatePlace::kAfter,
      "Activate: options: row_scale_place is not a known ActivatePlace");
  SWITCHYARD_CHECK(internal::IsUpTo(HUGE_VALF, options.limit),
                   "Activate: options: limit is negative or NaN");
  SWITCHYARD_CHECK(IsPositive(options.alpha),
                   "Activate: options: alpha is not positive and finite");
  SWITCHYARD_CHECK(IsPositive(options.beta),
                   "Activate: options: beta is not positive and finite");
  SWITCHYARD_CHECK(IsPositive(options.linear_beta),
                   "Activate: options: linear_beta is not positive and finite");
  if (!IsOfGate(options.activation)) {
    SWITCHYARD_CHECK(layout != GateUpLayout::kUngated,
                     "Activate: options: layout: kUngated, but activation "
                     "does more with up than to multiply by it");
    SWITCHYARD_CHECK(options.limit_place == ActivatePlace::kBefore,
                     "Activate: options: limit_place: kAfter, but activation "
                     "does more with up than to multiply by it");
  }
  SWITCHYARD_CHECK_FLOATS(Activate, gate);
  SWITCHYARD_CHECK_FLOATS(Activate, up);
  SWITCHYARD_CHECK_ROWS(Activate, out);
  if (layout == GateUpLayout::kSplit) {
    SWITCHYARD_CHECK(up.type == gate.type, UpTypeError(gate, up));
    SWITCHYARD_CHECK(gate.rows == rows && gate.cols == cols &&
                         up.rows == rows && up.cols == cols,
                     ShapeError(inputs, outputs, layout));
  } else if (layout == GateUpLayout::kUngated) {
    SWITCHYARD_CHECK(gate.rows == rows && gate.cols == cols,
                     ShapeError(inputs, outputs, layout));
    SWITCHYARD_CHECK(!Given(up), "Activate: up: given with kUngated");
  } else {
    SWITCHYARD_CHECK(gate.rows == rows && gate.cols == 2 * cols,
                     ShapeError(inputs, outputs, layout));
    SWITCHYARD_CHECK(!Given(up), "Activate: up: given beside both in gate");
  }
  const ConstAnyMatrix& bias = inputs.gate_bias;
  if (layout != GateUpLayout::kConcatenated) {
    return Run(gate, up, bias, inputs.up_bias, inputs, out, options, executor);
  }
  const auto half = [cols](const ConstAnyMatrix& both, size_t begin) {
    return both.data != nullptr ? both.ColRange(begin, begin + cols) : both;
  };
  return Run(half(gate, 0), half(gate, cols), half(bias, 0), half(bias, cols),
             inputs, out, options, executor);
}

}  // namespace switchyard
