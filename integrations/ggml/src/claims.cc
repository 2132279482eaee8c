// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "claims.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "choice.h"
#include "ggml-backend.h"
#include "weights.h"

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

// True if `t` is a tensor [features, slots, tokens] of f32 without gaps.
bool IsRows(const ggml_tensor* t) {
  return t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->ne[3] == 1;
}

// Returns the MUL_MAT_ID of a product: `t` or, if `t` adds the product's bias,
// the node to which the bias is added.
const ggml_tensor* ProductOf(const ggml_tensor* t) {
  return t->op == GGML_OP_ADD_ID ? t->src[0] : t;
}

// The number of tokens of the smallest batch with claimed experts. Routers of
// batches of at least this size are claimed, because they share a split of
// the graph with the experts. The nodes of a router do not know which experts
// read them, so the number is the same for all layers.
std::atomic<int64_t> fewest_tokens{kMinTokens};

// Stores for each layer the smallest mean number of (token, slot) pairs per
// expert at which the plug-in claims all products of the layer. The data and
// the name of the gate or up weights identify the layer.
class Least {
 public:
  void Set(const ggml_tensor* weights, double least) {
    if (weights->data == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    weights_[{weights->data, weights->name}] = least;
    is_empty_ = false;
  }
  double Get(const ggml_tensor* weights) {
    if (is_empty_) return 0.0;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = weights_.find({weights->data, weights->name});
    return found == weights_.end() ? 0.0 : found->second;
  }

 private:
  std::atomic<bool> is_empty_{true};
  std::mutex mutex_;
  std::map<std::pair<const void*, std::string>, double> weights_;
};

// The map is never destroyed, because other threads may still run at exit.
Least& LeastOfLayers() {
  static auto* least = new Least;
  return *least;
}

// Returns the smallest mean number of (token, slot) pairs per expert at which
// the plug-in computes the product.
double LeastPairs(const ggml_tensor* product) {
  if (WhyNever(product) != nullptr) {
    return std::numeric_limits<double>::infinity();
  }
  const ggml_tensor* weights = product->src[0];
  if (IsPacked(weights)) return 0.0;
  return MinPairsPerExpert(weights->type, product->src[2]->ne[0],
                           weights->ne[2]);
}

// The gate and up products of the layer to which a down product belongs. If
// the layer has one product for gate and up, `gate` and `up` are this node.
// For a product that is not a down product, `gate` and `up` are null.
struct GateAndUp {
  const ggml_tensor* gate = nullptr;
  const ggml_tensor* up = nullptr;
};
GateAndUp Before(const ggml_tensor* product) {
  const ggml_tensor* glu = product->src[1];
  if (glu->op != GGML_OP_GLU || glu->src[1] == nullptr) return {};
  const ggml_tensor* gate = ProductOf(Root(glu->src[0]));
  const ggml_tensor* up = ProductOf(Root(glu->src[1]));
  if (gate->op != GGML_OP_MUL_MAT_ID || up->op != GGML_OP_MUL_MAT_ID) return {};
  return {gate, up};
}

double LeastPairsOfLayer(const ggml_tensor* down) {
  const GateAndUp before = Before(down);
  double least = LeastPairs(down);
  if (before.gate == nullptr) return least;
  least = std::max({least, LeastPairs(before.gate), LeastPairs(before.up)});
  return std::isinf(least) || HaveSameOperands(before.gate->src[0]->type,
                                               before.up->src[0]->type)
             ? least
             : std::numeric_limits<double>::infinity();
}

// True if a GPU would compute this product of weights in host memory. ggml's
// scheduler asks the GPUs only about products of the CPU backend, so it would
// never offer them a claimed product.
bool IsForGpu(const ggml_tensor* t) {
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (IsGpu(device) && ggml_backend_dev_offload_op(device, t)) return true;
  }
  return false;
}

// True if the weights of a MUL_MAT are as stored, and the plug-in multiplies
// them. It takes only batches that are worth a split of the graph, and no rows
// that overlap.
bool IsStoredMatrix(const ggml_tensor* t) {
  const ggml_tensor* weights = t->src[0];
  const ggml_tensor* rows = t->src[1];
  return TakesMatrices() &&
         static_cast<double>(ggml_nrows(t)) >=
             MinTokensOfMatrix(weights->type) &&
         (rows->ne[1] == 1 ||
          rows->nb[1] >= ggml_row_size(rows->type, rows->ne[0])) &&
         weights->op == GGML_OP_NONE && weights->buffer != nullptr &&
         ggml_backend_buffer_is_host(weights->buffer) &&
         ggml_backend_buffer_get_usage(weights->buffer) ==
             GGML_BACKEND_BUFFER_USAGE_WEIGHTS &&
         t->op_params[0] == GGML_PREC_DEFAULT && t->op_params[3] == 0 &&
         IsPackable(weights) && !IsForGpu(t);
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
  if (!IsMatrix(t) || t->ne[0] < 2) return false;
  if (t->ne[1] < fewest_tokens) return false;
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
  // Requires a direct view of the argsort. If `t` viewed another view, other
  // nodes might read columns that only the other view has.
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

const char* WhyNever(const ggml_tensor* t) {
  const ggml_tensor* weights = t->src[0];
  const ggml_tensor* rows = t->src[1];
  const ggml_tensor* ids = t->src[2];
  const ExpertType* type = FindExpertType(weights->type);
  if (type == nullptr) return "no product here takes this type";
  const bool is_packed = IsPacked(weights);
  if (!is_packed && weights->buffer != nullptr &&
      !ggml_backend_buffer_is_host(weights->buffer)) {
    return "not stored as plain rows in host memory";
  }
  if (weights->op != GGML_OP_NONE || !ggml_is_contiguous(weights)) {
    return "computed or with gaps";
  }
  // The plug-in accumulates products in f32, so it refuses a request for
  // another precision. If the weights are packed, the request is ignored,
  // because no other backend can read the weights.
  for (int i = 1; i < 4 && !is_packed; ++i) {
    if (t->op_params[i] != 0) return "asked for in another precision";
  }
  if (!IsRows(t) || rows->type != GGML_TYPE_F32 || rows->ne[3] != 1 ||
      !ggml_is_contiguous(rows) || ids->type != GGML_TYPE_I32 ||
      ids->nb[0] != sizeof(int32_t)) {
    return "rows with gaps";
  }
  return nullptr;
}

const char* WhyNot(const ggml_tensor* t) {
  const char* never = WhyNever(t);
  if (never != nullptr || IsPacked(t->src[0])) return never;
  if (IsForGpu(t)) return "the GPU takes batches of this size";
  const ggml_tensor* weights = t->src[0];
  const ggml_tensor* ids = t->src[2];
  if (ids->ne[0] == 1) return "one expert for each token, so there is no sum";
  const double pairs = PairsPerExpert(static_cast<double>(ids->ne[1]),
                                      ids->ne[0], weights->ne[2]);
  // The plug-in computes all products of a layer or none, because some of them
  // gain less than a split of the graph costs.
  const double least =
      std::max(LeastPairsOfLayer(t), LeastOfLayers().Get(weights));
  if (std::isinf(least)) {
    return std::isinf(LeastPairs(t))
               ? "not measured to be faster on such a CPU"
               : "another product of the layer is left to ggml";
  }
  if (pairs >= least) return nullptr;
  return t->ne[2] < kMinTokens ? "few tokens"
                               : "few tokens for each expert on this CPU";
}

void NoteLayer(const ggml_tensor* t) {
  const GateAndUp before = Before(t);
  if (before.gate == nullptr) return;
  const double least = LeastPairsOfLayer(t);
  for (const ggml_tensor* product : {before.gate, before.up}) {
    const ggml_tensor* weights = product->src[0];
    if (least != LeastOfLayers().Get(weights)) {
      LeastOfLayers().Set(weights, least);
    }
  }
}

void NoteFewTokens(const ggml_tensor* t) {
  if (!IsPacked(t->src[0]) && Before(t).gate == nullptr) return;
  int64_t fewest = fewest_tokens;
  while (t->ne[2] < fewest &&
         !fewest_tokens.compare_exchange_weak(fewest, t->ne[2])) {
  }
}

bool IsLinear(const ggml_tensor* t) {
  if (t->op == GGML_OP_ADD_ID) {
    return IsBias(t->src[1], t->ne[0]) && t->src[0]->op == GGML_OP_MUL_MAT_ID &&
           t->src[2] == t->src[0]->src[2] && IsLinear(t->src[0]);
  }
  return t->op == GGML_OP_MUL_MAT_ID && WhyNever(t) == nullptr;
}

bool IsGlu(const ggml_tensor* t) {
  return t->op == GGML_OP_GLU && t->src[1] != nullptr && t->op_params[1] == 0 &&
         IsLinear(Root(t->src[0])) && IsLinear(Root(t->src[1]));
}

bool IsWeightedRows(const ggml_tensor* t) {
  if (t->op != GGML_OP_MUL || !IsRows(t) || !IsRowsOfExperts(t->src[0]) ||
      (t->ne[2] < kMinTokens && WhyNot(ProductOf(t->src[0])) != nullptr)) {
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

// True if `t` adds a residual to the experts' sum. A residual is the result of
// an addition: the layer's input plus the attention's output. The output of a
// shared expert may also be added to the sum, but is the result of a product.
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

bool IsDenseProduct(const ggml_tensor* t) {
  if (t->op != GGML_OP_MUL_MAT) return false;
  const ggml_tensor* weights = t->src[0];
  const ggml_tensor* rows = t->src[1];
  return (IsPacked(weights) || IsStoredMatrix(t)) && weights->ne[2] == 1 &&
         rows->type == GGML_TYPE_F32 && rows->nb[0] == sizeof(float) &&
         rows->nb[1] % sizeof(float) == 0 && ggml_is_contiguous(t);
}

bool IsProductOfNeighbor(const ggml_tensor* t) {
  return (t->op == GGML_OP_MUL_MAT || t->op == GGML_OP_MUL_MAT_ID) &&
         AreBesidePacked(t->src[0]) && t->src[1]->type == GGML_TYPE_F32;
}

bool IsClaimed(const ggml_tensor* t) {
  switch (t->op) {
    case GGML_OP_MUL_MAT:
      return IsDenseProduct(t);
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
      return IsLinear(t) && WhyNot(ProductOf(t)) == nullptr;
    case GGML_OP_GLU:
      return IsGlu(t) && WhyNot(ProductOf(Root(t->src[0]))) == nullptr &&
             WhyNot(ProductOf(Root(t->src[1]))) == nullptr;
    case GGML_OP_MUL:
      return IsWeightedRows(t) || IsWeightedNorm(t);
    case GGML_OP_RMS_NORM:
      return IsNorm(t);
    default:
      return false;
  }
}

}  // namespace switchyard_ggml
