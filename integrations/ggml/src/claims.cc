// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "claims.h"

#include <cstring>

#include "choice.h"
#include "ggml-backend.h"

namespace switchyard_ggml {
namespace {

bool IsBias(const ggml_tensor* t, int64_t cols) {
  return t != nullptr && t->op == GGML_OP_NONE && t->type == GGML_TYPE_F32 &&
         t->ne[0] == cols && t->ne[2] == 1 && t->ne[3] == 1 &&
         ggml_is_contiguous(t);
}

bool IsRouterProduct(const ggml_tensor* t) {
  return t->op == GGML_OP_MUL_MAT && t->src[0]->op == GGML_OP_NONE;
}

bool IsRowsOfExperts(const ggml_tensor* t) {
  if (t->op == GGML_OP_ADD_ID) t = t->src[0];
  return t->op == GGML_OP_MUL_MAT_ID;
}

// [features, slots, tokens] of f32 without gaps.
bool IsRows(const ggml_tensor* t) {
  return t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->ne[3] == 1 &&
         t->ne[2] >= kMinTokens;
}

bool IsSlot(const ggml_tensor* t) {
  return t->op == GGML_OP_VIEW && IsWeightedRows(t->view_src);
}

}  // namespace

bool IsPlainSoftmax(const ggml_tensor* t) {
  float scale_and_bias[2];
  std::memcpy(scale_and_bias, t->op_params, sizeof(scale_and_bias));
  return t->op == GGML_OP_SOFT_MAX && t->src[1] == nullptr &&
         t->src[2] == nullptr && scale_and_bias[0] == 1.0f &&
         scale_and_bias[1] == 0.0f;
}

bool IsLogits(const ggml_tensor* t) {
  if (!IsMatrix(t) || t->ne[0] < 2 || t->ne[1] < kMinTokens) return false;
  if (IsRouterProduct(t)) return true;
  return t->op == GGML_OP_ADD && IsRouterProduct(t->src[0]) &&
         IsVector(t->src[1], t->ne[0]);
}

bool IsProbs(const ggml_tensor* t) {
  const bool score =
      IsPlainSoftmax(t) ||
      (t->op == GGML_OP_UNARY && ggml_get_unary_op(t) == GGML_UNARY_OP_SIGMOID);
  return score && IsLogits(t->src[0]);
}

bool IsBiasedProbs(const ggml_tensor* t) {
  return t->op == GGML_OP_ADD && IsProbs(t->src[0]) &&
         IsVector(t->src[1], t->ne[0]);
}

bool IsArgsort(const ggml_tensor* t) {
  if (t->op != GGML_OP_ARGSORT || t->op_params[0] != GGML_SORT_ORDER_DESC) {
    return false;
  }
  const ggml_tensor* keys = t->src[0];
  return IsProbs(keys) || IsBiasedProbs(keys) || IsLogits(keys);
}

bool IsTopK(const ggml_tensor* t) {
  const ggml_tensor* sorted = t->view_src;
  // Not a view of a view: the one between may be read, too, and has more
  // columns.
  return t->op == GGML_OP_VIEW && t->src[0] == sorted && IsArgsort(sorted) &&
         t->view_offs == 0 && t->type == sorted->type &&
         t->ne[0] <= sorted->ne[0] && t->ne[1] == sorted->ne[1] &&
         t->ne[2] == 1 && t->ne[3] == 1 && t->nb[0] == sorted->nb[0] &&
         t->nb[1] == sorted->nb[1];
}

bool IsWeights(const ggml_tensor* t) {
  switch (t->op) {
    case GGML_OP_GET_ROWS: {
      const ggml_tensor* of = Whole(t->src[0]);
      return IsTopK(t->src[1]) && (IsProbs(of) || IsLogits(of));
    }
    case GGML_OP_SOFT_MAX:
      return IsPlainSoftmax(t) && IsWeights(Whole(t->src[0]));
    case GGML_OP_SUM_ROWS:
    case GGML_OP_CLAMP:
    case GGML_OP_DIV:
    case GGML_OP_SCALE:
      return IsWeights(Whole(t->src[0]));
    default:
      return false;
  }
}

const char* WhyNot(const ggml_tensor* t) {
  const ggml_tensor* weights = t->src[0];
  const ggml_tensor* rows = t->src[1];
  const ggml_tensor* ids = t->src[2];
  if (weights->buffer != nullptr &&
      !ggml_backend_buffer_is_host(weights->buffer)) {
    return "not stored as plain rows in host memory";
  }
  if (weights->type != GGML_TYPE_BF16 && weights->type != GGML_TYPE_F16) {
    return "neither bf16 nor f16";
  }
  if (weights->op != GGML_OP_NONE || !ggml_is_contiguous(weights)) {
    return "computed or with gaps";
  }
  // Accumulation is in f32 in any case; a wish for f32 operands is not met.
  for (int i = 1; i < 4; ++i) {
    if (t->op_params[i] != 0) return "asked for in another precision";
  }
  if (!IsRows(t) || rows->type != GGML_TYPE_F32 || rows->ne[3] != 1 ||
      !ggml_is_contiguous(rows) || ids->type != GGML_TYPE_I32 ||
      ids->nb[0] != sizeof(int32_t)) {
    return t->ne[2] < kMinTokens ? "few tokens" : "rows with gaps";
  }
  const int64_t min_pairs = MinPairsPerExpert(weights->type, ThisCpu());
  if (ids->ne[0] * ids->ne[1] < min_pairs * weights->ne[2]) {
    return "few tokens for each expert on this CPU";
  }
  return nullptr;
}

bool IsLinear(const ggml_tensor* t) {
  if (t->op == GGML_OP_ADD_ID) {
    return IsBias(t->src[1], t->ne[0]) && t->src[0]->op == GGML_OP_MUL_MAT_ID &&
           t->src[2] == t->src[0]->src[2] && IsLinear(t->src[0]);
  }
  return t->op == GGML_OP_MUL_MAT_ID && WhyNot(t) == nullptr;
}

bool IsGlu(const ggml_tensor* t) {
  return t->op == GGML_OP_GLU && t->src[1] != nullptr && t->op_params[1] == 0 &&
         IsLinear(Root(t->src[0])) && IsLinear(Root(t->src[1]));
}

bool IsWeightedRows(const ggml_tensor* t) {
  if (t->op != GGML_OP_MUL || !IsRows(t) || !IsRowsOfExperts(t->src[0])) {
    return false;
  }
  const ggml_tensor* weights = t->src[1];
  return t->ne[1] > 1 && weights->type == GGML_TYPE_F32 &&
         ggml_is_contiguous(weights) && weights->ne[0] == 1 &&
         weights->ne[1] == t->ne[1] && weights->ne[2] == t->ne[2] &&
         weights->ne[3] == 1;
}

bool IsSum(const ggml_tensor* t) {
  return t->op == GGML_OP_ADD && IsMatrix(t) && IsSlot(t->src[1]) &&
         (IsSlot(t->src[0]) || IsSum(t->src[0]));
}

// The residual of a layer is itself a sum, of what it began with and the
// attention's output; a shared expert's output is a product.
bool IsResidualSum(const ggml_tensor* t) {
  return t->op == GGML_OP_ADD && IsSum(t->src[0]) &&
         t->src[1]->op == GGML_OP_ADD && IsMatrix(t->src[1]) &&
         ggml_are_same_shape(t, t->src[1]);
}

bool IsNorm(const ggml_tensor* t) {
  return t->op == GGML_OP_RMS_NORM && IsResidualSum(t->src[0]);
}

bool IsWeightedNorm(const ggml_tensor* t) {
  return t->op == GGML_OP_MUL && IsNorm(t->src[0]) &&
         IsVector(t->src[1], t->ne[0]);
}

bool IsClaimed(const ggml_tensor* t) {
  switch (t->op) {
    case GGML_OP_ADD:
      return IsBiasedProbs(t) || IsSum(t) || IsResidualSum(t);
    case GGML_OP_SOFT_MAX:
      return IsProbs(t) || IsWeights(t);
    case GGML_OP_UNARY:
      return IsProbs(t);
    case GGML_OP_ARGSORT:
      return IsArgsort(t);
    case GGML_OP_GET_ROWS:
    case GGML_OP_SUM_ROWS:
    case GGML_OP_CLAMP:
    case GGML_OP_DIV:
    case GGML_OP_SCALE:
      return IsWeights(t);
    case GGML_OP_MUL_MAT_ID:
    case GGML_OP_ADD_ID:
      return IsLinear(t);
    case GGML_OP_GLU:
      return IsGlu(t);
    case GGML_OP_MUL:
      return IsWeightedRows(t) || IsWeightedNorm(t);
    case GGML_OP_RMS_NORM:
      return IsNorm(t);
    default:
      return false;
  }
}

}  // namespace switchyard_ggml
