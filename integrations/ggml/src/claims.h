// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Decides from a single node of a ggml graph whether it may belong to a
// Mixture-of-Experts layer, or is a product of a matrix of weights. ggml's
// scheduler asks about one node at a time, and a node knows its inputs but not
// its readers. So a claim says only that a node may be part of a layer.
// patterns.h later looks at the whole graph, and claimed nodes that fit no
// pattern run on the CPU backend.

#ifndef SWITCHYARD_GGML_CLAIMS_H_
#define SWITCHYARD_GGML_CLAIMS_H_

#include "ggml.h"

namespace switchyard_ggml {

// True for a node that computes nothing, such as a view. A copy of
// ggml_is_view_op in ggml's internal headers.
inline bool IsViewOp(const ggml_tensor* t) {
  return t->op == GGML_OP_NONE || t->op == GGML_OP_RESHAPE ||
         t->op == GGML_OP_VIEW || t->op == GGML_OP_PERMUTE ||
         t->op == GGML_OP_TRANSPOSE;
}

// Returns the node that owns the memory of a view or reshape. For other nodes,
// returns the node itself.
inline const ggml_tensor* Root(const ggml_tensor* t) {
  return IsViewOp(t) && t->view_src != nullptr ? t->view_src : t;
}

// If `t` is a view of all elements of a tensor, in their order, returns that
// tensor. Otherwise returns `t`, for example if the view has an offset or
// gaps, or is transposed.
inline const ggml_tensor* Whole(const ggml_tensor* t) {
  const ggml_tensor* root = Root(t);
  const bool is_whole = t->type == root->type && t->view_offs == 0 &&
                        ggml_is_contiguous(t) &&
                        ggml_nelements(t) == ggml_nelements(root);
  return is_whole ? root : t;
}

// True if `t` is a matrix [columns, rows] of f32 without gaps between rows.
inline bool IsMatrix(const ggml_tensor* t) {
  return t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->ne[2] == 1 &&
         t->ne[3] == 1;
}
// True if `t` is a weight with `size` elements of f32.
inline bool IsVector(const ggml_tensor* t, int64_t size) {
  return t->op == GGML_OP_NONE && t->type == GGML_TYPE_F32 &&
         t->ne[0] == size && ggml_nelements(t) == size && ggml_is_contiguous(t);
}

bool IsLogits(const ggml_tensor* t);  // router's logits [experts, tokens]
bool IsProbs(const ggml_tensor* t);   // softmax or sigmoid of logits
bool IsBiasedProbs(const ggml_tensor* t);
bool IsArgsort(const ggml_tensor* t);  // argsort of logits or probs, descending
bool IsTopK(const ggml_tensor* t);     // view of the argsort's first columns
// True for the weights of the selected experts, [.., top_k, tokens], and for
// the nodes that renormalise and scale these weights.
bool IsWeights(const ggml_tensor* t);
bool IsPlainSoftmax(const ggml_tensor* t);  // no mask, scale, ALiBi or sinks

// Returns the reason why the plug-in cannot compute a MUL_MAT_ID, or nullptr
// if it can.
const char* WhyNever(const ggml_tensor* mul_mat_id);
// Returns the reason why the plug-in does not compute a MUL_MAT_ID (it
// cannot, or is not faster than ggml), or nullptr if it computes it.
const char* WhyNot(const ggml_tensor* mul_mat_id);
// Remembers the smallest batch of a layer that the plug-in computes. Call it
// for the layer's down product. A node does not know its readers, and ggml
// asks about the gate and up products before the down product. So WhyNot()
// uses the remembered batch when ggml asks about gate and up again.
void NoteLayer(const ggml_tensor* mul_mat_id);
// From now on, the plug-in also claims routers of batches as small as the
// product's batch. Call it for a claimed product. It only notes packed products
// and down products, because ggml may ask about gate and up when WhyNot() does
// not know their layer yet.
void NoteFewTokens(const ggml_tensor* mul_mat_id);
// True for a MUL_MAT_ID that the plug-in can compute, and for a node that
// adds a bias to such a MUL_MAT_ID.
bool IsLinear(const ggml_tensor* t);
bool IsGlu(const ggml_tensor* t);  // a GLU of two IsLinear() nodes

bool IsWeightedRows(const ggml_tensor* t);  // experts' outputs times weights
bool IsSum(const ggml_tensor* t);  // sum of weighted rows of some slots
bool IsResidualSum(const ggml_tensor* t);
bool IsNorm(const ggml_tensor* t);          // norm of a residual sum
bool IsWeightedNorm(const ggml_tensor* t);  // an IsNorm() node times a weight

// True for a MUL_MAT of a matrix of weights with rows of f32, if the weights
// are packed, or if they are as stored and there are at least
// MinTokensOfMatrix() rows.
bool IsDenseProduct(const ggml_tensor* t);

// True for a product with weights that lie beside packed weights, such as
// those of a LoRA adapter. The CPU backend computes it. If the plug-in did not
// claim it, ggml would copy the weights to the CPU's buffers for each graph.
bool IsProductOfNeighbor(const ggml_tensor* t);

// True if `t` may be one of the nodes above and the plug-in computes it.
bool IsClaimed(const ggml_tensor* t);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_CLAIMS_H_
