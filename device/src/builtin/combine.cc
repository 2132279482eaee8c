// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include <array>

#include "device/src/builtin/built_in.h"
#include "switchyard/device/kernels.h"

namespace switchyard::device {
namespace {

// Indices into BuiltIn::dimensions. Kernels for one token have no dimension
// kTokens and use kOne instead.
constexpr uint8_t kTopK = 0, kHidden = 1, kTokens = 2, kAddResidual = 3;

Status Sum(const Operands& o) {
  return Combine({o[0], o[1], RowIndex::kTokenOrder}, {o[2]}, {},
                 o.running.executor);
}

Status SumResidual(const Operands& o) {
  CombineInputs inputs = {o[0], o[1], RowIndex::kTokenOrder};
  inputs.residual = o[2];
  return Combine(inputs, {o[2]}, {}, o.running.executor);
}

template <class Params>
Status SumResidualNorm(const Operands& o) {
  CombineInputs inputs = {o[0], o[1], RowIndex::kTokenOrder};
  inputs.residual = o[2];
  inputs.norm_weight = o[3];
  return Combine(inputs, {o[2], o[4]}, {o.Params<Params>().eps},
                 o.running.executor);
}

Status WeightedReduce(const Operands& o) {
  CombineInputs inputs = {o[1], o[0], RowIndex::kTokenOrder};
  inputs.shared = {o[3], o[2], SharedGate::kLogit};
  inputs.residual = o[4];
  return Combine(inputs, {o[5]}, {}, o.running.executor);
}

constexpr BuiltIn SumKernel(const char* stem, Type type, ParamsBinding params,
                            Dimension top_k, Dimension hidden, Dimension tokens,
                            const char* out, Usage usage,
                            Status (*call)(const Operands&)) {
  const uint8_t token = tokens.name == nullptr ? kOne : kTokens;
  return {{stem, type},
          params,
          {top_k, hidden, tokens},
          {{0, "slots", type, {token, kTopK}, kHidden},
           {1, "weights", Type::kF32, token, kTopK},
           {2, out, type, token, kHidden, usage}},
          {Grid::kTiles, token, kHidden},
          call};
}

constexpr BuiltIn NormKernel(const char* stem, Type type, ParamsBinding params,
                             Dimension top_k, Dimension hidden,
                             Dimension tokens,
                             Status (*call)(const Operands&)) {
  const uint8_t token = tokens.name == nullptr ? kOne : kTokens;
  return {{stem, type},
          params,
          {top_k, hidden, tokens},
          {{0, "slots", type, {token, kTopK}, kHidden},
           {1, "weights", Type::kF32, token, kTopK},
           {2, "residual", type, token, kHidden, Usage::kReadWrite},
           {3, "next_norm_w", type, kOne, kHidden},
           {4, "normed", type, token, kHidden, Usage::kWrite}},
          {Grid::kRows, token},
          call};
}

using Stacked = WeightedSumStackedParams;
using Batched = WeightedSumBatchedParams;
using NormStacked = WeightedSumResidualNormStackedParams;
using NormBatched = WeightedSumResidualNormBatchedParams;
using Reduce = MoeWeightedReduceParams;

constexpr BuiltIn ReduceKernel(Type type) {
  return {{"moe_weighted_reduce", type},
          ParamsAt<Reduce>(0),
          {SWITCHYARD_DIMENSION(Reduce, top_k), SWITCHYARD_DIMENSION(Reduce, h),
           SWITCHYARD_DIMENSION(Reduce, n_tokens),
           SWITCHYARD_DIMENSION_OF(Reduce, add_residual, Dimension::kFlag)},
          {{1, "expert_w", Type::kF32, kTokens, kTopK},
           {2, "y_expert", type, {kTokens, kTopK}, kHidden},
           {3, "sh_gate", type, kOne, kTokens},
           {4, "y_shared", type, kTokens, kHidden},
           {5, "residual", type, kTokens, kHidden, Usage::kRead, kAddResidual},
           {6, "output", type, kTokens, kHidden, Usage::kWrite}},
          {Grid::kTiles, kTokens, kHidden},
          WeightedReduce};
}

constexpr std::array<BuiltIn, 6> KernelsOver(Type type) {
  return {SumKernel("weighted_sum_stacked", type, ParamsAt<Stacked>(3),
                    SWITCHYARD_DIMENSION(Stacked, n_slots),
                    SWITCHYARD_DIMENSION(Stacked, hidden), {}, "out",
                    Usage::kWrite, Sum),
          SumKernel("weighted_sum_residual_stacked", type, ParamsAt<Stacked>(3),
                    SWITCHYARD_DIMENSION(Stacked, n_slots),
                    SWITCHYARD_DIMENSION(Stacked, hidden), {}, "residual",
                    Usage::kReadWrite, SumResidual),
          SumKernel("weighted_sum_batched", type, ParamsAt<Batched>(3),
                    SWITCHYARD_DIMENSION(Batched, top_k),
                    SWITCHYARD_DIMENSION(Batched, hidden),
                    SWITCHYARD_DIMENSION(Batched, batch), "out", Usage::kWrite,
                    Sum),
          NormKernel("weighted_sum_residual_norm_stacked", type,
                     ParamsAt<NormStacked>(5),
                     SWITCHYARD_DIMENSION(NormStacked, n_slots),
                     SWITCHYARD_DIMENSION(NormStacked, hidden), {},
                     SumResidualNorm<NormStacked>),
          NormKernel("weighted_sum_residual_norm_batched", type,
                     ParamsAt<NormBatched>(5),
                     SWITCHYARD_DIMENSION(NormBatched, top_k),
                     SWITCHYARD_DIMENSION(NormBatched, hidden),
                     SWITCHYARD_DIMENSION(NormBatched, batch),
                     SumResidualNorm<NormBatched>),
          ReduceKernel(type)};
}
constexpr auto kKernels = OverEveryRowType(KernelsOver);

}  // namespace

BuiltInTable combine_kernels() { return kKernels; }

}  // namespace switchyard::device
