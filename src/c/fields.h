// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which struct of switchyard.h is which of the C++ API, and the fields that
// both have, by the same name. The conversions, the tests and the table of the
// layout walk these lists; a field that is on neither list nor among those
// counted as extra does not compile.

#ifndef SWITCHYARD_SRC_C_FIELDS_H_
#define SWITCHYARD_SRC_C_FIELDS_H_

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/hyper.h"
#include "switchyard/isa.h"
#include "switchyard/layer.h"
#include "switchyard/map.h"
#include "switchyard/presets.h"
#include "switchyard/quantize.h"
#include "switchyard/report.h"
#include "switchyard/route.h"
#include "switchyard/status.h"
#include "switchyard/switchyard.h"
#include "switchyard/work_list.h"

namespace switchyard::c {

// S(C struct, C++ struct, fields of C's alone, of C++'s alone, fields of both).
// `size` and pointers to other structs, such as `report`, are of C's alone.
#define SWITCHYARD_C_STRUCTS(S, X)                                             \
  S(swy_report, Report, 1, 0,                                                  \
    X(invalid_ids) X(elsewhere) X(max_rows) X(row_stride) X(dropped)           \
        X(invalid) X(skipped) X(over_capacity) X(active_experts) X(tiles))     \
  S(swy_team, Team, 1, 0, X(thread) X(num_threads) X(barrier) X(context))      \
  S(swy_route_inputs, RouteInputs, 1, 0,                                       \
    X(logits) X(correction_bias) X(bias_index) X(expert_scale) X(token_mask)   \
        X(given_ids) X(expert_map))                                            \
  S(swy_route_outputs, RouteOutputs, 2, 1,                                     \
    X(topk_ids) X(topk_weights) X(identity_weights))                           \
  S(swy_route_options, RouteOptions, 1, 0,                                     \
    X(renormalize) X(clamp) X(score) X(divisor) X(eps) X(zero_sum_is_zero)     \
        X(weight_of) X(bias_place) X(bias_in_weight)                           \
            X(select_on_rounded_score) X(routed_scaling_factor) X(logit_scale) \
                X(logit_softcap) X(logit_clip) X(num_expert_group)             \
                    X(topk_group) X(group_score_of) X(dropped_key_is_zero)     \
                        X(num_zero_experts) X(num_shared_experts)              \
                            X(shared_weight) X(shared_logits) X(round_to)      \
                                X(jitter_eps) X(needs_correction_bias)         \
                                    X(needs_expert_scale) X(needs_groups)      \
                                        X(needs_config))                       \
  S(swy_preset, Preset, 4, 4,                                                  \
    X(correction_bias) X(expert_scale) X(norm_topk_prob) X(in_model_type)      \
        X(family) X(same_as) X(source) X(num_experts) X(top_k))                \
  S(swy_combine_form, CombineForm, 1, 0,                                       \
    X(has_residual) X(num_shared_experts) X(shared_gate)                       \
        X(has_identity_experts) X(has_routed_norm) X(has_shared_norm)          \
            X(has_block_norm) X(has_vectors) X(has_expert_biases)              \
                X(has_weights_on_input))                                       \
  S(swy_model_config, ModelConfig, 1, 0,                                       \
    X(num_experts) X(num_experts_per_tok) X(norm_topk_prob)                    \
        X(routed_scaling_factor) X(n_group) X(topk_group) X(topk_method)       \
            X(scoring_func) X(expert_selection_fn) X(use_expert_bias)          \
                X(moe_normalize_expert_weights) X(moe_norm_min)                \
                    X(output_multiplier) X(moe_router_logit_softcapping) X(    \
                        router_jitter_noise) X(zero_expert_num)                \
                        X(n_shared_experts) X(shared_intermediate_size) X(     \
                            shared_expert_combination_strategy)                \
                            X(moe_apply_router_weight_on_input) X(hidden_act)  \
                                X(swiglu_limit) X(swiglu_alpha)                \
                                    X(mlp_gate_softcap) X(mlp_up_softcap)      \
                                        X(rms_norm_eps) X(post_norm_eps)       \
                                            X(residual_multiplier)             \
                                                X(mlp_alpha_factor)            \
                                                    X(mlp_beta_factor))        \
  S(swy_bucket_inputs, BucketInputs, 1, 0, X(topk_ids) X(scratch))             \
  S(swy_bucket_options, BucketOptions, 1, 0, X(order) X(allow_dropped))        \
  S(swy_packed_buckets, PackedBuckets, 2, 1,                                   \
    X(tokens_per_expert) X(offsets) X(pairs) X(row_index))                     \
  S(swy_strided_buckets, StridedBuckets, 2, 1,                                 \
    X(zero_padding) X(tokens_per_expert) X(ids) X(row_stride))                 \
  S(swy_aligned_inputs, AlignedInputs, 1, 0,                                   \
    X(topk_ids) X(expert_map) X(scratch))                                      \
  S(swy_aligned_buckets, AlignedBuckets, 2, 1,                                 \
    X(tokens_per_expert) X(offsets) X(pairs) X(row_index) X(block_experts)     \
        X(row_tokens) X(active_experts))                                       \
  S(swy_aligned_options, AlignedOptions, 1, 0,                                 \
    X(block_size) X(capacity) X(fill_unused) X(allow_dropped))                 \
  S(swy_dispatch_inputs, DispatchInputs, 1, 0,                                 \
    X(max_rows) X(num_experts) X(features))                                    \
  S(swy_dispatch_outputs, DispatchOutputs, 1, 0, X(args))                      \
  S(swy_dispatch_options, DispatchOptions, 1, 0,                               \
    X(tile_pairs) X(tile_features))                                            \
  S(swy_map_rows, MapRows, 0, 0,                                               \
    X(counts) X(offsets) X(rows) X(element_counts) X(element_offsets))         \
  S(swy_map_inputs, MapInputs, 1, 0, X(topk_ids) X(destinations) X(scratch))   \
  S(swy_map_outputs, MapOutputs, 2, 1,                                         \
    X(pairs) X(pair_index) X(tokens) X(copy_index) X(return_index))            \
  S(swy_map_options, MapOptions, 1, 0,                                         \
    X(allow_dropped) X(experts_per_destination) X(row_elements))               \
  S(swy_work_tile, WorkTile, 0, 0, X(first_row) X(rows) X(expert))             \
  S(swy_work_list_inputs, WorkListInputs, 1, 0,                                \
    X(tokens_per_expert) X(offsets))                                           \
  S(swy_work_list_outputs, WorkListOutputs, 2, 1, X(tiles))                    \
  S(swy_work_list_options, WorkListOptions, 1, 0,                              \
    X(workers) X(tile_rows) X(min_rows) X(tile_cost) X(row_cost))              \
  S(swy_gather_inputs, GatherInputs, 1, 0,                                     \
    X(tokens) X(pairs) X(topk_ids) X(row_index))                               \
  S(swy_gather_outputs, GatherOutputs, 2, 1, X(rows))                          \
  S(swy_gather_options, GatherOptions, 1, 0, X(allow_invalid))                 \
  S(swy_scatter_inputs, ScatterInputs, 1, 0, X(packed) X(row_index))           \
  S(swy_scatter_outputs, ScatterOutputs, 2, 1, X(rows))                        \
  S(swy_scatter_options, ScatterOptions, 1, 0, X(allow_skipped))               \
  S(swy_quantize_inputs, QuantizeInputs, 1, 0, X(from))                        \
  S(swy_quantize_outputs, QuantizeOutputs, 1, 0, X(rows))                      \
  S(swy_quantize_options, QuantizeOptions, 1, 0, )                             \
  S(swy_activate_inputs, ActivateInputs, 1, 0,                                 \
    X(gate) X(up) X(gate_bias) X(up_bias) X(row_scale) X(offsets)              \
        X(tokens_per_expert))                                                  \
  S(swy_activate_outputs, ActivateOutputs, 1, 0, X(out))                       \
  S(swy_activate_options, ActivateOptions, 1, 0,                               \
    X(activation) X(layout) X(stores) X(alpha) X(beta) X(linear_beta) X(limit) \
        X(limit_place) X(row_scale_place) X(round_like_unfused))               \
  S(swy_shared_expert, SharedExpert, 0, 0,                                     \
    X(rows) X(gate) X(num_shared) X(kind))                                     \
  S(swy_identity_experts, IdentityExperts, 0, 0, X(rows) X(weight))            \
  S(swy_block_norms, BlockNorms, 0, 0, X(routed) X(shared) X(block))           \
  S(swy_combine_vectors, CombineVectors, 0, 0,                                 \
    X(block_bias) X(block_scale) X(residual_bias) X(residual_scale))           \
  S(swy_combine_scales, CombineScales, 0, 0,                                   \
    X(routed) X(block) X(residual) X(out))                                     \
  S(swy_combine_inputs, CombineInputs, 2, 0,                                   \
    X(rows) X(topk_weights) X(row_index) X(residual) X(norm_weight) X(shared)  \
        X(identity) X(norms) X(vectors))                                       \
  S(swy_combine_outputs, CombineOutputs, 2, 1, X(out) X(normed))               \
  S(swy_combine_options, CombineOptions, 1, 0,                                 \
    X(eps) X(allow_skipped) X(round_like_unfused) X(norm) X(block_norm)        \
        X(block_eps) X(scales))                                                \
  S(swy_hyper_inputs, HyperInputs, 1, 0,                                       \
    X(streams) X(block) X(post) X(comb) X(pre) X(norm_weight))                 \
  S(swy_hyper_outputs, HyperOutputs, 1, 0,                                     \
    X(streams) X(scales) X(out) X(normed))                                     \
  S(swy_hyper_options, HyperOptions, 1, 0,                                     \
    X(num_streams) X(eps) X(comb_by_row) X(norm_plus_one)                      \
        X(round_like_unfused))                                                 \
  S(swy_row_format, RowFormat, 0, 0,                                           \
    X(type) X(scale_type) X(scale_columns) X(has_sums))                        \
  S(swy_experts_plan_inputs, ExpertsPlanInputs, 1, 0, X(topk_ids))             \
  S(swy_experts_plan_outputs, ExpertsPlanOutputs, 3, 2, X(memory))             \
  S(swy_experts_plan_options, ExpertsPlanOptions, 1, 0,                        \
    X(allow_dropped) X(num_experts) X(hidden) X(intermediate)                  \
        X(shared_intermediate) X(workers) X(tile_rows) X(tile_columns)         \
            X(max_rows) X(weight_cost) X(row_cost) X(min_rows) X(least_cost))  \
  S(swy_experts_inputs, ExpertsInputs, 3, 2,                                   \
    X(hidden) X(shared_hidden) X(gate_bias) X(up_bias) X(scratch))             \
  S(swy_experts_options, ExpertsOptions, 4, 3,                                 \
    X(weights_on_input) X(operands) X(gate_up_type) X(down_type))

// How many fields an aggregate has: the most that it can be made of.
struct AnyField {
  template <class T>
  operator T() const;
};
// ModelConfig's are all optional, which AnyField would be in two ways.
struct AnyOptional {
  template <class T>
  operator std::optional<T>() const;
};
template <class T>
using FieldOf =
    std::conditional_t<std::is_same_v<T, ModelConfig>, AnyOptional, AnyField>;
template <class T, size_t... kI>
auto MadeOf(std::index_sequence<kI...>)
    -> decltype(T{(static_cast<void>(kI), FieldOf<T>{})...}, std::true_type{});
template <class T>
std::false_type MadeOf(...);
template <class T, size_t kMost = 48>
constexpr size_t NumFields() {
  if constexpr (kMost == 0 ||
                decltype(MadeOf<T>(std::make_index_sequence<kMost>{}))::value) {
    return kMost;
  } else {
    return NumFields<T, kMost - 1>();
  }
}

// A C struct's name, its C++ struct, and visit(name, where the field ends, the
// member of C, the member of C++) for each field of both.
template <class CStruct>
struct Fields;
template <class CStruct>
using CppOf = typename Fields<CStruct>::Cpp;

#define SWITCHYARD_C_ONE_MORE(field) +1
#define SWITCHYARD_C_VISIT(field) \
  visit(#field, offsetof(C, field) + sizeof(C::field), &C::field, &Cpp::field);
#define SWITCHYARD_C_FIELDS(CStruct, CppStruct, c_alone, cpp_alone, list) \
  template <>                                                             \
  struct Fields<CStruct> {                                                \
    using C = CStruct;                                                    \
    using Cpp = CppStruct;                                                \
    static constexpr const char* kName = #CStruct;                        \
    static constexpr size_t kExtra = c_alone, kCppExtra = cpp_alone;      \
    template <class Visit>                                                \
    static void ForEach([[maybe_unused]] const Visit& visit) {            \
      list                                                                \
    }                                                                     \
  };
SWITCHYARD_C_STRUCTS(SWITCHYARD_C_FIELDS, SWITCHYARD_C_VISIT)
#undef SWITCHYARD_C_FIELDS
#undef SWITCHYARD_C_VISIT

#define SWITCHYARD_C_COUNT(C, Cpp, c_alone, cpp_alone, list) \
  static_assert(NumFields<C>() == 0 list + c_alone,          \
                #C " has fields that are not listed");       \
  static_assert(NumFields<Cpp>() == 0 list + cpp_alone,      \
                #Cpp " has fields that " #C " does not have");
SWITCHYARD_C_STRUCTS(SWITCHYARD_C_COUNT, SWITCHYARD_C_ONE_MORE)
#undef SWITCHYARD_C_COUNT
#undef SWITCHYARD_C_ONE_MORE

}  // namespace switchyard::c

#endif  // SWITCHYARD_SRC_C_FIELDS_H_
