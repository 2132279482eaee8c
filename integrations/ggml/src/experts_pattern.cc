// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "walk.h"
#include "weights.h"

namespace switchyard_ggml {
namespace {

using switchyard::Activation;

// Moves the cursor past the product that computes `t` (or the tensor that `t`
// views), and past the node that adds the product's bias, if there is one.
// Returns false if these are not the next nodes.
bool TakeLinear(Cursor& cursor, const ggml_tensor* t, Linear& linear,
                const ggml_tensor** product) {
  t = Root(t);
  if (!IsLinear(t)) return false;
  const ggml_tensor* bias = t->op == GGML_OP_ADD_ID ? t->src[1] : nullptr;
  *product = bias != nullptr ? t->src[0] : t;
  linear = {(*product)->src[0], bias};
  if (bias != nullptr && bias->ne[1] != linear.weights->ne[2]) return false;
  return cursor.Take(*product) && (bias == nullptr || cursor.Take(t));
}

bool ActivationOf(const ggml_tensor* glu,
                  switchyard::ActivateOptions& options) {
  switch (ggml_get_glu_op(glu)) {
    case GGML_GLU_OP_SWIGLU:
      options.activation = Activation::kSilu;
      return true;
    case GGML_GLU_OP_SWIGLU_OAI:
      options.activation = Activation::kSwigluOai;
      options.alpha = Param(glu, 2);
      options.limit = Param(glu, 3);
      return options.limit > 0.0f;
    default:
      return false;
  }
}

// Returns the first GLU among the next five nodes.
const ggml_tensor* FindGlu(Cursor cursor) {
  for (int i = 0; i < 5; ++i, cursor.Next()) {
    const ggml_tensor* t = cursor.Get();
    if (t == nullptr) return nullptr;
    if (t->op == GGML_OP_GLU) return IsGlu(t) ? t : nullptr;
  }
  return nullptr;
}

// True if `view` has columns [first, first + cols) of all rows of `rows`.
bool IsColumns(const ggml_tensor* view, const ggml_tensor* rows, int64_t first,
               int64_t cols) {
  return view->ne[0] == cols && view->ne[1] == rows->ne[1] &&
         view->ne[2] == rows->ne[2] && view->nb[0] == sizeof(float) &&
         view->nb[1] == rows->nb[1] && view->nb[2] == rows->nb[2] &&
         view->view_offs == static_cast<size_t>(first) * sizeof(float);
}

bool TakeGateAndUp(Cursor& cursor, const ggml_tensor* glu,
                   ExpertsChain& chain) {
  const ggml_tensor* gate = nullptr;
  const ggml_tensor* up = nullptr;
  if (Root(glu->src[0]) == Root(glu->src[1])) {
    if (!TakeLinear(cursor, glu->src[0], chain.gate, &gate)) return false;
    up = gate;
    const ggml_tensor* both = Root(glu->src[0]);
    const int64_t cols = both->ne[0] / 2;
    if (both->ne[0] % 2 != 0 || !IsColumns(glu->src[0], both, 0, cols) ||
        !IsColumns(glu->src[1], both, cols, cols)) {
      return false;
    }
  } else {
    if (IsViewOp(glu->src[0]) || IsViewOp(glu->src[1])) return false;
    Cursor other = cursor;
    if (TakeLinear(other, glu->src[0], chain.gate, &gate) &&
        TakeLinear(other, glu->src[1], chain.up, &up)) {
      cursor = other;
    } else if (!TakeLinear(cursor, glu->src[1], chain.up, &up) ||
               !TakeLinear(cursor, glu->src[0], chain.gate, &gate)) {
      return false;
    }
    if (!HaveSameOperands(chain.up.weights->type, chain.gate.weights->type)) {
      return false;
    }
  }
  chain.input = gate->src[1];
  chain.ids = gate->src[2];
  return up->src[1] == chain.input && up->src[2] == chain.ids &&
         chain.input->ne[1] == 1 && cursor.Take(glu);
}

bool TakeSum(Cursor& cursor, CombineChain& chain) {
  const ggml_tensor* weighted = cursor.Get();
  if (weighted == nullptr || !IsWeightedRows(weighted)) return false;
  chain.rows = weighted->src[0];
  chain.weights = weighted->src[1];
  cursor.Next();
  const auto is_slot = [&](const ggml_tensor* t, int64_t slot) {
    return t->op == GGML_OP_VIEW && t->view_src == weighted &&
           t->ne[0] == weighted->ne[0] && t->ne[1] == weighted->ne[2] &&
           t->ne[2] == 1 && t->ne[3] == 1 && t->nb[0] == sizeof(float) &&
           t->nb[1] == weighted->nb[2] &&
           t->view_offs == static_cast<size_t>(slot) * weighted->nb[1];
  };
  for (int64_t slot = 1; slot < weighted->ne[1]; ++slot) {
    const ggml_tensor* t = cursor.Get();
    if (t == nullptr || t->op != GGML_OP_ADD || !is_slot(t->src[1], slot) ||
        !(slot == 1 ? is_slot(t->src[0], 0) : t->src[0] == chain.out)) {
      return false;
    }
    chain.out = t;
    cursor.Next();
  }
  return true;
}

}  // namespace

std::optional<CombineChain> MatchCombine(const ggml_cgraph& graph, int begin) {
  CombineChain chain;
  chain.begin = begin;
  Cursor cursor(graph, begin);
  if (!TakeSum(cursor, chain)) return {};
  chain.end = cursor.end();
  if (!IsClosed(graph, chain, {chain.out})) return {};
  chain.kept = {Root(chain.rows), Root(chain.weights)};
  const ggml_tensor* t = cursor.Get();
  if (t == nullptr || !IsResidualSum(t) || t->src[0] != chain.out) {
    return chain;
  }
  CombineChain longer = chain;
  longer.residual = t->src[1];
  longer.out = t;
  // A residual that a node of the chain computes is refused, because the
  // chain does not write its intermediate tensors.
  if (IsComputedIn(graph, chain, longer.residual)) return chain;
  cursor.Next();
  longer.end = cursor.end();
  if (!IsClosed(graph, longer, {longer.out})) return chain;
  longer.kept.push_back(Root(longer.residual));
  chain = longer;
  t = cursor.Get();
  if (t == nullptr || !IsNorm(t) || t->src[0] != chain.out) return chain;
  longer.eps = Param(t, 0);
  cursor.Next();
  const ggml_tensor* normed = cursor.Get();
  if (normed == nullptr || !IsWeightedNorm(normed) || normed->src[0] != t) {
    return chain;
  }
  longer.normed = normed;
  longer.norm_weight = normed->src[1];
  cursor.Next();
  longer.end = cursor.end();
  if (!IsClosed(graph, longer, {longer.out, longer.normed})) return chain;
  // If only the norm reads the sum, the sum is not written, because the norm
  // may be in the same memory.
  if (IsClosed(graph, longer, {longer.normed})) longer.out = nullptr;
  return longer;
}

std::optional<ExpertsChain> MatchExperts(const ggml_cgraph& graph, int begin) {
  ExpertsChain chain;
  chain.begin = begin;
  Cursor cursor(graph, begin);
  const ggml_tensor* t = cursor.Get();
  if (t == nullptr || t->op != GGML_OP_MUL_MAT_ID || !IsLinear(t)) {
    return {};
  }
  const ggml_tensor* glu = FindGlu(cursor);
  const ggml_tensor* down = nullptr;
  if (glu == nullptr || !ActivationOf(glu, chain.activation) ||
      !TakeGateAndUp(cursor, glu, chain)) {
    return {};
  }
  t = cursor.Get();
  if (t == nullptr || t->op != GGML_OP_MUL_MAT_ID || t->src[1] != glu) {
    return {};
  }
  const ggml_tensor* product = t;
  cursor.Next();
  const ggml_tensor* rows = cursor.Get();
  if (rows == nullptr || rows->op != GGML_OP_ADD_ID) rows = product;
  // Goes back to the product and takes it together with its bias.
  cursor = Cursor(graph, cursor.end() - 1);
  if (!TakeLinear(cursor, rows, chain.down, &down) || down != product ||
      down->src[2] != chain.ids) {
    return {};
  }
  const auto combine = MatchCombine(graph, cursor.end());
  if (!combine || combine->rows != rows) return {};
  chain.combine = *combine;
  chain.end = combine->end;
  if (!IsClosed(graph, chain, {combine->out, combine->normed})) return {};
  if (IsComputedIn(graph, chain, combine->weights)) return {};
  return chain;
}

}  // namespace switchyard_ggml
