// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include "src/device/builtin/built_in.h"
#include "switchyard/device/kernels.h"

namespace switchyard::device {
namespace {

enum : uint8_t { kRows, kFfn };

Status CallActivate(const Operands& o) {
  return Activate({o[0], o[1]}, {o[2]}, {}, o.running.executor);
}

template <class Params>
constexpr BuiltIn SiluMulKernel(const char* name, Dimension rows) {
  return {name,
          ParamsAt<Params>(3),
          {rows, SWITCHYARD_DIMENSION(Params, ffn)},
          {{0, "gate", kRows, kFfn},
           {1, "up", kRows, kFfn},
           {2, "out", kRows, kFfn, Usage::kWrite}},
          {Grid::kTiles, kRows, kFfn},
          CallActivate};
}

constexpr BuiltIn kKernels[] = {
    SiluMulKernel<SiluMulStackedParams>(
        "silu_mul_stacked_f32",
        SWITCHYARD_DIMENSION(SiluMulStackedParams, n_slots)),
    SiluMulKernel<SiluMulBatchedParams>(
        "silu_mul_batched_f32",
        SWITCHYARD_DIMENSION(SiluMulBatchedParams, total_pairs)),
};

}  // namespace

BuiltInTable activate_kernels() { return kKernels; }

}  // namespace switchyard::device
