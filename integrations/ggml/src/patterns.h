// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds chains of nodes that one call of Switchyard computes. A chain must
// have exactly one of these forms, which llama.cpp's build_moe_ffn makes. It
// must also have no outside reader of a tensor that Switchyard does not
// write.

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
  // Tensors that Switchyard reads after it has begun to write outputs. ggml's
  // allocator might reuse their memory by then, so they must be kept until the
  // last node.
  std::vector<const ggml_tensor*> kept;
};

// logits -> ids, weights.
struct RouterChain : Chain {
  const ggml_tensor* logits = nullptr;
  const ggml_tensor* bias = nullptr;  // optional
  const ggml_tensor* ids = nullptr;   // the whole argsort; only its first
  int64_t top_k = 0;                  // top_k columns are written
  const ggml_tensor* weights = nullptr;
  switchyard::RouteOptions options;
};

// One MUL_MAT_ID and its optional bias.
struct Linear {
  const ggml_tensor* weights = nullptr;  // [in, out, experts]
  const ggml_tensor* bias = nullptr;     // [out, experts]
};

// Experts' rows, weights -> sum over slots [+ residual [-> norm]].
struct CombineChain : Chain {
  const ggml_tensor* rows = nullptr;      // [hidden, slots, tokens]
  const ggml_tensor* weights = nullptr;   // [1, slots, tokens]
  const ggml_tensor* residual = nullptr;  // optional
  const ggml_tensor* norm_weight = nullptr;
  const ggml_tensor* out = nullptr;     // nullptr: only the norm reads it
  const ggml_tensor* normed = nullptr;  // with norm_weight
  float eps = 0.0f;
};

// Gate, up, activation, down, and the CombineChain after them.
struct ExpertsChain : Chain {
  const ggml_tensor* input = nullptr;  // [hidden, 1, tokens]
  const ggml_tensor* ids = nullptr;    // [slots, tokens]
  Linear gate;                         // has both, if `up` has no weights
  Linear up;
  Linear down;
  switchyard::ActivateOptions activation;
  CombineChain combine;
};

// The chain that begins with node `begin`, which must not be a view.
std::optional<RouterChain> MatchRouter(const ggml_cgraph& graph, int begin);
std::optional<ExpertsChain> MatchExperts(const ggml_cgraph& graph, int begin);
std::optional<CombineChain> MatchCombine(const ggml_cgraph& graph, int begin);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_PATTERNS_H_
