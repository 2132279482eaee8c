// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// How patterns are looked for in a graph's nodes.

#ifndef SWITCHYARD_GGML_WALK_H_
#define SWITCHYARD_GGML_WALK_H_

#include <initializer_list>

#include "claims.h"
#include "ggml-impl.h"
#include "patterns.h"

namespace switchyard_ggml {

float Param(const ggml_tensor* t, int i);

// Walks over the nodes that compute something.
class Cursor {
 public:
  Cursor(const ggml_cgraph& graph, int begin) : graph_(&graph), at_(begin) {
    SkipViews();
  }
  // Nullptr behind the last node, for one that is not to be computed, and for
  // one that is computed in another's memory, whose readers would be told apart
  // by their place in the graph.
  const ggml_tensor* Get() const {
    if (at_ >= graph_->n_nodes) return nullptr;
    const ggml_tensor* node = graph_->nodes[at_];
    const bool is_computed = (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
    return is_computed && node->view_src == nullptr ? node : nullptr;
  }
  void Next() {
    end_ = ++at_;
    SkipViews();
  }
  // The node, if it is this one, and moves on.
  bool Take(const ggml_tensor* node) {
    if (node == nullptr || Get() != node) return false;
    Next();
    return true;
  }
  int end() const { return end_; }  // behind the last that was taken

 private:
  void SkipViews() {
    while (at_ < graph_->n_nodes && IsViewOp(graph_->nodes[at_])) ++at_;
  }

  const ggml_cgraph* graph_;
  int at_;
  int end_ = 0;
};

// Whether all readers of the chain's nodes, but for its outputs, are in it.
bool IsClosed(const ggml_cgraph& graph, const Chain& chain,
              std::initializer_list<const ggml_tensor*> outputs);

// Whether a node of the chain computes it, or what it is a view of.
bool IsComputedIn(const ggml_cgraph& graph, const Chain& chain,
                  const ggml_tensor* t);

// How many of the graph's nodes are views of it, or of such a view.
int ViewsOf(const ggml_cgraph& graph, const ggml_tensor* t);

// How many nodes read it; 0 if it is not in the chain.
int Readers(const ggml_cgraph& graph, const Chain& chain,
            const ggml_tensor* node);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_WALK_H_
