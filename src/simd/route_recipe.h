// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_RECIPE_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_RECIPE_H_

#include <atomic>
#include <cstddef>

#include "src/simd/route.h"
#include "src/simd/row_function.h"
#include "switchyard/route.h"

namespace switchyard::simd {

// Scores, a line each: their functors in recipes-inl.h, and whether they grow
// with x from 0 or more on, so that those of the top_k largest x have at least
// the share top_k / experts of the sum of all. All else that follows from the
// list is a switch over it, which does not compile without a line
// (-Werror=switch).
#define SWITCHYARD_SCORES(X)             \
  X(kSoftmax, SoftmaxOf, true)           \
  X(kSigmoid, SigmoidOf, true)           \
  X(kSqrtSoftplus, SqrtSoftplusOf, true) \
  X(kRaw, RawOf, false)                  \
  X(kSparsemixer, RawOf, false)

constexpr bool GrowsFromZero(Score score) {
  switch (score) {
#define SWITCHYARD_CASE(name, F, grows_from_zero) \
  case Score::name:                               \
    return grows_from_zero;
    SWITCHYARD_SCORES(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
  return false;
}

// Checked, as route.h says.
struct RecipeArgs {
  const RouteInputs& inputs;
  const RouteOutputs& outputs;
  const RouteOptions& options;
  std::atomic<size_t>* invalid_ids;
  std::atomic<size_t>* elsewhere;
};

// What follows from a call's options, for all of its rows. `x`, `s`, `v` and
// `key` are those of route.h.
struct RecipePlan {
  size_t columns;  // of logits: the experts', and shared ones'
  size_t experts;
  size_t top_k;
  size_t slots;  // that have a logit: top_k, and shared ones

  bool given;        // ids are
  bool mapped;       // x is not the logit as it lies
  bool bias_in_x;    // and it is for the weights, too
  bool own_keys;     // key is not x
  bool bias_in_key;  // that x or s do not have
  bool drops;        // some groups' experts
  Score key_score;   // what own keys are made of, and how they are rounded
  Type key_round;

  bool of_selected;   // softmax of the selected
  Score value_score;  // of v, where that is not so
  bool over_all;      // v = exp / sum over all of exp
  bool share;         // the divisor may be a share of the sum over all
  bool all_in_key;    // keys need the sum over all of exp
  bool bias_in_value;
  bool sparsemixer;
  bool by_engine;    // weights but for what is done to them are RouteRows()'
  bool engine_only;  // and nothing is
  bool remaps;       // ids are not the experts selected
  bool whole;        // rows of both outputs follow each other as slots do

  explicit RecipePlan(const RecipeArgs& args) {
    const RouteInputs& in = args.inputs;
    const RouteOptions& o = args.options;
    columns = in.logits.cols;
    experts = columns - (o.shared_logits ? o.num_shared_experts : 0);
    top_k = args.outputs.topk_ids.cols - o.num_shared_experts;
    slots = top_k + (columns - experts);

    const bool bias = in.correction_bias.data != nullptr;
    const bool on_score = o.bias_place == BiasPlace::kScore;
    given = in.given_ids.data != nullptr;
    bias_in_x = bias && !on_score && o.bias_in_weight;
    bias_in_key = bias && !bias_in_x;
    mapped = bias_in_x || o.logit_scale != 1.0f || o.logit_softcap != 0.0f ||
             o.logit_clip != 0.0f;
    own_keys = !given && (bias_in_key || o.num_expert_group > 1 ||
                          o.select_on_rounded_score);
    drops = o.num_expert_group > 1 && o.topk_group < o.num_expert_group;
    const bool x_and_bias = bias_in_key && !on_score;
    key_score = x_and_bias ? Score::kRaw : o.score;
    key_round = x_and_bias ? Type::kF32 : o.round_to;

    sparsemixer = o.score == Score::kSparsemixer;
    of_selected = false;
    value_score = o.score;
    switch (o.weight_of) {
      case WeightOf::kScore:
        break;
      case WeightOf::kSoftmaxOfSelected:
        of_selected = true;
        break;
      case WeightOf::kSigmoidOfSelected:
        value_score = Score::kSigmoid;
        break;
    }
    bias_in_value = bias && on_score && o.bias_in_weight;
    const bool softmax = !of_selected && value_score == Score::kSoftmax;
    const bool by_sum =
        o.renormalize &&
        (o.divisor == Divisor::kSum || o.divisor == Divisor::kMaxOfSumAndShare);
    over_all =
        softmax && (!by_sum || bias_in_value || o.round_to != Type::kF32);
    // The selected have their share where they have the largest scores.
    const bool largest =
        !own_keys && !given && columns == experts && GrowsFromZero(value_score);
    share = !of_selected && o.renormalize &&
            o.divisor == Divisor::kMaxOfSumAndShare && o.clamp > 0.0f &&
            !(largest && !RouteNeedsAll(o, experts, top_k));
    all_in_key = own_keys && key_score == Score::kSoftmax;
    by_engine = !own_keys && !given && columns == experts && !sparsemixer &&
                (of_selected || (softmax && o.round_to == Type::kF32 &&
                                 (!o.renormalize || by_sum)));
    remaps = given || o.num_zero_experts != 0 || in.expert_map.data != nullptr;
    const AnyMatrix &ids = args.outputs.topk_ids,
                    &weights = args.outputs.topk_weights;
    whole = !remaps && o.num_shared_experts == 0 &&
            in.bias_index.data == nullptr && in.token_mask.data == nullptr &&
            ids.type != Type::kI64 && weights.type == Type::kF32 &&
            ids.stride == ids.cols && weights.stride == weights.cols;
    engine_only =
        by_engine && !mapped && !remaps && o.num_shared_experts == 0 &&
        o.round_to == Type::kF32 && o.routed_scaling_factor == 1.0f &&
        in.expert_scale.data == nullptr && in.token_mask.data == nullptr;
  }
};

RowFunction<RecipeArgs> RecipeRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_RECIPE_H_
