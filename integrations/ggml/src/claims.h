// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The part of a ggml graph's node in a Mixture-of-Experts layer. ggml's
// scheduler asks about one node at a time, and a node knows what it reads, not
// who reads it: a claim says that a node may be a part of such a layer.
// patterns.h looks at the whole graph afterwards, and what does not fit is run
// by the CPU backend.

#ifndef SWITCHYARD_GGML_CLAIMS_H_
#define SWITCHYARD_GGML_CLAIMS_H_

#include "ggml.h"

namespace switchyard_ggml {

// ggml_is_view_op of ggml's internal headers: nothing is computed.
inline bool IsViewOp(const ggml_tensor* t) {
  return t->op == GGML_OP_NONE || t->op == GGML_OP_RESHAPE ||
         t->op == GGML_OP_VIEW || t->op == GGML_OP_PERMUTE ||
         t->op == GGML_OP_TRANSPOSE;
}

// The node whose memory a view or reshape is of; else the node itself.
inline const ggml_tensor* Root(const ggml_tensor* t) {
  return IsViewOp(t) && t->view_src != nullptr ? t->view_src : t;
}

// The tensor that `t` is all elements of, in their order; else `t`, for one, a
// view with an offset, gaps or transposed.
inline const ggml_tensor* Whole(const ggml_tensor* t) {
  const ggml_tensor* root = Root(t);
  const bool is_whole = t->type == root->type && t->view_offs == 0 &&
                        ggml_is_contiguous(t) &&
                        ggml_nelements(t) == ggml_nelements(root);
  return is_whole ? root : t;
}

// [columns, rows] of f32, rows without gaps.
inline bool IsMatrix(const ggml_tensor* t) {
  return t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->ne[2] == 1 &&
         t->ne[3] == 1;
}
// A weight of so many f32.
inline bool IsVector(const ggml_tensor* t, int64_t size) {
  return t->op == GGML_OP_NONE && t->type == GGML_TYPE_F32 &&
         t->ne[0] == size && ggml_nelements(t) == size && ggml_is_contiguous(t);
}

bool IsLogits(const ggml_tensor* t);  // [experts, tokens], of the router
bool IsProbs(const ggml_tensor* t);   // softmax or sigmoid of them
bool IsBiasedProbs(const ggml_tensor* t);
bool IsArgsort(const ggml_tensor* t);  // of one of these, largest first
bool IsTopK(const ggml_tensor* t);     // the view of its first columns
bool IsWeights(const ggml_tensor* t);  // [.., top_k, tokens], any step of them
bool IsPlainSoftmax(const ggml_tensor* t);  // no mask, scale, ALiBi or sinks

// Why we cannot compute a MUL_MAT_ID; nullptr: we can.
const char* WhyNever(const ggml_tensor* mul_mat_id);
// The same, or why it is not faster here; nullptr: we do.
const char* WhyNot(const ggml_tensor* mul_mat_id);
// Of a down product: remembers for its layer's other products the batches that
// are computed here, because ggml asks about those products first, and they do
// not know who reads them.
void NoteLayer(const ggml_tensor* mul_mat_id);
// Of a product that is claimed: from then on routers of as few tokens are
// claimed, too.
void NoteFewTokens(const ggml_tensor* mul_mat_id);
// A MUL_MAT_ID that we can compute, or such a one plus a bias.
bool IsLinear(const ggml_tensor* t);
bool IsGlu(const ggml_tensor* t);  // of two of them

bool IsWeightedRows(const ggml_tensor* t);  // experts' outputs times weights
bool IsSum(const ggml_tensor* t);           // of some slots of those
bool IsResidualSum(const ggml_tensor* t);
bool IsNorm(const ggml_tensor* t);          // of a residual sum
bool IsWeightedNorm(const ggml_tensor* t);  // the same times a weight

// Any of the above that is computed.
bool IsClaimed(const ggml_tensor* t);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_CLAIMS_H_
