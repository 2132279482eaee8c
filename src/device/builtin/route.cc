// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include "src/device/builtin/built_in.h"
#include "switchyard/device/kernels.h"

namespace switchyard::device {
namespace {

// The third is one or the other.
enum : uint8_t { kExperts, kTopK, kTokens, kRenormalize = kTokens };

Status Route(const Operands& o, bool renormalize) {
  RouteOptions options;
  options.renormalize = renormalize;
  return RouteTopK({o[0]}, {o[1], o[2]}, options, o.running.executor);
}

using Router = MoeRouterTopkSoftmaxParams;
using SoftmaxTopk = MoeSoftmaxTopkParams;

constexpr BuiltIn kKernels[] = {
    {"moe_router_topk_softmax_f32",
     ParamsAt<Router>(3),
     {SWITCHYARD_DIMENSION(Router, num_experts),
      SWITCHYARD_DIMENSION(Router, top_k),
      SWITCHYARD_DIMENSION_OF(Router, norm_topk_prob, Dimension::kFlag)},
     {{0, "logits", kGridWidth, kExperts},
      {1, "ids", kGridWidth, kTopK, Usage::kWrite, Type::kI32},
      {2, "weights", kGridWidth, kTopK, Usage::kWrite}},
     {Grid::kRows, kGridWidth, kOne, 32},
     [](const Operands& o) { return Route(o, o.factors[kRenormalize] != 0); }},
    {"moe_softmax_topk_f32",
     ParamsAt<SoftmaxTopk>(0),
     {SWITCHYARD_DIMENSION_OF(SoftmaxTopk, n_experts, Dimension::kPositive),
      SWITCHYARD_DIMENSION(SoftmaxTopk, top_k),
      SWITCHYARD_DIMENSION(SoftmaxTopk, n_tokens)},
     {{1, "logits", kTokens, kExperts},
      {2, "ids", kTokens, kTopK, Usage::kWrite, Type::kU32},
      {3, "weights", kTokens, kTopK, Usage::kWrite}},
     {Grid::kRows, kTokens, kOne, 128, kExperts},
     [](const Operands& o) { return Route(o, true); }},
};

}  // namespace

BuiltInTable route_kernels() { return kKernels; }

}  // namespace switchyard::device
