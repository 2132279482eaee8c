// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include <algorithm>

#include "src/device/call.h"
#include "switchyard/device/kernels.h"

namespace switchyard {
namespace device {
namespace {

// The first buffers are logits, ids and weights, from `index` on.
void Run(Call& call, size_t index, size_t tokens, size_t rows, size_t experts,
         size_t top_k, bool renormalize) {
  const auto logits = call.In<float>(index, "logits", tokens, experts);
  const auto ids = call.Out<int32_t>(index + 1, "ids", tokens, top_k);
  const auto weights = call.Out<float>(index + 2, "weights", tokens, top_k);
  if (!call.ok()) return;
  call.Reads(index, logits.RowRange(0, rows));
  call.Writes(index + 1, ids.RowRange(0, rows));
  call.Writes(index + 2, weights.RowRange(0, rows));
  if (!call.ok()) return;
  RouteOptions options;
  options.renormalize = renormalize;
  call.Finish(RouteTopK(logits.RowRange(0, rows), options,
                        ids.RowRange(0, rows), weights.RowRange(0, rows),
                        call.executor));
}

void RouterTopkSoftmax(Call& call) {
  const auto p = call.Params<MoeRouterTopkSoftmaxParams>(3);
  const size_t experts = call.Dim("num_experts", p.num_experts);
  const size_t top_k = call.Dim("top_k", p.top_k);
  const size_t tokens = call.RowPerThreadgroup(32, SIZE_MAX);
  Run(call, 0, tokens, tokens, experts, top_k, p.norm_topk_prob != 0);
}

void SoftmaxTopk(Call& call) {
  const auto p = call.Params<MoeSoftmaxTopkParams>(0);
  const size_t tokens = call.Dim("n_tokens", p.n_tokens);
  const size_t experts = call.Dim("n_experts", p.n_experts);
  const size_t top_k = call.Dim("top_k", p.top_k);
  if (call.ok() && experts == 0) call.Fail("params: n_experts is 0");
  if (!call.ok()) return;  // no width to ask for
  const size_t rows =
      call.RowPerThreadgroup(std::min<size_t>(experts, 128), tokens);
  Run(call, 1, tokens, rows, experts, top_k, true);
}

constexpr BuiltIn kKernels[] = {
    {"moe_router_topk_softmax_f32", RouterTopkSoftmax},
    {"moe_softmax_topk_f32", SoftmaxTopk},
};

}  // namespace

Span<const BuiltIn> RouteKernels() { return kKernels; }

}  // namespace device
}  // namespace switchyard
