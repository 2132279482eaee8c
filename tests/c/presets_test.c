// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "tests/c/check.h"

// The options of an older caller end before fields that some families need.
// For these families the call fails and writes nothing.
#define END(Struct, field) \
  (uint32_t)(offsetof(Struct, field) + sizeof(((Struct*)NULL)->field))
static int IsOfNoVersion(swy_preset* preset, swy_route_options* options) {
  return strstr(swy_find_preset("mixtral", preset, options).message,
                NO_VERSION) != NULL;
}
static void TestOlderPresets(void) {
  const swy_preset no_preset = SWY_PRESET_INIT;
  const swy_route_options defaults = SWY_ROUTE_OPTIONS_INIT;
  const char* const too_short =
      "FindPreset: options: too short, of a version that lacks a field of "
      "this family";
  swy_preset preset = no_preset;
  swy_route_options options = defaults;
  uint32_t size;
  // The call refuses options that end before needs_config.
  for (size = sizeof(uint32_t); size <= sizeof options; ++size) {
    options = defaults;
    preset = no_preset;
    options.size = size;
    if (IsOfNoVersion(NULL, &options)) continue;
    options = defaults;
    options.size = size;
    if (size < END(swy_route_options, needs_config)) {
      CHECK_INVALID(swy_find_preset("deepseek_v3", &preset, &options),
                    too_short);
      options.size = defaults.size;
      CHECK(memcmp(&options, &defaults, sizeof options) == 0);
      CHECK(memcmp(&preset, &no_preset, sizeof preset) == 0);
    } else {
      CHECK_OK(swy_find_preset("deepseek_v3", &preset, &options));
      CHECK(options.size == size && options.topk_group == 4);
    }
  }
  // The call refuses a preset that ends before top_k.
  for (size = sizeof(uint32_t); size <= sizeof preset; ++size) {
    preset = no_preset;
    options = defaults;
    preset.size = size;
    if (IsOfNoVersion(&preset, NULL)) continue;
    preset = no_preset;
    preset.size = size;
    if (size < END(swy_preset, top_k)) {
      CHECK_INVALID(
          swy_find_preset("deepseek_v3", &preset, &options),
          "FindPreset: preset: too short, of a version that lacks a field of "
          "this family");
      preset.size = no_preset.size;
      CHECK(memcmp(&options, &defaults, sizeof options) == 0);
      CHECK(memcmp(&preset, &no_preset, sizeof preset) == 0);
    } else {
      CHECK_OK(swy_find_preset("deepseek_v3", &preset, &options));
      CHECK(preset.correction_bias == 1 && preset.top_k == 8);
    }
  }
}

void TestPresets(void) {
  swy_preset preset = SWY_PRESET_INIT;
  swy_route_options options = SWY_ROUTE_OPTIONS_INIT;
  const char *name, *last = "";
  size_t i;
  CHECK_OK(swy_find_preset("deepseek_v3", &preset, &options));
  CHECK(strcmp(preset.family, "deepseek_v3") == 0);
  CHECK(preset.same_as == NULL);
  CHECK(preset.source != NULL);
  CHECK(preset.correction_bias == 1 && preset.expert_scale == 0);
  CHECK(preset.num_experts == 256 && preset.top_k == 8);
  CHECK(options.score == SWY_SCORE_SIGMOID);
  CHECK(options.divisor == SWY_DIVISOR_SUM_PLUS_EPS);
  CHECK(options.eps == 1e-20f && options.routed_scaling_factor == 2.5f);
  CHECK(options.num_expert_group == 8 && options.topk_group == 4);
  CHECK(options.size == sizeof options && preset.size == sizeof preset);
  for (i = 0; (name = swy_preset_family(i)) != NULL; ++i) {
    CHECK(strcmp(last, name) < 0);
    CHECK_OK(swy_find_preset(name, NULL, &options));
    CHECK_OK(swy_find_preset(name, &preset, NULL));
    CHECK(strcmp(preset.family, name) == 0);
    last = name;
  }
  CHECK(i > 70);
  TestOlderPresets();
  preset.top_k = 71;
  CHECK_INVALID(swy_find_preset("llama", &preset, &options),
                "FindPreset: family: is not in Presets(); did you mean llada");
  CHECK_INVALID(swy_find_preset(NULL, &preset, &options),
                "FindPreset: family: is null");
  preset.size = 0;
  CHECK_INVALID(swy_find_preset("mixtral", &preset, &options),
                "FindPreset: preset: size is not set");
  CHECK(preset.top_k == 71);
}

// Sets the configuration of Qwen3-30B-A3B.
static void SetQwen3(swy_model_config* config) {
  const swy_model_config initial = SWY_MODEL_CONFIG_INIT;
  *config = initial;
  config->num_experts = swy_count(128);
  config->num_experts_per_tok = swy_count(8);
  config->norm_topk_prob = swy_flag(1);
  config->rms_norm_eps = swy_number(1e-5f);
}

void TestConfig(void) {
  swy_model_config config;
  swy_preset preset = SWY_PRESET_INIT;
  const swy_preset no_preset = SWY_PRESET_INIT;
  swy_route_options route = SWY_ROUTE_OPTIONS_INIT;
  swy_activate_options activate = SWY_ACTIVATE_OPTIONS_INIT;
  swy_combine_options combine = SWY_COMBINE_OPTIONS_INIT;
  swy_combine_form form = SWY_COMBINE_FORM_INIT;
  SetQwen3(&config);
  preset.activate = &activate;
  preset.combine = &combine;
  preset.form = &form;
  // The preset is incomplete until a configuration is applied.
  CHECK_OK(swy_find_preset("qwen3_moe", &preset, &route));
  CHECK(route.needs_config == 1);
  CHECK_OK(swy_apply_config(&config, &preset, &route));
  CHECK(route.needs_config == 0 && route.renormalize == 1);
  CHECK(preset.num_experts == 128 && preset.top_k == 8);
  CHECK(combine.eps == 1e-5f && activate.activation == SWY_SILU);
  CHECK(form.has_residual == 1 && form.num_shared_experts == 0);
  CHECK(preset.activate == &activate && preset.size == sizeof preset);
  // A flag of 0 counts as given.
  config.norm_topk_prob = swy_flag(0);
  CHECK_OK(swy_apply_config(&config, &preset, &route));
  CHECK(route.renormalize == 0);
  config.norm_topk_prob.is_set = 0;
  route.renormalize = 71;
  CHECK_INVALID(swy_apply_config(&config, &preset, &route),
                "ApplyConfig: config: norm_topk_prob is missing");
  CHECK(route.renormalize == 71);

  // Sets fields by their names in config.json, with valid and invalid values.
  {
    const swy_model_config initial = SWY_MODEL_CONFIG_INIT;
    config = initial;
  }
  CHECK_OK(swy_set_number("moe_num_experts", 64, &config));
  CHECK(config.num_experts.is_set == 1 && config.num_experts.value == 64);
  CHECK_OK(swy_set_number("no_such_field", 1, &config));
  CHECK_OK(swy_set_number("swiglu_limit", 2.5, &config));
  CHECK(config.swiglu_limit.is_set == 1 && config.swiglu_limit.value == 2.5f);
  CHECK_OK(swy_set_text("hidden_act", "gelu", &config));
  CHECK(strcmp(config.hidden_act, "gelu") == 0);
  CHECK_INVALID(swy_set_text("num_experts", "many", &config),
                "SetField: config: num_experts is not a whole number from 0 to "
                "2^31 - 1");
  CHECK_INVALID(swy_set_number("num_experts", -1, &config),
                "SetField: config: num_experts is not a whole number from 0 to "
                "2^31 - 1");
  CHECK_INVALID(swy_set_number("norm_topk_prob", 2, &config),
                "SetField: config: norm_topk_prob is neither true nor false");
  CHECK_INVALID(swy_set_number(NULL, 2, &config), "SetField: key: is null");
  CHECK_INVALID(swy_set_text("hidden_act", NULL, &config),
                "SetField: text: is null");
  CHECK_INVALID(swy_set_text("hidden_act", "gelu", NULL),
                "SetField: config: is null");
  CHECK(config.num_experts.value == 64);
  // Sets a field by two of its names, sets fields to null, and sets a field of
  // an inner object.
  CHECK_INVALID(
      swy_set_number("n_routed_experts", 65, &config),
      "SetField: config: n_routed_experts differs from moe_num_experts, "
      "and both are names of one field");
  CHECK_OK(swy_set_number("n_routed_experts", 64, &config));
  CHECK_OK(swy_set_null("n_routed_experts", &config));
  CHECK(config.num_experts.is_set == 0);
  CHECK_OK(swy_set_number("ffn_config.moe_num_experts", 64, &config));
  CHECK(config.num_experts.value == 64);
  CHECK_OK(swy_set_null("moe_normalize_expert_weights", &config));
  CHECK(config.moe_normalize_expert_weights.is_set == 1);
  CHECK_INVALID(swy_set_null(NULL, &config), "SetNull: key: is null");
  CHECK_INVALID(swy_set_null("num_experts", NULL), "SetNull: config: is null");
  // The older caller's struct has no mlp_beta_factor. The call returns an
  // error instead of losing the value.
  config.size = (uint32_t)offsetof(swy_model_config, mlp_beta_factor);
  CHECK_OK(swy_set_number("mlp_alpha_factor", 0.5, &config));
  CHECK_INVALID(swy_set_number("mlp_beta_factor", 0.5, &config),
                "SetField: config: is from a version without this field");
  config.size =
      (uint32_t)offsetof(swy_model_config, moe_primary_router_apply_softmax);
  CHECK_OK(swy_set_number("mlp_beta_factor", 0.5, &config));
  CHECK_INVALID(swy_set_number("moe_primary_router_apply_softmax", 1, &config),
                "SetField: config: is from a version without this field");
  config.mlp_beta_factor.is_set = 0;
  config.size = (uint32_t)sizeof config;
  CHECK(config.moe_primary_router_apply_softmax.is_set == 0);
  CHECK_OK(swy_set_number("moe_primary_router_apply_softmax", 1, &config));
  CHECK(config.moe_primary_router_apply_softmax.is_set == 1);

  // A preset points to several structs. The call checks all of them before it
  // writes any.
  SetQwen3(&config);
  combine.size = END(swy_combine_options, round_like_unfused);
  activate.alpha = 71.0f;
  CHECK_INVALID(swy_apply_config(&config, &preset, &route),
                "ApplyConfig: preset.combine: too short, of a version that "
                "lacks a field of this family");
  combine.size = 0;
  CHECK_INVALID(swy_apply_config(&config, &preset, &route),
                "ApplyConfig: preset.combine: size is not set");
  combine.size = (uint32_t)sizeof combine;
  activate.size = END(swy_activate_options, layout);
  CHECK_INVALID(swy_find_preset("gpt_oss", &preset, &route),
                "FindPreset: preset.activate: too short, of a version that "
                "lacks a field of this family");
  activate.size = (uint32_t)sizeof activate;
  form.size = SWY_MAX_STRUCT_SIZE + 1;
  CHECK_INVALID(swy_find_preset("qwen3_moe", &preset, &route),
                "FindPreset: preset.form" TOO_LONG);
  CHECK(activate.alpha == 71.0f && route.renormalize == 71);
  // A preset of an older version has no pointers to these structs.
  preset.size = (uint32_t)offsetof(swy_preset, activate);
  CHECK_OK(swy_apply_config(&config, &preset, &route));
  CHECK(activate.alpha == 71.0f && route.renormalize == 1);
  preset = no_preset;
  CHECK_INVALID(swy_apply_config(&config, &preset, &route),
                "ApplyConfig: preset: its family is not in Presets()");
  preset.family = "llama";
  CHECK_INVALID(swy_apply_config(&config, &preset, &route),
                "ApplyConfig: preset: its family is not in Presets()");
  CHECK_INVALID(swy_apply_config(&config, NULL, &route),
                "ApplyConfig: preset: is null");
  CHECK_INVALID(swy_apply_config(NULL, &preset, &route),
                "ApplyConfig: config: is null");
  config.size = 3;
  CHECK_INVALID(swy_apply_config(&config, &preset, &route),
                "ApplyConfig: config: size is not set");
}
