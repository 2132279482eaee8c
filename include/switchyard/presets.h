// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Presets: the options for the calls of a model family's MoE layer.
// FindPreset() finds a preset by the family's name. docs/models.md lists the
// families and how each one compares with transformers.
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

// Tells which inputs Combine needs in a family's layer, and where the
// router's weights apply.
struct CombineForm {
  // True if Combine adds the residual. False if the model adds it elsewhere:
  // after a convolution, or two sublayers later, or to the streams of
  // hyper-connections (HyperConnect).
  bool has_residual = true;
  // The number of shared experts (0: none). Several shared experts that a
  // model stores as one wider expert count as one, with one row per token.
  size_t num_shared_experts = 0;
  // How the gate of a shared expert becomes the factor of its output.
  SharedGate shared_gate = SharedGate::kNone;
  // True if the layer needs CombineInputs::identity.
  bool has_identity_experts = false;
  bool has_routed_norm = false;  // the layer needs BlockNorms::routed
  bool has_shared_norm = false;  // the layer needs BlockNorms::shared
  bool has_block_norm = false;   // the layer needs BlockNorms::block
  bool has_vectors = false;      // the layer needs some of CombineVectors
  // True if the experts' products have biases. Pass gate_bias to Activate;
  // the engine itself adds the bias of the down product.
  bool has_expert_biases = false;
  // True if an engine has to pass the router's weights to Activate as
  // row_scale, and weights of 1 to Combine.
  bool has_weights_on_input = false;
};

// The options of a family's layer. They have the defaults of the family's
// configuration class until ApplyConfig() replaces the defaults with the values
// of a checkpoint's config.json.
struct Preset {
  // The family's name: the model_type of config.json, or of its text_config,
  // as in transformers.
  const char* family = nullptr;
  // Another family with exactly the same layer, or null.
  const char* same_as = nullptr;

  RouteOptions route;  // the options of RouteTopK()
  // True if the layer needs RouteInputs::correction_bias.
  bool correction_bias = false;
  // True if the layer needs RouteInputs::expert_scale.
  bool expert_scale = false;
  // True if the family's config.json has norm_topk_prob, which sets
  // route.renormalize.
  bool norm_topk_prob = false;
  // True if the family computes scores and weights in the model's type. To
  // round as the model does, set route.round_to to that type. If false, the
  // family rounds only the logits and, at the end, the weights, to the type
  // of topk_weights.
  bool in_model_type = false;

  // The columns of RouteTopK's logits, including route.num_zero_experts. It
  // is 0 if this number is only in a config.json.
  size_t num_experts = 0;
  // The number of experts that RouteTopK selects for each token. It is 0 if
  // this number is only in a config.json.
  size_t top_k = 0;

  // The options of Activate(). activate.layout is the layout of transformers'
  // fused gate_up product. An engine that stores gate and up in another way
  // sets its own layout here.
  ActivateOptions activate;
  CombineOptions combine;  // the options of Combine()
  CombineForm form;        // the inputs that Combine() needs

  // The code that the preset follows: a file and line, in transformers 5.23
  // unless the text names another project. A few presets have a description
  // instead, such as "its config.json; routing as deepseek_v4".
  const char* source = nullptr;
};

// Remembers, for each field of a ModelConfig, the name by which SetField() set
// the field. Each element of `of` belongs to one field. It is the name's
// position in the list of the field's names, counted from 1, or 0 if SetField()
// has not set the field. Programs do not write this struct.
struct ConfigNames {
  uint8_t of[64] = {};
};

// The fields of a config.json (or of its text_config) that a layer's options
// depend on. The members have the names that most families use;
// docs/models.md and `swy presets --markdown` list the other names. A
// member's comment ("for ...") names the family that has the field. Leave a
// member unset if the file does not have the field, or has null (see
// SetNull()). Texts must live until ApplyConfig() returns.
struct ModelConfig {
  std::optional<size_t> num_experts;
  std::optional<size_t> num_experts_per_tok;
  std::optional<bool> norm_topk_prob;
  std::optional<float> routed_scaling_factor;
  std::optional<size_t> n_group;
  std::optional<size_t> topk_group;
  std::optional<const char*> topk_method;
  std::optional<const char*> scoring_func;
  std::optional<const char*> expert_selection_fn;  // for Cohere2
  std::optional<bool> use_expert_bias;             // for LFM2
  std::optional<float>
      moe_normalize_expert_weights;        // for DBRX; null becomes 0
  std::optional<float> moe_norm_min;       // for ERNIE
  std::optional<float> output_multiplier;  // for Muse Spark
  std::optional<float> moe_router_logit_softcapping;  // for Laguna
  std::optional<float> router_jitter_noise;           // for Phi-3.5-MoE
  std::optional<size_t> zero_expert_num;              // for LongCat-Flash, ZEDA
  std::optional<size_t> n_shared_experts;
  // For Granite; 0 means no shared expert.
  std::optional<size_t> shared_intermediate_size;
  std::optional<const char*> shared_expert_combination_strategy;  // for Cohere2
  std::optional<bool> moe_apply_router_weight_on_input;           // for Laguna
  std::optional<const char*> hidden_act;
  std::optional<float> swiglu_limit;
  std::optional<float> swiglu_alpha;
  std::optional<float> mlp_gate_softcap;  // for Inkling-2, Kimi K3
  std::optional<float> mlp_up_softcap;    // for Inkling-2, Kimi K3
  std::optional<float> rms_norm_eps;
  std::optional<float> post_norm_eps;        // for Muse Spark
  std::optional<float> residual_multiplier;  // for Granite, IQuest-Q1
  std::optional<float> mlp_alpha_factor;     // for MiniMax
  std::optional<float> mlp_beta_factor;      // for MiniMax
  ConfigNames names;                         // written by SetField() only
  std::optional<bool> moe_primary_router_apply_softmax;  // for SmallThinker
};

// Returns all presets, sorted by the bytes of their names.
Span<const Preset> Presets() noexcept;

// Writes the preset of a family to `preset`. RouteTopK refuses its options
// until ApplyConfig() has applied a configuration. If a pointer is null or
// the name is unknown, returns kInvalidArgument and writes nothing.
Status FindPreset(const char* family, Preset* preset) noexcept;

// Replaces the preset's defaults with the values of `config`, and clears
// route.needs_config. Ignores fields that the family does not have, but
// refuses a score, a method of selection or a correction bias that differs
// from the family's.
//
// Returns kInvalidArgument and writes nothing if preset is null or of an
// unknown family, if a field that changes the family's results is missing
// (the message names it), or if a value is not valid for the family.
Status ApplyConfig(const ModelConfig& config, Preset* preset) noexcept;

// Sets the field of `config` that has the name `key` in a config.json; all
// names of a field work. Call this function for each key and value of a JSON
// object. Pass true as 1. For a key inside a nested object, join both keys
// with a dot, as in "ffn_config.moe_top_k". If no field has that name, sets
// nothing and returns OK.
//
// Returns kInvalidArgument and writes nothing in the following cases. The
// message has the key or, in the last case, both names.
// * A pointer is null.
// * The value is not of the field's kind: counts are whole numbers from 0 to
//   2^31 - 1, flags are 0 or 1, and numbers are finite.
// * SetField() has already set the same field, by another name, to another
//   value.
Status SetField(const char* key, double value, ModelConfig* config) noexcept;
Status SetField(const char* key, const char* text,
                ModelConfig* config) noexcept;
// Takes integers. Because of this overload, a literal 0 is a number and not a
// null pointer.
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
Status SetField(const char* key, T value, ModelConfig* config) noexcept {
  return SetField(key, static_cast<double>(value), config);
}
// Handles a null in config.json. It sets moe_normalize_expert_weights to 0,
// because DBRX's class does not divide if the value is null. It unsets any
// other field, unless SetField() has set the field by another name. Returns
// OK for an unknown key, and kInvalidArgument for a null pointer.
Status SetNull(const char* key, ModelConfig* config) noexcept;

// An option of a preset, which OptionAt() returns.
struct PresetOption {
  // The member of Preset that has the option: "route", "activate" or
  // "combine".
  const char* part = nullptr;
  const char* name = nullptr;  // the option's name in that member's struct
  double value = 0;  // the value; enumerators and flags are numbers, too
};
// Returns option number `index` of all options of the preset. If there is no
// such option, name is null.
PresetOption OptionAt(const Preset& preset, size_t index) noexcept;
// Sets the option with the name `name`, for bindings and tools that take
// options as text. If several parts have such an option, sets the one in
// "route". To name another part, write "combine.eps", for example.
// Enumerators may be given by name, such as "sqrt_softplus". Returns
// kInvalidArgument and writes nothing if a pointer is null, if no option has
// the name, or if the option's type cannot hold the value. SetOption() does
// not check the option's range. The call that reads the option checks it.
Status SetOption(const char* name, double value, Preset* preset) noexcept;
Status SetOption(const char* name, const char* enumerator,
                 Preset* preset) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_PRESETS_H_
