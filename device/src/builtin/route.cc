// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include <array>

#include "device/src/builtin/built_in.h"
#include "switchyard/device/kernels.h"

namespace switchyard::device {
namespace {

// Indices into BuiltIn::dimensions. The third is kTokens or kRenormalize,
// depending on the kernel.
enum : uint8_t { kExperts, kTopK, kTokens, kRenormalize = kTokens };

Status Route(const Operands& o, bool renormalize) {
  RouteOptions options;
  options.renormalize = renormalize;
  return RouteTopK({o[0]}, {o[1], o[2]}, options, o.running.executor);
}

using Router = MoeRouterTopkSoftmaxParams;
using SoftmaxTopk = MoeSoftmaxTopkParams;

constexpr std::array<BuiltIn, 2> KernelsOver(Type type) {
  return {{
      {{"moe_router_topk_softmax", type},
       ParamsAt<Router>(3),
       {SWITCHYARD_DIMENSION(Router, num_experts),
        SWITCHYARD_DIMENSION(Router, top_k),
        SWITCHYARD_DIMENSION_OF(Router, norm_topk_prob, Dimension::kFlag)},
       {{0, "logits", type, kGridWidth, kExperts},
        {1, "ids", Type::kI32, kGridWidth, kTopK, Usage::kWrite},
        {2, "weights", Type::kF32, kGridWidth, kTopK, Usage::kWrite}},
       {Grid::kRows, kGridWidth, kOne, 32},
       [](const Operands& o) {
         return Route(o, o.factors[kRenormalize] != 0);
       }},
      {{"moe_softmax_topk", type},
       ParamsAt<SoftmaxTopk>(0),
       {SWITCHYARD_DIMENSION_OF(SoftmaxTopk, n_experts, Dimension::kPositive),
        SWITCHYARD_DIMENSION(SoftmaxTopk, top_k),
        SWITCHYARD_DIMENSION(SoftmaxTopk, n_tokens)},
       {{1, "logits", type, kTokens, kExperts},
        {2, "ids", Type::kU32, kTokens, kTopK, Usage::kWrite},
        {3, "weights", Type::kF32, kTokens, kTopK, Usage::kWrite}},
       {Grid::kRows, kTokens, kOne, 128, kExperts},
       [](const Operands& o) { return Route(o, true); }},
  }};
}
constexpr auto kKernels = OverEveryRowType(KernelsOver);

}  // namespace

BuiltInTable route_kernels() { return kKernels; }

}  // namespace switchyard::device
