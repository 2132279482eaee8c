// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds the options of a model family by its name, and applies the
// config.json of a checkpoint. switchyard.h includes this file; presets.h of
// the C++ API has the whole contract.
//
//   swy_model_config config = SWY_MODEL_CONFIG_INIT;
//   swy_preset preset = SWY_PRESET_INIT;
//   swy_route_options route = SWY_ROUTE_OPTIONS_INIT;
//   preset.family = "qwen3_moe";
//   config.num_experts = swy_count(128);
//   config.num_experts_per_tok = swy_count(8);
//   config.norm_topk_prob = swy_flag(1);
//   config.rms_norm_eps = swy_number(1e-6f);
//   swy_status s = swy_apply_config(&config, &preset, &route);

#ifndef SWITCHYARD_C_PRESETS_H_
#define SWITCHYARD_C_PRESETS_H_

#include "switchyard/c/combine.h"
#include "switchyard/c/route.h"
#include "switchyard/c/rows.h"
#include "switchyard/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Tells which inputs swy_combine needs in a family's layer, and where the
// router's weights apply.
typedef struct swy_combine_form {
  uint32_t size;
  int32_t has_residual;          // 0 if swy_combine does not add the residual
  size_t num_shared_experts;     // number of shared experts, 0 for none
  int32_t shared_gate;           // enum swy_shared_gate
  int32_t has_identity_experts;  // the layer needs inputs.identity
  int32_t has_routed_norm;       // the layer needs inputs.norms.routed
  int32_t has_shared_norm;       // the layer needs inputs.norms.shared
  int32_t has_block_norm;        // the layer needs inputs.norms.block
  int32_t has_vectors;           // the layer needs some of inputs.vectors
  int32_t has_expert_biases;     // the experts' products have biases
  // 1 if an engine has to pass topk_weights to swy_activate as row_scale, and
  // weights of 1 to swy_combine.
  int32_t has_weights_on_input;
} swy_combine_form;
#define SWY_COMBINE_FORM_INIT                                                  \
  {                                                                            \
    (uint32_t)sizeof(swy_combine_form), 1, 0, SWY_GATE_NONE, 0, 0, 0, 0, 0, 0, \
        0                                                                      \
  }

// The properties of a family's layer, except its swy_route_options.
typedef struct swy_preset {
  uint32_t size;
  // 1 if the layer needs inputs.correction_bias of swy_route_top_k.
  int32_t correction_bias;
  // 1 if the layer needs inputs.expert_scale of swy_route_top_k.
  int32_t expert_scale;
  // 1 if config.json has norm_topk_prob, which sets options.renormalize.
  int32_t norm_topk_prob;
  // 1 if scores and weights are computed in the model's type. In this case, set
  // options.round_to to that type.
  int32_t in_model_type;
  const char* family;   // model_type of config.json
  const char* same_as;  // a family with exactly the same layer, or NULL
  const char* source;   // the code that the preset follows: see presets.h
  // The number of columns of logits, or 0 if this number is only in a
  // config.json.
  size_t num_experts;
  // The number of experts of a token, or 0 if this number is only in a
  // config.json.
  size_t top_k;
  // Optional: swy_find_preset and swy_apply_config write the options of
  // swy_activate here.
  swy_activate_options* activate;
  // Optional: swy_find_preset and swy_apply_config write the options of
  // swy_combine here.
  swy_combine_options* combine;
  // Optional: swy_find_preset and swy_apply_config describe here which inputs
  // swy_combine needs.
  swy_combine_form* form;
} swy_preset;
#define SWY_PRESET_INIT                                                     \
  {                                                                         \
    (uint32_t)sizeof(swy_preset), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0, NULL, \
        NULL, NULL                                                          \
  }

// A whole number of a config.json. If the file does not have the field, or
// has null, the struct is all zeros. (A text field is a plain pointer, which
// is NULL if the file does not have the field.)
typedef struct swy_optional_count {
  int32_t is_set;  // 1 if the file has the field
  uint32_t value;  // the field's value
} swy_optional_count;
// A flag of a config.json. If the file does not have the field, or has null,
// the struct is all zeros.
typedef struct swy_optional_flag {
  int32_t is_set;  // 1 if the file has the field
  int32_t value;   // 0 or 1
} swy_optional_flag;
// A number of a config.json. If the file does not have the field, or has
// null, the struct is all zeros.
typedef struct swy_optional_number {
  int32_t is_set;  // 1 if the file has the field
  float value;     // the field's value
} swy_optional_number;
// A field that the file does not have.
#define SWY_UNSET \
  { 0, 0 }

// Makes a field with a whole number.
static inline swy_optional_count swy_count(uint32_t value) {
  swy_optional_count field = SWY_UNSET;
  field.is_set = 1;
  field.value = value;
  return field;
}
// Makes a field with a flag.
static inline swy_optional_flag swy_flag(int32_t value) {
  swy_optional_flag field = SWY_UNSET;
  field.is_set = 1;
  field.value = value;
  return field;
}
// Makes a field with a number.
static inline swy_optional_number swy_number(float value) {
  swy_optional_number field = SWY_UNSET;
  field.is_set = 1;
  field.value = value;
  return field;
}

// Remembers, for each field of a swy_model_config, the name by which
// swy_set_number or swy_set_text set the field. Each element of `of` belongs to
// one field. It is the name's position in the list of the field's names,
// counted from 1, or 0 if neither function has set the field.
typedef struct swy_config_names {
  int8_t of[64];
} swy_config_names;
#define SWY_NO_CONFIG_NAMES \
  {                         \
    { 0 }                   \
  }

// The fields of a config.json (or of its text_config) that a layer's options
// depend on. Comments give other names of a field ("also named ..."), or the
// family that has the field ("for ..."); docs/models.md lists all families and
// names.
typedef struct swy_model_config {
  uint32_t size;
  // Also named n_routed_experts, among others.
  swy_optional_count num_experts;
  // Also named moe_topk, moe_top_k, moe_k, top_k_experts, among others.
  swy_optional_count num_experts_per_tok;
  swy_optional_flag norm_topk_prob;           // also named moe_renormalize
  swy_optional_number routed_scaling_factor;  // also named route_scale, ...
  swy_optional_count n_group;                 // also named num_expert_group
  swy_optional_count topk_group;              // for DeepSeek and other families
  const char* topk_method;                    // for DeepSeek-V2
  const char* scoring_func;                   // for DeepSeek and other families
  const char* expert_selection_fn;            // for Cohere2
  swy_optional_flag use_expert_bias;          // for LFM2
  swy_optional_number moe_normalize_expert_weights;  // for DBRX; null becomes 0
  swy_optional_number moe_norm_min;                  // for ERNIE
  swy_optional_number output_multiplier;             // for Muse Spark
  // Also named router_logit_softcapping; for Laguna.
  swy_optional_number moe_router_logit_softcapping;
  swy_optional_number router_jitter_noise;  // for Phi-3.5-MoE
  swy_optional_count zero_expert_num;       // for LongCat-Flash, ZEDA
  // Also named num_shared_experts, moe_num_shared_experts.
  swy_optional_count n_shared_experts;
  // For Granite; 0 means no shared expert.
  swy_optional_count shared_intermediate_size;
  const char* shared_expert_combination_strategy;      // for Cohere2
  swy_optional_flag moe_apply_router_weight_on_input;  // for Laguna
  // Also named mlp_hidden_act, hidden_activation, activation_function.
  const char* hidden_act;
  swy_optional_number swiglu_limit;      // clamps gate and up
  swy_optional_number swiglu_alpha;      // for gpt-oss
  swy_optional_number mlp_gate_softcap;  // for Inkling-2, Kimi K3
  swy_optional_number mlp_up_softcap;    // for Inkling-2, Kimi K3
  swy_optional_number rms_norm_eps;   // also named norm_eps, layer_norm_epsilon
  swy_optional_number post_norm_eps;  // for Muse Spark
  swy_optional_number residual_multiplier;  // for Granite, IQuest-Q1
  // Also named layernorm_mlp_alpha; for MiniMax.
  swy_optional_number mlp_alpha_factor;
  // Also named layernorm_mlp_beta; for MiniMax.
  swy_optional_number mlp_beta_factor;
  swy_config_names names;  // written by swy_set_... only
  swy_optional_flag moe_primary_router_apply_softmax;  // for SmallThinker
} swy_model_config;
#define SWY_MODEL_CONFIG_INIT                                              \
  {                                                                        \
    (uint32_t)sizeof(swy_model_config), SWY_UNSET, SWY_UNSET, SWY_UNSET,   \
        SWY_UNSET, SWY_UNSET, SWY_UNSET, NULL, NULL, NULL, SWY_UNSET,      \
        SWY_UNSET, SWY_UNSET, SWY_UNSET, SWY_UNSET, SWY_UNSET, SWY_UNSET,  \
        SWY_UNSET, SWY_UNSET, NULL, SWY_UNSET, NULL, SWY_UNSET, SWY_UNSET, \
        SWY_UNSET, SWY_UNSET, SWY_UNSET, SWY_UNSET, SWY_UNSET, SWY_UNSET,  \
        SWY_UNSET, SWY_NO_CONFIG_NAMES, SWY_UNSET                          \
  }

// Sets the field of `config` that has the name `key` in a config.json; all
// names of a field work. Call this function for each key and value of a JSON
// object. Pass true as 1. For a key inside a nested object, join both keys
// with a dot, as in "ffn_config.moe_top_k". If no field has that name, sets
// nothing and returns SWY_OK. A text must live until swy_apply_config
// returns.
//
// Returns SWY_INVALID_ARGUMENT and writes nothing if a pointer is NULL, if
// the value is not of the field's kind, if the field was already set by
// another name to another value, or if `config` comes from an older caller
// and lacks the field.
//
// If `config` comes from an older caller and lacks `names`, the library
// cannot compare values set by different names, and the last value stays.
SWY_API swy_status swy_set_number(const char* key, double value,
                                  swy_model_config* config) SWY_NOEXCEPT;
SWY_API swy_status swy_set_text(const char* key, const char* text,
                                swy_model_config* config) SWY_NOEXCEPT;
// Handles a null in config.json: sets moe_normalize_expert_weights to 0, and
// unsets any other field, unless it was set by another name. Errors are those
// of swy_set_number.
SWY_API swy_status swy_set_null(const char* key,
                                swy_model_config* config) SWY_NOEXCEPT;

// Writes the default configuration of a family's class to `preset`, to the
// structs that it points to, and to `options`. Pointers may be NULL.
// Initialise all structs with their macros. swy_route_top_k refuses these
// options: use swy_apply_config for a checkpoint. Returns
// SWY_INVALID_ARGUMENT and writes nothing if the name is unknown, or if a
// struct comes from an older caller and lacks a field for which the family
// needs another value than the default.
SWY_API swy_status swy_find_preset(const char* family, swy_preset* preset,
                                   swy_route_options* options) SWY_NOEXCEPT;
// Writes the options of preset->family, as swy_find_preset does, with the
// values of a checkpoint's config.json. It writes all fields, so change
// options only after the call. Returns SWY_INVALID_ARGUMENT and writes
// nothing in the cases in which swy_find_preset does so, if a field that
// changes the family's results is missing (the message names the field), or if
// a value is not valid for the family.
SWY_API swy_status swy_apply_config(const swy_model_config* config,
                                    swy_preset* preset,
                                    swy_route_options* options) SWY_NOEXCEPT;
// Returns the name of the family at `index`, in alphabetical order, or NULL
// if `index` is not below the number of families.
SWY_API const char* swy_preset_family(size_t index) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_PRESETS_H_
