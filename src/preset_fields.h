// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A list of ModelConfig's fields, the type of a family's sets of fields, and
// the type of messages that name a field or a family.

#ifndef SWITCHYARD_SRC_PRESET_FIELDS_H_
#define SWITCHYARD_SRC_PRESET_FIELDS_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/presets.h"

// X(a field of ModelConfig, the field's other names in config.json). Each name
// ends with a zero. A name with a dot is inside an object.
#define SWITCHYARD_CONFIG_FIELDS(X)                             \
  X(num_experts,                                                \
    "n_routed_experts\0"                                        \
    "num_local_experts\0"                                       \
    "moe_num_experts\0"                                         \
    "moe_num_primary_experts\0")                                \
  X(num_experts_per_tok,                                        \
    "num_experts_per_token\0"                                   \
    "moe_topk\0"                                                \
    "moe_top_k\0"                                               \
    "moe_k\0"                                                   \
    "top_k_experts\0"                                           \
    "experts_per_token\0"                                       \
    "moe_num_active_primary_experts\0")                         \
  X(norm_topk_prob,                                             \
    "moe_renormalize\0"                                         \
    "norm_expert_weight\0")                                     \
  X(routed_scaling_factor,                                      \
    "moe_routed_scaling_factor\0"                               \
    "moe_router_scaling_factor\0"                               \
    "route_scale\0"                                             \
    "router_scaling_factor\0"                                   \
    "routing_scale\0")                                          \
  X(n_group, "num_expert_group\0")                              \
  X(topk_group, "")                                             \
  X(topk_method, "")                                            \
  X(scoring_func,                                               \
    "score_function\0"                                          \
    "score_func\0"                                              \
    "moe_router_activation_func\0"                              \
    "moe_gate_act\0"                                            \
    "router_score_func\0")                                      \
  X(expert_selection_fn, "")                                    \
  X(use_expert_bias,                                            \
    "use_routing_bias\0"                                        \
    "use_moe_router_bias\0"                                     \
    "moe_router_enable_expert_bias\0"                           \
    "moe_use_aux_free\0"                                        \
    "router_enable_expert_bias\0"                               \
    "moe_gate_bias\0")                                          \
  X(moe_normalize_expert_weights, "")                           \
  X(moe_norm_min, "")                                           \
  X(output_multiplier, "")                                      \
  X(moe_router_logit_softcapping, "router_logit_softcapping\0") \
  X(router_jitter_noise, "")                                    \
  X(zero_expert_num, "zce_nums\0")                              \
  X(n_shared_experts,                                           \
    "num_shared_experts\0"                                      \
    "moe_num_shared_experts\0")                                 \
  X(shared_intermediate_size, "")                               \
  X(shared_expert_combination_strategy, "")                     \
  X(moe_apply_router_weight_on_input, "")                       \
  X(hidden_act,                                                 \
    "mlp_hidden_act\0"                                          \
    "hidden_activation\0"                                       \
    "activation_function\0"                                     \
    "ffn_act_fn.name\0")                                        \
  X(swiglu_limit, "")                                           \
  X(swiglu_alpha, "")                                           \
  X(mlp_gate_softcap, "activation_situ_beta\0")                 \
  X(mlp_up_softcap, "activation_situ_linear_beta\0")            \
  X(rms_norm_eps,                                               \
    "norm_eps\0"                                                \
    "layer_norm_epsilon\0"                                      \
    "layernorm_epsilon\0")                                      \
  X(post_norm_eps, "")                                          \
  X(residual_multiplier, "ffn_out_scale\0")                     \
  X(mlp_alpha_factor, "layernorm_mlp_alpha\0")                  \
  X(mlp_beta_factor, "layernorm_mlp_beta\0")                    \
  X(moe_primary_router_apply_softmax, "")

namespace switchyard::internal {

// The enumerators have the names of ModelConfig's fields.
#define SWITCHYARD_CONFIG_FIELD(field, ...) field,
enum class ConfigField : uint32_t {
  SWITCHYARD_CONFIG_FIELDS(SWITCHYARD_CONFIG_FIELD)
};
#undef SWITCHYARD_CONFIG_FIELD
// All names of each field in config.json. The last one ends with two zeros.
#define SWITCHYARD_CONFIG_NAMES(field, others) #field "\0" others,
inline constexpr const char* kConfigNames[] = {
    SWITCHYARD_CONFIG_FIELDS(SWITCHYARD_CONFIG_NAMES)};
#undef SWITCHYARD_CONFIG_NAMES
constexpr const char* NextName(const char* name) {
  while (*name != '\0') ++name;
  return name + 1;
}

// A message that the compiler makes of parts, because a Status does not copy
// its message, but keeps a pointer to it.
template <size_t kRoom>
struct Message {
  char text[kRoom] = {};
  size_t size = 0;

  constexpr Message& Add(const char* more) {
    while (*more != '\0') text[size++] = *more++;
    return *this;
  }
};

// A set of fields.
struct ConfigFields {
  uint32_t bits = 0;

  constexpr bool Has(ConfigField field) const {
    return (bits >> static_cast<uint32_t>(field) & 1) != 0;
  }
};
template <class... Fields>
constexpr uint32_t BitsOf(Fields... fields) {
  return ((uint32_t{1} << static_cast<uint32_t>(fields)) | ...);
}

// The fields of config.json that a family uses, and how it uses some of them.
struct FamilyFields {
  ConfigFields needs;  // every configuration must have all of these fields
  ConfigFields reads;  // a configuration may leave out these fields
  // routed_scaling_factor sets CombineScales::routed, not RouteOptions.
  bool scales_sum = false;
  // Weights are divided by top_k, and their sum is multiplied by top_k.
  bool divides_by_top_k = false;
  bool has_identity_experts = false;  // unless a configuration has 0 of them
  // A configuration without rms_norm_eps sets CombineOptions::needs_other_norm.
  bool rms_norm_needs_eps = false;
  // A scoring_func of `other_score` means routing as in `other_family`.
  const char* other_score = nullptr;
  const char* other_family = nullptr;
};

// Returns the fields of a family of Presets(), or null for other names.
const FamilyFields* FieldsOfFamily(const char* family);

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_PRESET_FIELDS_H_
