// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/call.h"
#include "switchyard/device/kernels.h"
#include "switchyard/silu_mul.h"

namespace switchyard {
namespace device {
namespace {

void Run(Call& call, size_t rows, size_t cols) {
  const auto gate = call.In<float>(0, "gate", rows, cols);
  const auto up = call.In<float>(1, "up", rows, cols);
  const auto out = call.Out<float>(2, "out", rows, cols);
  const Part part = call.ColumnTiles(rows, cols);
  if (!call.ok()) return;
  call.Reads(0, part(gate));
  call.Reads(1, part(up));
  call.Writes(2, part(out));
  if (!call.ok()) return;
  call.Finish(SiluMul(part(gate), part(up), part(out), call.executor));
}

void Stacked(Call& call) {
  const auto p = call.Params<SiluMulStackedParams>(3);
  const size_t slots = call.Dim("n_slots", p.n_slots);
  Run(call, slots, call.Dim("ffn", p.ffn));
}

void Batched(Call& call) {
  const auto p = call.Params<SiluMulBatchedParams>(3);
  const size_t pairs = call.Dim("total_pairs", p.total_pairs);
  Run(call, pairs, call.Dim("ffn", p.ffn));
}

constexpr BuiltIn kKernels[] = {
    {"silu_mul_stacked_f32", Stacked},
    {"silu_mul_batched_f32", Batched},
};

}  // namespace

Span<const BuiltIn> SiluMulKernels() { return kKernels; }

}  // namespace device
}  // namespace switchyard
