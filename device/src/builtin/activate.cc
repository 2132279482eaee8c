// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"

#include <array>

#include "device/src/builtin/built_in.h"
#include "switchyard/device/kernels.h"

namespace switchyard::device {
namespace {

enum : uint8_t { kRows, kFfn };

Status CallActivate(const Operands& o) {
  return Activate({o[0], o[1]}, {o[2]}, {}, o.running.executor);
}

template <class Params>
constexpr BuiltIn SiluMulKernel(const char* stem, Type type, Dimension rows) {
  return {{stem, type},
          ParamsAt<Params>(3),
          {rows, SWITCHYARD_DIMENSION(Params, ffn)},
          {{0, "gate", type, kRows, kFfn},
           {1, "up", type, kRows, kFfn},
           {2, "out", type, kRows, kFfn, Usage::kWrite}},
          {Grid::kTiles, kRows, kFfn},
          CallActivate};
}

constexpr std::array<BuiltIn, 2> KernelsOver(Type type) {
  return {SiluMulKernel<SiluMulStackedParams>(
              "silu_mul_stacked", type,
              SWITCHYARD_DIMENSION(SiluMulStackedParams, n_slots)),
          SiluMulKernel<SiluMulBatchedParams>(
              "silu_mul_batched", type,
              SWITCHYARD_DIMENSION(SiluMulBatchedParams, total_pairs))};
}
constexpr auto kKernels = OverEveryRowType(KernelsOver);

}  // namespace

BuiltInTable activate_kernels() { return kKernels; }

}  // namespace switchyard::device
