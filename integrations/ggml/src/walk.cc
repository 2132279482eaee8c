// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "walk.h"

#include <algorithm>
#include <cstring>

namespace switchyard_ggml {

float Param(const ggml_tensor* t, int i) {
  float value;
  std::memcpy(&value, &t->op_params[i], sizeof(value));
  return value;
}

bool IsClosed(const ggml_cgraph& graph, const Chain& chain,
              std::initializer_list<const ggml_tensor*> outputs) {
  const auto is_output = [&](const ggml_tensor* t) {
    return std::find(outputs.begin(), outputs.end(), t) != outputs.end();
  };
  for (int i = chain.begin; i < chain.end; ++i) {
    const ggml_tensor* node = graph.nodes[i];
    const ggml_tensor* root = Root(node);
    if (is_output(root) || !IsComputedIn(graph, chain, root)) continue;
    if ((node->flags & GGML_TENSOR_FLAG_OUTPUT) != 0) return false;
    int readers = 0;
    for (int j = chain.begin; j < chain.end; ++j) {
      for (const ggml_tensor* source : graph.nodes[j]->src) {
        readers += source == node ? 1 : 0;
      }
    }
    if (readers != ggml_node_get_use_count(&graph, i)) return false;
  }
  return true;
}

bool IsComputedIn(const ggml_cgraph& graph, const Chain& chain,
                  const ggml_tensor* t) {
  const auto last = graph.nodes + chain.end;
  return std::find(graph.nodes + chain.begin, last, Root(t)) != last;
}

int ViewsOf(const ggml_cgraph& graph, const ggml_tensor* t) {
  return static_cast<int>(std::count_if(
      graph.nodes, graph.nodes + graph.n_nodes,
      [t](const ggml_tensor* node) { return node->view_src == t; }));
}

int Readers(const ggml_cgraph& graph, const Chain& chain,
            const ggml_tensor* node) {
  for (int i = chain.begin; i < chain.end; ++i) {
    if (graph.nodes[i] == node) return ggml_node_get_use_count(&graph, i);
  }
  return 0;
}

}  // namespace switchyard_ggml
