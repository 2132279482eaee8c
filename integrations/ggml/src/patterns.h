// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds chains of nodes that one call of Switchyard can compute. A chain must
// have exactly one of the forms below, which llama.cpp's build_moe_ffn makes.
// Switchyard does not write a chain's intermediate tensors, so no node outside
// of the chain may read them.

#ifndef SWITCHYARD_GGML_PATTERNS_H_
#define SWITCHYARD_GGML_PATTERNS_H_

#include <optional>
#include <vector>

#include "ggml.h"
#include "switchyard/activate.h"
#include "switchyard/route.h"

struct ggml_cgraph;

namespace switchyard_ggml {

// Nodes [begin, end) of a graph. Some of them are views.
struct Chain {
  int begin = 0;
  int end = 0;
  // Tensors that Switchyard still reads after it has begun to write outputs.
  // Their memory must be kept until the chain's last node, because ggml's
  // allocator might place an output there.
  std::vector<const ggml_tensor*> kept;
};

// A router: computes ids and weights from logits.
struct RouterChain : Chain {
  const ggml_tensor* logits = nullptr;
  const ggml_tensor* bias = nullptr;  // optional
  // The whole argsort. Only its first top_k columns are written.
  const ggml_tensor* ids = nullptr;
  int64_t top_k = 0;
  const ggml_tensor* weights = nullptr;
  switchyard::RouteOptions options;
};

// One MUL_MAT_ID and its optional bias.
struct Linear {
  const ggml_tensor* weights = nullptr;  // [in, out, experts]
  const ggml_tensor* bias = nullptr;     // [out, experts]
};

// Sums each token's rows times their weights. May also add the residual, and
// compute a norm of the result.
struct CombineChain : Chain {
  const ggml_tensor* rows = nullptr;      // [hidden, slots, tokens]
  const ggml_tensor* weights = nullptr;   // [1, slots, tokens]
  const ggml_tensor* residual = nullptr;  // added to the sum, or null
  const ggml_tensor* norm_weight = nullptr;
  // The sum; null if only the norm reads it.
  const ggml_tensor* out = nullptr;
  const ggml_tensor* normed = nullptr;  // the norm of the sum, or null
  float eps = 0.0f;
};

// A layer's experts: gate, up, activation and down, and then a CombineChain.
struct ExpertsChain : Chain {
  const ggml_tensor* input = nullptr;  // [hidden, 1, tokens]
  const ggml_tensor* ids = nullptr;    // [slots, tokens]
  // Gate, or gate and up in one product if up.weights is null.
  Linear gate;
  Linear up;
  Linear down;
  switchyard::ActivateOptions activation;
  CombineChain combine;
};

// Each function returns the chain of its form that begins with node `begin`, or
// nullopt if no such chain begins there. The node must not be a view.
std::optional<RouterChain> MatchRouter(const ggml_cgraph& graph, int begin);
std::optional<ExpertsChain> MatchExperts(const ggml_cgraph& graph, int begin);
std::optional<CombineChain> MatchCombine(const ggml_cgraph& graph, int begin);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_PATTERNS_H_
