// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers that patterns.h uses to find chains in a graph's nodes.

#ifndef SWITCHYARD_GGML_WALK_H_
#define SWITCHYARD_GGML_WALK_H_

#include <initializer_list>

#include "claims.h"
#include "ggml-impl.h"
#include "patterns.h"

namespace switchyard_ggml {

float Param(const ggml_tensor* t, int i);

// Walks over the nodes that compute something, skipping views.
class Cursor {
 public:
  Cursor(const ggml_cgraph& graph, int begin) : graph_(&graph), at_(begin) {
    SkipViews();
  }
  // Returns the current node. Returns nullptr after the last node, and for a
  // node that ggml does not compute. Also returns nullptr for a node that
  // writes to another tensor's memory. A chain may not contain such a node,
  // because it would change the order in which this memory is written and read.
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
  // Moves to the next node if the current node is `node`, and returns true.
  // If not, returns false.
  bool Take(const ggml_tensor* node) {
    if (node == nullptr || Get() != node) return false;
    Next();
    return true;
  }
  int end() const { return end_; }  // the index after the last node taken

 private:
  void SkipViews() {
    while (at_ < graph_->n_nodes && IsViewOp(graph_->nodes[at_])) ++at_;
  }

  const ggml_cgraph* graph_;
  int at_;
  int end_ = 0;
};

// True if no node outside of the chain reads a node of the chain, except
// `outputs`.
bool IsClosed(const ggml_cgraph& graph, const Chain& chain,
              std::initializer_list<const ggml_tensor*> outputs);

// True if a node of the chain computes `t`, or the tensor that `t` views.
bool IsComputedIn(const ggml_cgraph& graph, const Chain& chain,
                  const ggml_tensor* t);

// Returns the number of nodes of the graph that view `t`, directly or through
// another view.
int ViewsOf(const ggml_cgraph& graph, const ggml_tensor* t);

// Returns the number of nodes of the graph that read `node`, or 0 if `node`
// is not in the chain.
int Readers(const ggml_cgraph& graph, const Chain& chain,
            const ggml_tensor* node);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_WALK_H_
