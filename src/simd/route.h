// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Routing. Each logit becomes x, x becomes a key, and the top_k largest keys
// are selected. For each selected expert, x becomes v, and v becomes a weight.
// The names x, key, s and v are those of switchyard/route.h. A call takes one
// of these paths:
//
//   plain softmax: src/route.cc calls   SelectRows(logits) -> ids, weights
//     SelectRows(), not RouteRows()
//   weights_by_select: softmax of the   SelectRows(logits) -> ids, weights
//     selected or of all experts, and
//     nothing after it
//   values_by_select: softmax, then     SelectRows(logits or x) -> ids, v
//     masks, maps, scales or rounding     -> weights
//   selection by x (most scores)        SelectRows(logits or x) -> ids, x
//                                         -> v -> weights
//   selection by keys (bias, groups)    SelectRows(keys) -> ids -> x -> v
//                                         -> weights
//   ids_given                           ids -> x -> v -> weights
//   rows of more than kKeyTile          the steps above, but keys are computed
//     columns                             again, in pieces, when they are read
//
// The keys of a batch of rows are computed on the stack, and SelectRows() reads
// them as if they were logits. Options are branches outside of loops. Only
// scores are templates.
//
//   route.cc                the batches of a call, and the paths they take
//   route_keys-inl.h        logits to x, x to keys, sums over a row
//   route_groups-inl.h      groups' scores, and the keys of dropped groups
//   route_select.{h,cc}     selection; all of plain softmax
//   route_weights-inl.h     ids and x to v, v to weights, and the stores
//   route_scores-inl.h      the functors of scores
//   topk*-inl.h, candidates-inl.h    the parts of selection

#ifndef SWITCHYARD_SRC_SIMD_ROUTE_H_
#define SWITCHYARD_SRC_SIMD_ROUTE_H_

#include <atomic>
#include <cstddef>

#include "src/base/enumerators.h"
#include "src/simd/route_select.h"
#include "src/simd/row_function.h"
#include "switchyard/route.h"

namespace switchyard::simd {

// The caller has checked the call, as switchyard/route.h says.
struct RouteArgs {
  const RouteInputs& inputs;
  const RouteOutputs& outputs;
  const RouteOptions& options;
  std::atomic<size_t>* invalid_ids;
  std::atomic<size_t>* elsewhere;
};

// Facts that follow from the options of a call. They are the same for all
// rows.
struct RoutePlan {
  size_t columns;  // logits of a row, including logits of shared experts
  size_t experts;
  size_t top_k;
  size_t slots;  // top_k, and the shared experts if these have logits

  bool ids_given;
  bool maps_logits;   // x differs from the stored logit
  bool bias_in_x;     // the bias is added to x, so weights have it, too
  bool selects_by_x;  // keys are x, or no keys are needed
  bool bias_in_key;   // the bias is in the key, but not in x and s
  bool drops_groups;
  Score key_score;     // the score of keys that are not x
  Type key_round;      // the type to which key_score is rounded
  bool keys_need_sum;  // keys need the sum of exp(x - max) over all columns

  bool of_selected;   // v = exp(x - the largest x of the selected)
  Score value_score;  // the score of v, if not of_selected
  bool is_softmax;    // v = exp(x - max), unless is_share is true
  bool is_share;      // v = exp(x - max) / the sum over all columns
  bool in_rounds;     // each of the two slots has a separate sum
  bool bias_in_value;
  bool bounded_by_all;  // the divisor may be a share of a sum over all columns

  bool values_by_select;
  SelectMode select_mode;  // for SelectRows(), if it computes v or weights
  bool weights_by_select;
  bool remaps_ids;       // the ids in the output are not the selected ids
  bool stores_as_slots;  // no record is written, and both outputs have
                         // the layout of Slots

  explicit RoutePlan(const RouteArgs& args) {
    const RouteInputs& in = args.inputs;
    const RouteOptions& o = args.options;
    columns = in.logits.cols;
    experts = columns - (o.shared_logits ? o.num_shared_experts : 0);
    top_k = args.outputs.topk_ids.cols - o.num_shared_experts;
    slots = top_k + (columns - experts);

    const bool bias = in.correction_bias.data != nullptr;
    const bool on_score = IsOnScore(o.bias_place);
    const bool rounds = o.round_to != Type::kF32;
    ids_given = in.given_ids.data != nullptr;
    bias_in_x = bias && !on_score && o.bias_in_weight;
    bias_in_key = bias && !bias_in_x;
    maps_logits = bias_in_x || o.logit_scale != 1.0f ||
                  o.logit_softcap != 0.0f || o.logit_clip != 0.0f;
    selects_by_x = ids_given || !(bias_in_key || o.num_expert_group > 1 ||
                                  o.select_on_rounded_score);
    drops_groups = o.num_expert_group > 1 && o.topk_group < o.num_expert_group;
    const bool x_and_bias = bias_in_key && !on_score;
    key_score = x_and_bias ? Score::kRaw : o.score;
    key_round = x_and_bias ? Type::kF32 : o.round_to;
    keys_need_sum =
        !selects_by_x && KindOf(key_score) == ScoreKind::kShareOfAll;

    of_selected = o.weight_of == WeightOf::kSoftmaxOfSelected;
    value_score = ValueScore(o);
    is_softmax = !of_selected && KindOf(value_score) == ScoreKind::kShareOfAll;
    in_rounds = KindOf(o.score) == ScoreKind::kInRounds;
    bias_in_value = bias && on_score && o.bias_in_weight;
    const bool by_sum = o.renormalize && !TakesEps(o.divisor);
    is_share = is_softmax && (!by_sum || bias_in_value || rounds);
    // The divisor may have a lower bound: a share of the sum over all experts.
    // The bound has no effect if the selected experts have at least that share.
    // If they have the largest scores, they have at least top_k / experts of
    // the sum. (See NeedsAll().)
    const SelectMode softmax =
        SoftmaxMode(o.renormalize,
                    o.divisor == Divisor::kMaxOfSumAndShare ? o.clamp : 0.0f);
    const bool selects_largest =
        selects_by_x && !ids_given && columns == experts;
    bounded_by_all = !of_selected && o.renormalize && softmax.clamp > 0.0f &&
                     !(selects_largest && GrowsFromZero(value_score) &&
                       !NeedsAll(softmax, experts, top_k));

    values_by_select =
        selects_largest && !in_rounds &&
        (of_selected || (is_softmax && !rounds && (!o.renormalize || by_sum)));
    remaps_ids =
        ids_given || o.num_zero_experts != 0 || in.expert_map.data != nullptr;
    const AnyMatrix &ids = args.outputs.topk_ids,
                    &weights = args.outputs.topk_weights;
    stores_as_slots = !remaps_ids && o.num_shared_experts == 0 &&
                      in.bias_index.data == nullptr &&
                      in.token_mask.data == nullptr &&
                      args.outputs.record.data == nullptr &&
                      ids.type != Type::kI64 && weights.type == Type::kF32 &&
                      ids.stride == ids.cols && weights.stride == weights.cols;
    weights_by_select =
        values_by_select && !maps_logits && !remaps_ids &&
        o.num_shared_experts == 0 && !rounds &&
        o.routed_scaling_factor == 1.0f && in.expert_scale.data == nullptr &&
        in.token_mask.data == nullptr && args.outputs.record.data == nullptr;
    select_mode = of_selected ? SoftmaxMode(true, 0.0f) : softmax;
  }
};

RowFunction<RouteArgs> RouteRows() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_H_
