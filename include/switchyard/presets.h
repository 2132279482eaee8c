// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Options for the calls of a model family's MoE layer, found by the family's
// name. docs/models.md lists the families and the comparison of each with
// transformers.
//
//   Preset preset;
//   ModelConfig config;  // the fields of the checkpoint's config.json
//   config.num_experts = 128;
//   config.num_experts_per_tok = 8;
//   config.norm_topk_prob = true;
//   config.rms_norm_eps = 1e-6f;
//   Status s = FindPreset("qwen3_moe", &preset);
//   if (s.ok()) s = ApplyConfig(config, &preset);
//
// Then preset.route, preset.activate and preset.combine are the options of
// RouteTopK, Activate and Combine.

#ifndef SWITCHYARD_PRESETS_H_
#define SWITCHYARD_PRESETS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/route.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// The inputs of Combine in a family's layer, and where its weights apply.
struct CombineForm {
  // False: the residual is added elsewhere, after a convolution, two sublayers
  // later, or into the streams of hyper-connections (HyperConnect).
  bool has_residual = true;
  // Shared experts, 0 for none, and the weight of their output. A model that
  // stores them as one expert of several times the width has one row a token.
  size_t num_shared_experts = 0;
  SharedGate shared_gate = SharedGate::kNone;
  bool has_identity_experts = false;
  bool has_routed_norm = false;  // BlockNorms::routed
  bool has_shared_norm = false;  // BlockNorms::shared
  bool has_block_norm = false;   // BlockNorms::block
  bool has_vectors = false;      // some of CombineVectors
  // The experts' products have biases: ActivateInputs::gate_bias, and one of
  // the down product, which the engine adds.
  bool has_expert_biases = false;
  // topk_weights are ActivateInputs::row_scale, and Combine's weights are 1.
  bool has_weights_on_input = false;
};

// A family's layer. It has the defaults of the family's configuration class
// until ApplyConfig() replaces them with a checkpoint's config.json.
struct Preset {
  // model_type of config.json, or of its text_config, as transformers has it.
  const char* family = nullptr;
  // Another family with exactly the same layer, or null.
  const char* same_as = nullptr;

  RouteOptions route;
  // The RouteInputs that it needs beside the logits.
  bool correction_bias = false;
  bool expert_scale = false;
  // Its configurations have norm_topk_prob, which sets route.renormalize.
  bool norm_topk_prob = false;
  // It computes scores and weights in the model's type. Set route.round_to to
  // this type to round as the model does. Other families round only the logits,
  // and the weights to the type of topk_weights.
  bool in_model_type = false;

  // RouteTopK's num_experts (with route.num_zero_experts) and top_k; 0 if only
  // a configuration has them.
  size_t num_experts = 0;
  size_t top_k = 0;

  // The layout is that of transformers' fused gate_up product. An engine that
  // stores gate and up in another way sets another layout here.
  ActivateOptions activate;
  CombineOptions combine;
  CombineForm form;

  // The code that it follows: file and line in transformers 5.23, or a
  // description.
  const char* source = nullptr;
};

// For each field of a ModelConfig, the number of the name by which SetField()
// set it, counted from 1; 0 if SetField() has not set it. Programs do not write
// this struct.
struct ConfigNames {
  uint8_t of[64] = {};
};

// The fields of a config.json (or of its text_config) that a layer's options
// depend on, by the names that most families have. docs/models.md and `swy
// presets --markdown` have their other names.
// Unset: the file does not have it, or has null: see SetNull(). Texts have to
// live until ApplyConfig() returns.
struct ModelConfig {
  std::optional<size_t> num_experts;
  std::optional<size_t> num_experts_per_tok;
  std::optional<bool> norm_topk_prob;
  std::optional<float> routed_scaling_factor;
  std::optional<size_t> n_group;
  std::optional<size_t> topk_group;
  std::optional<const char*> topk_method;
  std::optional<const char*> scoring_func;
  std::optional<const char*> expert_selection_fn;     // Cohere2
  std::optional<bool> use_expert_bias;                // LFM2 decides by layer
  std::optional<float> moe_normalize_expert_weights;  // DBRX; null is 0
  std::optional<float> moe_norm_min;                  // ERNIE
  std::optional<float> output_multiplier;             // Muse Spark
  std::optional<float> moe_router_logit_softcapping;  // Laguna
  std::optional<float> router_jitter_noise;           // Phi-3.5-MoE
  std::optional<size_t> zero_expert_num;              // LongCat-Flash
  std::optional<size_t> n_shared_experts;
  std::optional<size_t> shared_intermediate_size;  // Granite: 0 is none
  std::optional<const char*> shared_expert_combination_strategy;  // Cohere2
  std::optional<bool> moe_apply_router_weight_on_input;           // Laguna
  std::optional<const char*> hidden_act;
  std::optional<float> swiglu_limit;
  std::optional<float> swiglu_alpha;
  std::optional<float> mlp_gate_softcap;  // Inkling-2, Kimi K3
  std::optional<float> mlp_up_softcap;    // Inkling-2, Kimi K3
  std::optional<float> rms_norm_eps;
  std::optional<float> post_norm_eps;        // Muse Spark
  std::optional<float> residual_multiplier;  // Granite
  std::optional<float> mlp_alpha_factor;     // MiniMax
  std::optional<float> mlp_beta_factor;      // MiniMax
  ConfigNames names;                         // SetField's own
};

// All presets, sorted by name as bytes.
Span<const Preset> Presets() noexcept;

// Writes the preset of a family to `preset`. RouteTopK refuses its options
// until ApplyConfig() has applied a configuration. kInvalidArgument, and
// nothing written, if a pointer is null or the name is unknown.
Status FindPreset(const char* family, Preset* preset) noexcept;

// Replaces the preset's defaults with the values of `config`, and clears
// route.needs_config. Ignores fields that the family does not have, except that
// a score, a method of selection or a correction bias must be the family's.
// kInvalidArgument, and nothing written, if preset is null or of an unknown
// family, if a field that changes the family's results is missing (the message
// names it), or if its value is not valid for the family.
Status ApplyConfig(const ModelConfig& config, Preset* preset) noexcept;

// Sets the field of `config` that a config.json calls `key`, under any of its
// names: for programs that walk the pairs of a JSON object. true is 1. A key
// inside an object is written with a dot, "ffn_config.moe_top_k". If no field
// has that name, sets nothing and returns OK. kInvalidArgument, and nothing
// written, if a pointer is null, if the value is not of the field's kind
// (counts are whole numbers from 0 to 2^31 - 1, flags 0 or 1, and numbers
// finite), or if SetField() has set the same field by another name to another
// value; the message has the key, or both names.
Status SetField(const char* key, double value, ModelConfig* config) noexcept;
Status SetField(const char* key, const char* text,
                ModelConfig* config) noexcept;
// Numbers of other types. With this overload a literal 0 is a number, not a
// null pointer.
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
Status SetField(const char* key, T value, ModelConfig* config) noexcept {
  return SetField(key, static_cast<double>(value), config);
}
// Treats the field like a null in config.json: sets
// moe_normalize_expert_weights to 0, because DBRX's class does not divide then,
// and unsets any other field, unless SetField() has set it by another name.
// Returns OK for an unknown key, and kInvalidArgument for a null pointer.
Status SetNull(const char* key, ModelConfig* config) noexcept;

// An option of a preset: the member of Preset that has it ("route", "activate"
// or "combine"), its name, and its value as a number (enumerators and flags,
// too).
struct PresetOption {
  const char* part = nullptr;
  const char* name = nullptr;
  double value = 0;
};
// The index-th of all options; name is null beyond the last.
PresetOption OptionAt(const Preset& preset, size_t index) noexcept;
// Sets the option of that name: for bindings and tools that take options as
// text. If several parts have the name, sets the one of "route"; write
// "combine.eps" for another part. Enumerators may be given by their names,
// "sqrt_softplus". kInvalidArgument, and nothing written, if a pointer is null,
// if no option has the name, or if the option's type lacks the value. A value
// out of range is only refused by the call that reads the option.
Status SetOption(const char* name, double value, Preset* preset) noexcept;
Status SetOption(const char* name, const char* enumerator,
                 Preset* preset) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_PRESETS_H_
