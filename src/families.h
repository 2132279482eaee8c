// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of model families: options, the fields of config.json that set
// them, and the names of layers for moe_layer. The library compiles only the
// options. moe_layer, `swy presets` and tools/parity read the rest.

#ifndef SWITCHYARD_SRC_FAMILIES_H_
#define SWITCHYARD_SRC_FAMILIES_H_

#include <cstddef>
#include <type_traits>

#include "src/family.h"
#include "src/preset_fields.h"
#include "switchyard/presets.h"

namespace switchyard::families {

using internal::BitsOf;
using internal::ConfigField;
using internal::FamilyFields;

// A family's options. A chain of calls sets them, in the order of the steps in
// the family's code: `Score(..).Bias().Groups(8, 4)`. A call also registers the
// field of config.json that has the option's value, if there is one.
struct Recipe {
  Preset preset;
  FamilyFields fields;

  constexpr explicit Recipe(Score score)
      : fields{
            {BitsOf(ConfigField::num_experts, ConfigField::num_experts_per_tok,
                    ConfigField::rms_norm_eps)},
            {BitsOf(ConfigField::scoring_func, ConfigField::topk_method,
                    ConfigField::use_expert_bias, ConfigField::hidden_act)}} {
    preset.route.score = score;
    preset.route.renormalize = false;
    preset.route.needs_config = true;
    preset.activate.layout = GateUpLayout::kConcatenated;
  }
  // Return the part of a preset that has the options, for Set().
  static constexpr RouteOptions& Part(Preset& p, RouteOptions*) {
    return p.route;
  }
  static constexpr ActivateOptions& Part(Preset& p, ActivateOptions*) {
    return p.activate;
  }
  static constexpr CombineOptions& Part(Preset& p, CombineOptions*) {
    return p.combine;
  }
  static constexpr CombineForm& Part(Preset& p, CombineForm*) { return p.form; }
  template <class Struct, class T>
  constexpr Recipe Set(T Struct::*member, std::common_type_t<T> value) const {
    Recipe recipe = *this;
    Part(recipe.preset, static_cast<Struct*>(nullptr)).*member = value;
    return recipe;
  }
  constexpr Recipe SetFlag(bool Preset::*is) const {
    Recipe recipe = *this;
    recipe.preset.*is = true;
    return recipe;
  }
  template <class... Fields>
  constexpr Recipe Needs(Fields... named) const {
    Recipe recipe = *this;
    recipe.fields.needs.bits |= BitsOf(named...);
    return recipe;
  }
  template <class... Fields>
  constexpr Recipe Reads(Fields... named) const {
    Recipe recipe = *this;
    recipe.fields.needs.bits &= ~BitsOf(named...);
    recipe.fields.reads.bits |= BitsOf(named...);
    return recipe;
  }
  template <class... Fields>
  constexpr Recipe Ignores(Fields... named) const {
    Recipe recipe = *this;
    recipe.fields.needs.bits &= ~BitsOf(named...);
    recipe.fields.reads.bits &= ~BitsOf(named...);
    return recipe;
  }

  // ---- Options of routing.
  constexpr Recipe Bias(BiasPlace place = BiasPlace::kScore) const {
    return SetFlag(&Preset::correction_bias)
        .Set(&RouteOptions::needs_correction_bias, true)
        .Set(&RouteOptions::bias_place, place);
  }
  constexpr Recipe ExpertScale() const {
    return SetFlag(&Preset::expert_scale)
        .Set(&RouteOptions::needs_expert_scale, true);
  }
  constexpr Recipe Groups(size_t groups, size_t kept) const {
    return Set(&RouteOptions::num_expert_group, groups)
        .Set(&RouteOptions::topk_group, kept)
        .Set(&RouteOptions::needs_groups, true)
        .Needs(ConfigField::n_group, ConfigField::topk_group);
  }
  // No groups by default, but a configuration may have groups.
  constexpr Recipe GroupsIfSaid() const {
    return Set(&RouteOptions::num_expert_group, 0)
        .Set(&RouteOptions::topk_group, 0)
        .Set(&RouteOptions::needs_groups, false)
        .Reads(ConfigField::n_group, ConfigField::topk_group);
  }
  // A group's score is the sum of its `of` largest keys. Dropped groups' keys
  // become 0.
  constexpr Recipe GroupScore(size_t of) const {
    return Set(&RouteOptions::group_score_of, of)
        .Set(&RouteOptions::dropped_key_is_zero, true);
  }
  constexpr Recipe Weight(WeightOf of) const {
    return Set(&RouteOptions::weight_of, of);
  }
  constexpr Recipe Over(Divisor divisor, float eps = 0.0f) const {
    return Set(&RouteOptions::divisor, divisor)
        .Set(&RouteOptions::eps, eps)
        .Set(&RouteOptions::renormalize, true);
  }
  constexpr Recipe OverSum() const { return Over(Divisor::kSum); }
  constexpr Recipe OverSumPlus(float eps) const {
    return Over(Divisor::kSumPlusEps, eps);
  }
  constexpr Recipe IfNormTopkProb(bool by_default) const {
    return SetFlag(&Preset::norm_topk_prob)
        .Set(&RouteOptions::renormalize, by_default)
        .Needs(ConfigField::norm_topk_prob);
  }
  constexpr Recipe Scale(float factor) const {
    return Set(&RouteOptions::routed_scaling_factor, factor)
        .Needs(ConfigField::routed_scaling_factor);
  }
  constexpr Recipe InModelType() const {
    return SetFlag(&Preset::in_model_type);
  }
  // Zero experts come behind the real experts. num_experts counts both.
  constexpr Recipe ZeroExperts(size_t count) const {
    return Set(&RouteOptions::num_zero_experts, count)
        .Needs(ConfigField::zero_expert_num);
  }
  // If scoring_func in config.json is `score`, the model routes as `family`
  // does.
  constexpr Recipe RoutesAs(const char* family, const char* score) const {
    Recipe recipe = *this;
    recipe.fields.other_family = family;
    recipe.fields.other_score = score;
    return recipe;
  }

  // ---- Options of the activation.
  constexpr Recipe Act(Activation activation) const {
    return Set(&ActivateOptions::activation, activation);
  }
  // The activation is fixed: hidden_act does not name it, and is ignored.
  constexpr Recipe FixedAct(Activation activation) const {
    return Act(activation).Ignores(ConfigField::hidden_act);
  }
  constexpr Recipe Limit(float limit) const {
    return Set(&ActivateOptions::limit, limit).Needs(ConfigField::swiglu_limit);
  }
  constexpr Recipe Oai(GateUpLayout layout) const {
    return FixedAct(Activation::kSwigluOai)
        .Set(&ActivateOptions::layout, layout)
        .Limit(7.0f)
        .Reads(ConfigField::swiglu_alpha);
  }

  // ---- Options of Combine.
  constexpr Recipe Eps(float eps) const {
    return Set(&CombineOptions::eps, eps).Set(&CombineOptions::block_eps, eps);
  }
  constexpr Recipe Norm(NormKind norm) const {
    return Set(&CombineOptions::norm, norm)
        .Set(&CombineOptions::block_norm, norm);
  }
  // Combine does not have the family's next norm, and refuses `normed`.
  constexpr Recipe NextNormIsOther() const {
    return Set(&CombineOptions::needs_other_norm, true);
  }
  // If config.json has rms_norm_eps, the next norm is an RMSNorm, otherwise a
  // LayerNorm.
  constexpr Recipe NextNormIsLayerNormWithoutEps() const {
    Recipe recipe = NextNormIsOther().Reads(ConfigField::rms_norm_eps);
    recipe.fields.rms_norm_needs_eps = true;
    return recipe;
  }
  constexpr Recipe Shared(size_t num_shared) const {
    return Set(&CombineForm::num_shared_experts, num_shared)
        .Reads(ConfigField::n_shared_experts);
  }
  // There is always one shared expert, and n_shared_experts is ignored.
  constexpr Recipe OneShared() const {
    return Shared(1).Ignores(ConfigField::n_shared_experts);
  }
  constexpr Recipe GatedShared() const {
    return Set(&CombineForm::num_shared_experts, 1)
        .Set(&CombineForm::shared_gate, SharedGate::kLogit);
  }
  constexpr Recipe BlockNorm() const {
    return Set(&CombineForm::has_block_norm, true);
  }
  constexpr Recipe WithoutResidual() const {
    return Set(&CombineForm::has_residual, false);
  }
  // The factor multiplies the sum of the routed experts, not their weights.
  constexpr Recipe ScaleOfSum(float factor) const {
    Recipe recipe = Set(&RouteOptions::routed_scaling_factor, 1.0f)
                        .Needs(ConfigField::routed_scaling_factor);
    recipe.preset.combine.scales.routed = factor;
    recipe.fields.scales_sum = true;
    return recipe;
  }
  // The factor multiplies the block's output before the residual is added.
  constexpr Recipe ScaleOfBlock(float factor) const {
    Recipe recipe = Needs(ConfigField::residual_multiplier);
    recipe.preset.combine.scales.block = factor;
    return recipe;
  }
  // Weights are divided by top_k, and their sum is multiplied by top_k, as in
  // OpenAI's privacy filter. top_k is 4 by default.
  constexpr Recipe DividedByTopK() const {
    Recipe recipe = Set(&RouteOptions::routed_scaling_factor, 0.25f);
    recipe.preset.combine.scales.routed = 4.0f;
    recipe.fields.divides_by_top_k = true;
    return recipe;
  }
};

// A row of the table: a family with its sizes, or a copy of another family.
struct Family : Recipe {
  const FamilyLayer* layer;  // null: moe_layer does not run this family
  const char* models = "";   // the names of published models

  constexpr Family(const char* family, const Recipe& recipe, size_t num_experts,
                   size_t top_k, const char* source,
                   const FamilyLayer* moe_layer = nullptr,
                   const char* names = "")
      : Recipe(recipe), layer(moe_layer), models(names) {
    preset.family = family;
    preset.num_experts = num_experts;
    preset.top_k = top_k;
    preset.source = source;
  }
  // If `source` is null, the family is another name for the code of
  // `same_as`.
  constexpr Family(const char* family, const char* same_as,
                   const char* source = nullptr,
                   const FamilyLayer* moe_layer = nullptr)
      : Recipe(Score::kSoftmax), layer(moe_layer) {
    preset.family = family;
    preset.same_as = same_as;
    preset.source = source;
  }
};

// Recipes that several families share. Each is named after the first or the
// best known of these families.
constexpr Recipe kSoftmax(Score::kSoftmax);
constexpr Recipe kSigmoid(Score::kSigmoid);
constexpr Recipe kMixtral = kSoftmax.OverSum();
constexpr Recipe kOlmoe = kSoftmax.OverSum().IfNormTopkProb(false);
constexpr Recipe kQwen3Next = kOlmoe.IfNormTopkProb(true);
constexpr Recipe kGranite =
    Recipe(Score::kRaw).Weight(WeightOf::kSoftmaxOfSelected);
constexpr Recipe kGraniteMoe =
    kGranite.Needs(ConfigField::residual_multiplier)
        .Reads(ConfigField::shared_intermediate_size);
constexpr Recipe kSigmoidOfSelected =
    Recipe(Score::kRaw).Weight(WeightOf::kSigmoidOfSelected);
constexpr Recipe kDeepseekV2 =
    kSoftmax.GroupsIfSaid().GroupScore(1).Scale(1.0f).Shared(2).Needs(
        ConfigField::topk_method);
constexpr Recipe kDeepseekV3 =
    kSigmoid.Bias().Groups(8, 4).OverSumPlus(1e-20f).IfNormTopkProb(true).Scale(
        2.5f);
constexpr Recipe kGlm4 = kDeepseekV3.Groups(1, 1).Scale(1.0f);
// Configurations of this family write null for a factor of 1.
constexpr Recipe kMimoV2 =
    kGlm4.Reads(ConfigField::routed_scaling_factor).Eps(1e-5f);
constexpr Recipe kHy3 = kSigmoid.Bias().OverSumPlus(1e-20f).Scale(1.0f);
constexpr Recipe kMinimaxM2 = kSigmoid.Bias().OverSum();
constexpr Recipe kErnie = kSoftmax.Bias()
                              .Over(Divisor::kMaxOfSumAndEps, 1e-12f)
                              .Reads(ConfigField::moe_norm_min)
                              .Shared(2)
                              .Eps(1e-5f);
constexpr Recipe kDeepseekV4 = Recipe(Score::kSqrtSoftplus)
                                   .Bias()
                                   .OverSumPlus(1e-20f)
                                   .Scale(1.5f)
                                   .InModelType()
                                   .Limit(10.0f)
                                   .Norm(NormKind::kWeightInF32)
                                   .OneShared()
                                   .WithoutResidual();
constexpr Recipe kMistralLarge4 =
    kSoftmax.Groups(1, 1).GroupScore(2).OverSumPlus(1e-20f).Scale(1.0f).Shared(
        1);
constexpr Recipe kGrok1 = kSoftmax.Set(&RouteOptions::logit_softcap, 30.0f)
                              .Reads(ConfigField::moe_router_logit_softcapping)
                              .Act(Activation::kGelu)
                              .BlockNorm()
                              .Eps(1e-5f);
// Configurations may leave out groups, norm_topk_prob and the scaling factor.
constexpr Recipe kParam2Moe = kDeepseekV3.GroupsIfSaid().Shared(1).Reads(
    ConfigField::norm_topk_prob, ConfigField::routed_scaling_factor);

// Layers that several families share. Each is named after the first of these
// families.
constexpr FamilyLayer kQwen3MoeLayer =
    FamilyLayer()
        .Set(kNorm, "post_attention_layernorm.weight")
        .Set(kNextNorm, "input_layernorm.weight")
        .Router("mlp.gate.weight")
        .Experts({"mlp.experts.{expert}"}, {"mlp.experts", kFused})
        .Rules({LayerRule::kDense, "mlp_only_layers"},
               {LayerRule::kStep, "decoder_sparse_step"});
constexpr FamilyLayer kQwen2MoeLayer =
    kQwen3MoeLayer
        .Shared({"mlp.shared_expert"}, "shared_expert_intermediate_size")
        .Set(&FamilyLayer::shared_logit, "mlp.shared_expert_gate.weight");
constexpr FamilyLayer kOlmoeLayer =
    kQwen3MoeLayer.Rules().Set(&FamilyLayer::intermediate, "intermediate_size");
constexpr FamilyLayer kMellumLayer =
    kQwen3MoeLayer.Rules({LayerRule::kTypes, "mlp_layer_types"});
constexpr FamilyLayer kDeepseekV3Layer =
    kQwen3MoeLayer
        .Rules({LayerRule::kFirst, "first_k_dense_replace"},
               {LayerRule::kTypes, "mlp_layer_types"},
               {LayerRule::kFlags, "moe_layer_freq"})
        .Set(kCorrectionBias, "mlp.gate.e_score_correction_bias")
        .Shared({"mlp.shared_experts"});
constexpr FamilyLayer kAxk1Layer =
    kDeepseekV3Layer.Set(kBlockOutNorm, "post_mlp_layernorm.weight");
constexpr FamilyLayer kMimoV2Layer = kDeepseekV3Layer.Shared({});
constexpr FamilyLayer kExaoneMoeLayer =
    kDeepseekV3Layer
        .Rules({LayerRule::kFirst, "first_k_dense_replace"},
               {LayerRule::kTypes, "mlp_layer_types"},
               {LayerRule::kFlags, "moe_layer_freq"},
               {LayerRule::kFlags, "is_moe_layer"})
        .Set(kCorrectionBias, "mlp.e_score_correction_bias");
constexpr FamilyLayer kAfmoeLayer =
    kExaoneMoeLayer.Rules({LayerRule::kFirst, "num_dense_layers"})
        .Set(kNorm, "pre_mlp_layernorm.weight")
        .Set(kBlockOutNorm, "post_mlp_layernorm.weight")
        .Set(kCorrectionBias, "mlp.expert_bias")
        .Router("mlp.router.gate.weight");
constexpr FamilyLayer kBailingHybridLayer =
    kExaoneMoeLayer.Set(kCorrectionBias, "mlp.gate.expert_bias");
constexpr FamilyLayer kKimiLinearLayer =
    kExaoneMoeLayer
        .Set(kCorrectionBias, "block_sparse_moe.gate.e_score_correction_bias")
        .Router("block_sparse_moe.gate.weight")
        .Experts({"block_sparse_moe.experts.{expert}", kNumbered})
        .Shared({"block_sparse_moe.shared_experts"});
constexpr FamilyLayer kHunyuanV1Layer =
    kOlmoeLayer.Router("mlp.gate.wg.weight")
        .Shared({"mlp.shared_mlp"}, "intermediate_size");
constexpr FamilyLayer kMixtralLayer =
    kOlmoeLayer.Router("block_sparse_moe.gate.weight")
        .Experts({"block_sparse_moe.experts.{expert}", kNumbered});
constexpr FamilyLayer kMinimaxM2Layer = kMixtralLayer.Set(
    kCorrectionBias, "block_sparse_moe.e_score_correction_bias");
constexpr FamilyLayer kGptOssLayer =
    kOlmoeLayer.Set(&FamilyLayer::bias_in_logits, true)
        .Router("mlp.router.weight")
        .Set(kCorrectionBias, "mlp.router.bias")
        .Set(kGateUpBias, "mlp.experts.gate_up_proj_bias")
        .Set(kDownBias, "mlp.experts.down_proj_bias")
        .Experts({"mlp.experts", kInterleaved});
constexpr FamilyLayer kGraniteLayer =
    kOlmoeLayer.Router("block_sparse_moe.router.layer.weight")
        .Experts({"block_sparse_moe", kLinear});
constexpr FamilyLayer kGraniteSharedLayer =
    kGraniteLayer.Shared({"shared_mlp", kLinear}, "shared_intermediate_size")
        .Set(&FamilyLayer::shared_is_optional, true);
constexpr FamilyLayer kLlama4Layer =
    kOlmoeLayer
        .Rules({LayerRule::kListed, "moe_layers"},
               {LayerRule::kStep, "interleave_moe_layer_step"})
        .Router("feed_forward.router.weight")
        .Experts({"feed_forward.experts", kTransposed})
        .Shared({"feed_forward.shared_expert"}, "intermediate_size");
// The dense MLP beside the experts runs as a shared expert with its own norms.
constexpr FamilyLayer kGemma4Layer =
    kQwen3MoeLayer.Rules()
        .Set(&FamilyLayer::hidden_act, "gelu_pytorch_tanh")
        .Set(&FamilyLayer::enabled_by, "enable_moe_block")
        .Set(&FamilyLayer::router_norm_by_root, true)
        .Set(kNorm, "pre_feedforward_layernorm_2.weight")
        .Set(kRouterNorm, "router.scale")
        .Set(kSharedNorm, "pre_feedforward_layernorm.weight")
        .Set(kRoutedOutNorm, "post_feedforward_layernorm_2.weight")
        .Set(kSharedOutNorm, "post_feedforward_layernorm_1.weight")
        .Set(kBlockOutNorm, "post_feedforward_layernorm.weight")
        .Set(kExpertScale, "router.per_expert_scale")
        .Set(kLayerScalar, "layer_scalar")
        .Router("router.proj.weight")
        .Experts({"experts", kFused})
        .Shared({"mlp"}, "intermediate_size");
constexpr FamilyLayer kHyV3Layer =
    kQwen3MoeLayer
        .Rules({LayerRule::kTypes, "mlp_layer_types"},
               {LayerRule::kFirst, "first_k_dense_replace"})
        .Router("mlp.router.gate.weight")
        .Set(kCorrectionBias, "mlp.expert_bias")
        .Shared({"mlp.shared_mlp"});
constexpr FamilyLayer kErnieLayer =
    kQwen3MoeLayer
        .Rules({LayerRule::kFirst, "moe_layer_start_index"},
               {LayerRule::kLast, "moe_layer_end_index"},
               {LayerRule::kStep, "moe_layer_interval"})
        .Set(kCorrectionBias, "mlp.moe_statics.e_score_correction_bias")
        .Shared({"mlp.shared_experts"});
// The layer's output is added to the stream two sublayers later.
constexpr FamilyLayer kLongcatLayer =
    kQwen3MoeLayer.Rules()
        .Set(&FamilyLayer::num_layers, "num_layers")
        .Set(&FamilyLayer::intermediate, "expert_ffn_hidden_size")
        .Set(kNorm, "post_attention_layernorm.0.weight")
        .Set(kNextNorm, nullptr)
        .Set(kCorrectionBias, "mlp.router.e_score_correction_bias")
        .Router("mlp.router.classifier.weight");
// The layer's output goes to the streams of hyper-connections.
constexpr FamilyLayer kDeepseekV4Layer =
    kDeepseekV3Layer
        .Rules({LayerRule::kTypes, "mlp_layer_types", "moe"},
               {LayerRule::kFirstByHash, "num_hash_layers"})
        .Set(kNorm, "ffn_norm.weight")
        .Set(kNextNorm, nullptr)
        .Set(kCorrectionBias, "ffn.gate.bias")
        .Router("ffn.gate.weight")
        .Experts({"ffn.experts.{expert}", kNumbered})
        .Shared({"ffn.shared_experts", kNumbered});

// One row per family, in alphabetical order.
constexpr Family kFamilies[] = {
    {"Klear",
     kMinimaxM2.IfNormTopkProb(true).Shared(1).Set(&CombineForm::shared_gate,
                                                   SharedGate::kScalar),
     0, 0, "mlx-vlm 0.7.10, klear/language.py:115", nullptr, "Klear-46B"},
    {"afmoe",
     kHy3.Shared(2).BlockNorm().Norm(NormKind::kWeightInF32).Eps(1e-5f), 64, 6,
     "modeling_afmoe.py:127", &kAfmoeLayer, "Trinity"},
    {"arctic", kMixtral.Set(&CombineForm::num_shared_experts, 1).Eps(1e-5f),
     128, 2, "ik_llama.cpp of August 2026, build_arctic.cpp:85", nullptr,
     "Arctic"},
    {"aria", kGranite.Shared(2), 8, 2, "modeling_aria.py:250"},
    {"aria_text", "aria"},
    {"axk1", kDeepseekV3.Shared(1).BlockNorm(), 192, 8, "modeling_axk1.py:134",
     &kAxk1Layer, "A.X-K1"},
    // The model's norms have a gate: y * sigmoid(MLP(y)).
    {"axk2",
     kGlm4.GroupsIfSaid().GroupScore(2).Scale(2.5f).Shared(1).NextNormIsOther(),
     128, 8, "modeling_axk2.py:280", nullptr, "A.X-K2"},
    {"bailing_hybrid", kDeepseekV3.Shared(1), 512, 8,
     "modeling_bailing_hybrid.py:767", &kBailingHybridLayer, "Ling 3"},
    {"bailing_moe",
     kSoftmax.OverSumPlus(1e-20f).IfNormTopkProb(true).Shared(2).RoutesAs(
         "bailing_moe_v2", "sigmoid"),
     64, 6, "mlx-lm 0.32.2, bailing_moe.py:162", nullptr, "Ling 1, 2.0"},
    {"bailing_moe_linear", "bailing_moe_v2",
     "vllm 0.32.0, bailing_moe_linear.py:312"},
    {"bailing_moe_v2", kDeepseekV3.Shared(1), 256, 8,
     "vllm 0.32.0, bailing_moe.py:296", nullptr, "Ling 2.0"},
    {"bailing_moe_v3_vl", "bailing_hybrid"},
    {"beam",
     kDeepseekV3.ScaleOfSum(2.5f).BlockNorm().Norm(NormKind::kWeightInF32), 256,
     8, "modeling_beam.py:337"},
    // The layer's output is mixed with earlier outputs before the next norm.
    {"berrylm", kQwen3Next.GatedShared().NextNormIsOther(), 128, 8,
     "vllm after 0.32.0, berrylm.py, BerryLMSparseMoeBlock", nullptr,
     "BerryLM-OS"},
    {"cohere2_moe",
     kGranite.IfNormTopkProb(true)
         .Shared(0)
         .Reads(ConfigField::norm_topk_prob, ConfigField::expert_selection_fn,
                ConfigField::shared_expert_combination_strategy)
         .NextNormIsLayerNormWithoutEps(),
     8, 2, "modeling_cohere2_moe.py:140", nullptr, "Command-A+, North Mini"},
    // These models' expert_selection_fn is "sigmoid".
    {"cohere2_moe_sigmoid",
     kSigmoidOfSelected.OverSum()
         .IfNormTopkProb(true)
         .InModelType()
         .Shared(0)
         .Reads(ConfigField::expert_selection_fn,
                ConfigField::shared_expert_combination_strategy)
         .NextNormIsLayerNormWithoutEps(),
     8, 2, "modeling_cohere2_moe.py:154"},
    {"dbrx",
     kMixtral.InModelType()
         .Set(&ActivateOptions::layout, GateUpLayout::kSplit)
         .Reads(ConfigField::moe_normalize_expert_weights)
         .Ignores(ConfigField::rms_norm_eps)
         .NextNormIsOther(),
     4, 1, "modeling_dbrx.py:338"},
    {"deepseek", kOlmoe.Shared(2), 64, 6, "sglang 0.5.23, deepseek.py:126",
     nullptr, "DeepSeek-MoE 16B"},
    {"deepseek_ocr2", kDeepseekV2, 64, 0, "modeling_deepseek_ocr2.py:1167"},
    {"deepseek_ocr2_text", "deepseek_ocr2"},
    // With topk_method "group_limited_greedy", the recipe also has groups.
    {"deepseek_v2", kDeepseekV2, 64, 0, "modeling_deepseek_v2.py:85"},
    {"deepseek_v3", kDeepseekV3.Shared(1), 256, 8,
     "modeling_deepseek_v3.py:120", &kDeepseekV3Layer, "DeepSeek-V3, R1, V3.1"},
    {"deepseek_v32", "deepseek_v3", "modeling_deepseek_v32.py:496",
     &kDeepseekV3Layer},
    // The model's hash layers have the same recipe, with given_ids.
    {"deepseek_v4", kDeepseekV4, 256, 6, "modeling_deepseek_v4.py:1079",
     &kDeepseekV4Layer, "DeepSeek-V4"},
    // The model has a second row of correction_bias, for images.
    {"deepseek_v41", kDeepseekV4, 384, 6,
     "its config.json; routing as deepseek_v4", nullptr, "DeepSeek-V4.1"},
    {"diffusion_gemma", "gemma4", "modeling_diffusion_gemma.py:506"},
    {"diffusion_gemma_text", "gemma4", "modeling_diffusion_gemma.py:506"},
    {"dots1", kGlm4.IfNormTopkProb(false).Shared(1), 0, 0,
     "modeling_dots1.py:271", &kDeepseekV3Layer, "dots.llm1"},
    {"dots3_note", kGlm4.Shared(1).Eps(1e-5f), 256, 8,
     "modeling_dots3_note.py:294"},
    {"dots3_note_text", "dots3_note"},
    {"dots3_note_vision_encoder", kHy3.Eps(1e-5f), 0, 2,
     "modeling_dots3_note.py:1285"},
    {"enggpt_moe", kQwen3Next, 64, 8, "mlx-lm f943de3a, enggpt_moe.py:136",
     nullptr, "EngGPT2"},
    {"ernie4_5_moe", kErnie, 64, 6, "modeling_ernie4_5_moe.py:335",
     &kErnieLayer},
    {"ernie4_5_vl_moe", "ernie4_5_moe", "modeling_ernie4_5_vl_moe.py:327"},
    {"ernie4_5_vl_moe_text", "ernie4_5_moe", "modeling_ernie4_5_vl_moe.py:327"},
    {"exaone_moe", kGlm4.Scale(2.5f).Shared(1).Eps(1e-5f), 64, 8,
     "modeling_exaone_moe.py:226", &kExaoneMoeLayer, "K-EXAONE"},
    {"flex_olmo", kOlmoe.BlockNorm().Norm(NormKind::kWeightInF32), 7, 5,
     "modeling_flex_olmo.py:273"},
    {"flint",
     kSigmoid.OverSum().IfNormTopkProb(true).Shared(1).Norm(
         NormKind::kWeightInF32),
     256, 6, "modeling_flint.py:81"},
    {"gemma4",
     kMixtral.ExpertScale()
         .Act(Activation::kGeluTanh)
         .Norm(NormKind::kWeightInF32)
         .Set(&CombineForm::num_shared_experts, 1)
         .Set(&CombineForm::has_routed_norm, true)
         .Set(&CombineForm::has_shared_norm, true)
         .BlockNorm(),
     0, 0, "modeling_gemma4.py:1302", nullptr, "Gemma 4 26B-A4B"},
    {"gemma4_text", "gemma4", nullptr, &kGemma4Layer},
    // The next layer's norm and the norm behind the block have a gate, which
    // Combine does not support. So the engine norms the block and adds the
    // residual.
    {"gigachat3_5",
     kGlm4.Scale(2.5f)
         .Shared(2)
         .Reads(ConfigField::swiglu_limit)
         .NextNormIsOther()
         .WithoutResidual(),
     64, 6, "sglang 0.5.23, gigachat35.py:407", nullptr, "GigaChat 3.5"},
    {"glm4_moe", kGlm4.Shared(1).Eps(1e-5f), 128, 8, "modeling_glm4_moe.py:268",
     &kDeepseekV3Layer, "GLM-4.5 to 4.7"},
    {"glm4_moe_lite", kGlm4.Scale(1.8f).Shared(1).Eps(1e-5f), 64, 4,
     "modeling_glm4_moe_lite.py:374", &kDeepseekV3Layer},
    {"glm4_moe_lite_plus_plus",
     kGlm4.Scale(1.8f).Shared(1).Eps(1e-5f).ZeroExperts(32), 96, 4,
     "vllm pull request 57274, glm4_moe_lite_plus_plus.py", nullptr,
     "ZEDA-GLM-4.7-Flash"},
    {"glm4v_moe", "glm4_moe", "modeling_glm4v_moe.py:270"},
    {"glm4v_moe_text", "glm4_moe", "modeling_glm4v_moe.py:270"},
    {"glm5_next",
     kGlm4.Scale(2.5f).Limit(10.0f).Shared(1).WithoutResidual().Eps(1e-5f), 288,
     8, "modeling_glm5_next.py:144", nullptr, "GLM-5.3-Flash"},
    {"glm5_next_text", "glm5_next"},
    {"glm_moe_dsa", kGlm4.Scale(2.5f).Shared(1).Eps(1e-5f), 256, 8,
     "modeling_glm_moe_dsa.py:469", &kDeepseekV3Layer, "GLM-5"},
    {"gpt_oss",
     kGranite.Oai(GateUpLayout::kInterleaved)
         .Set(&CombineForm::has_expert_biases, true)
         .Norm(NormKind::kWeightInF32)
         .Eps(1e-5f),
     128, 4, "modeling_gpt_oss.py:116", &kGptOssLayer},
    {"granitemoe", kGraniteMoe.Ignores(ConfigField::shared_intermediate_size),
     8, 2, "modeling_granitemoe.py:113", &kGraniteLayer},
    {"granitemoe_swa", kGraniteMoe.Set(&CombineForm::num_shared_experts, 0), 8,
     2, "modeling_granitemoe_swa.py:46"},
    {"granitemoehybrid", kGraniteMoe.Set(&CombineForm::num_shared_experts, 1),
     8, 2, "modeling_granitemoehybrid.py:817", &kGraniteSharedLayer,
     "Granite 4"},
    {"granitemoeshared", kGraniteMoe.Set(&CombineForm::num_shared_experts, 0),
     8, 2, "modeling_granitemoeshared.py:116", &kGraniteSharedLayer},
    // llama.cpp divides the weights by their sum, and its GELU uses tanh.
    {"grok_1", kGrok1, 8, 2, "sglang 0.5.23, grok.py:153", nullptr, "Grok-1"},
    {"grok_2", kGrok1.Set(&CombineForm::num_shared_experts, 1), 8, 2,
     "sglang 0.5.23, grok.py:615", nullptr, "Grok-2"},
    // The model also has a second set of experts. Their ids are the selected
    // ids, divided by the group size.
    {"grove_moe", kMixtral, 128, 8, "llama.cpp 75dc8f64, grovemoe.cpp:85",
     nullptr, "GroveMoE"},
    {"hunyuan", "hunyuan_large"},
    {"hunyuan_image_3_moe", "hunyuan_v1_moe",
     "vllm-omni 0.30.0, hunyuan_image3_transformer.py:1718"},
    {"hunyuan_large", kSoftmax.Shared(1).Eps(1e-5f), 16, 1,
     "mlx-lm 0.32.2, hunyuan.py:194", nullptr, "Hunyuan-Large"},
    {"hunyuan_v1_moe", kMixtral.Shared(1).Eps(1e-5f), 1, 1,
     "modeling_hunyuan_v1_moe.py:223", &kHunyuanV1Layer, "Hunyuan-A13B"},
    {"hy_v3", kHy3.Scale(2.826f).Shared(1).Eps(1e-5f), 192, 8,
     "modeling_hy_v3.py:270", &kHyV3Layer, "Hy3"},
    {"hy_v4",
     kGlm4.Scale(2.827f).Limit(10.0f).Shared(1).WithoutResidual().Eps(1e-5f),
     256, 8, "modeling_hy_v4.py:499", nullptr, "Hy4"},
    // The model has a learned global_scale, which multiplies the factor.
    {"inkling",
     kSigmoid.Bias()
         .OverSum()
         .Scale(8.0f)
         .Set(&RouteOptions::num_shared_experts, 2)
         .Set(&RouteOptions::shared_logits, true)
         .Shared(2)
         .WithoutResidual(),
     256, 6, "modeling_inkling.py:344"},
    {"inkling2",
     kHy3.Scale(8.0f)
         .FixedAct(Activation::kSitu)
         .Reads(ConfigField::mlp_gate_softcap, ConfigField::mlp_up_softcap)
         .Norm(NormKind::kWeightInF32)
         .WithoutResidual(),
     384, 8, "modeling_inkling2.py:696"},
    {"inkling2_text", "inkling2"},
    {"inkling_mm_model", "inkling"},
    {"inkling_text", "inkling"},
    {"interns2_mobius", "interns2_mobius_text"},
    // Four banks of experts serve all layers.
    {"interns2_mobius_text",
     kQwen3Next.GatedShared()
         .Reads(ConfigField::norm_topk_prob)
         .Norm(NormKind::kPlusOne),
     0, 0, "vllm 0.32.0, interns2_mobius.py:106", nullptr, "Intern-S2-Mobius"},
    {"iquest_q1", kMixtral.ScaleOfBlock(0.53881590608f), 256, 8,
     "sglang 0.5.23, iquest_q1.py:210", nullptr, "IQuest-Q1"},
    {"jamba", kSoftmax, 16, 2, "modeling_jamba.py:680"},
    {"jetmoe", kGranite.Set(&CombineForm::has_vectors, true), 8, 2,
     "modeling_jetmoe.py:160"},
    // The model's norms work on groups of columns.
    {"k2_horizon",
     kMinimaxM2.IfNormTopkProb(true)
         .Scale(1.0f)
         .Shared(0)
         .Needs(ConfigField::use_expert_bias)
         .NextNormIsOther(),
     0, 0, "vllm 0.32.0, k2_horizon.py:520", nullptr, "K2 Horizon"},
    {"kimi_k2", kGlm4.Scale(2.827f).Shared(1).Eps(1e-5f), 384, 8,
     "its config.json; routing as deepseek_v3", &kDeepseekV3Layer,
     "Kimi K2 to K2.6"},
    {"kimi_k25", "kimi_k2"},
    {"kimi_k3",
     kGlm4.Scale(1.0f)
         .FixedAct(Activation::kSitu)
         .Reads(ConfigField::mlp_gate_softcap, ConfigField::mlp_up_softcap)
         .Shared(2)
         .WithoutResidual()
         .Eps(1e-5f),
     896, 16, "mlx-vlm 0.7.10, kimi_k3/language.py:620", nullptr, "Kimi K3"},
    // Kimi K3 gives this name to its text model, with SiTU as activation.
    {"kimi_linear",
     kGlm4.Scale(2.446f)
         .Reads(ConfigField::mlp_gate_softcap, ConfigField::mlp_up_softcap)
         .Shared(1)
         .Eps(1e-5f),
     256, 8, "modeling_kimi_linear.py:718", &kKimiLinearLayer},
    {"kolibri1",
     kSigmoidOfSelected.Bias(BiasPlace::kLogit)
         .OverSum()
         .IfNormTopkProb(false)
         .Shared(1)
         .BlockNorm(),
     384, 6, "modeling_kolibri1.py:265"},
    // Configurations may have a logit_softcap.
    {"laguna",
     kMinimaxM2.ScaleOfSum(1.0f)
         .Reads(ConfigField::moe_router_logit_softcapping,
                ConfigField::moe_apply_router_weight_on_input)
         .Shared(1),
     256, 8, "modeling_laguna.py:147"},
    {"lfm2_moe",
     kSigmoid.Bias()
         .OverSumPlus(1e-6f)
         .IfNormTopkProb(true)
         .Scale(1.0f)
         .InModelType()
         .Needs(ConfigField::use_expert_bias)
         .FixedAct(Activation::kSilu)
         .Eps(1e-5f),
     32, 4, "modeling_lfm2_moe.py:171", nullptr, "LFM2"},
    {"llada", "lladamoe"},
    {"llada2_moe", "bailing_moe_v2",
     "mlx-vlm 0.7.10, llada2_moe/language.py:92"},
    {"lladamoe", kSoftmax.Eps(1e-5f), 64, 8,
     "llama.cpp 82234e08, llada-moe.cpp:126", nullptr, "LLaDA-MoE"},
    // The model's weights multiply the experts' inputs.
    {"llama4",
     kSigmoidOfSelected.Set(&CombineForm::has_weights_on_input, true)
         .Set(&ActivateOptions::row_scale_place, ActivatePlace::kBefore)
         .Shared(1)
         .Eps(1e-5f),
     16, 1, "modeling_llama4.py:140", nullptr, "Llama 4 Scout, Maverick"},
    {"llama4_text", "llama4", nullptr, &kLlama4Layer},
    {"longcat_flash",
     kSoftmax.Bias()
         .Scale(6.0f)
         .ZeroExperts(256)
         .Set(&CombineForm::has_identity_experts, true)
         .WithoutResidual()
         .Eps(1e-5f),
     768, 12, "modeling_longcat_flash.py:130", &kLongcatLayer},
    // LongCat-Flash-Lite is commonly published with these sizes.
    {"longcat_flash_ngram",
     kSoftmax.Bias()
         .OverSumPlus(1e-20f)
         .IfNormTopkProb(false)
         .Reads(ConfigField::norm_topk_prob)
         .Scale(6.0f)
         .ZeroExperts(128)
         .Set(&CombineForm::has_identity_experts, true)
         .WithoutResidual()
         .Eps(1e-5f),
     384, 12, "mlx-lm 0.32.2, longcat_flash.py:212", nullptr,
     "LongCat-Flash-Lite"},
    {"longcat_flash_sparse", "longcat_flash_ngram",
     "mlx-vlm 0.7.10, longcat_flash_sparse/language.py:392"},
    // Each of 12 heads of a token is a row of logits, with its own bias.
    {"magi2",
     kSigmoid.Bias()
         .Over(Divisor::kMaxOfSumAndEps, 1e-12f)
         .Scale(4.9f)
         .Oai(GateUpLayout::kSplit)
         .WithoutResidual(),
     256, 6, "vllm-omni 0.30.0, magi2/mh_moe.py:42", nullptr, "MAGI-2"},
    // Three layers share one set of experts.
    {"megrez_moe", kGlm4.ScaleOfSum(1.0f).Shared(4), 64, 6,
     "Infinigence's plug-in for vllm, megrez_moe.py, MegrezMoeMoE", nullptr,
     "Megrez2"},
    {"mellum", kQwen3Next, 64, 8, "modeling_mellum.py:312", &kMellumLayer,
     "Mellum2"},
    {"mimo_v2", kMimoV2, 384, 8, "vllm 0.32.0, mimo_v2.py:172", nullptr,
     "MiMo-V2"},
    {"mimo_v2_flash", kMimoV2, 256, 8, "modeling_mimo_v2_flash.py:129",
     &kMimoV2Layer},
    // The engine sets scales.block to scale_depth / sqrt(layers).
    {"minicpm", kMixtral.Eps(1e-5f), 8, 2, "vllm 0.32.0, minicpm.py:180",
     nullptr, "MiniCPM-MoE"},
    {"minicpm5_moe", kGlm4.Scale(3.66f).Shared(1), 160, 16,
     "InfiniLM, grouped_sigmoid_topk", nullptr, "MiniCPM5-MoE"},
    {"minimax",
     kMixtral.Needs(ConfigField::mlp_alpha_factor, ConfigField::mlp_beta_factor)
         .Eps(1e-5f),
     8, 2, "modeling_minimax.py:451", nullptr, "MiniMax-Text-01, M1"},
    {"minimax_m2", kMinimaxM2, 256, 8, "modeling_minimax_m2.py:45",
     &kMinimaxM2Layer},
    {"minimax_m3", "minimax_m3_vl"},
    {"minimax_m3_vl",
     kMinimaxM2.Oai(GateUpLayout::kConcatenated)
         .ScaleOfSum(2.0f)
         .Norm(NormKind::kPlusOne)
         .Shared(1),
     128, 4, "modeling_minimax_m3_vl.py:221", nullptr, "MiniMax-M3"},
    {"minimax_m3_vl_text", "minimax_m3_vl"},
    {"mistral4", kMistralLarge4.IfNormTopkProb(true).InModelType(), 128, 4,
     "modeling_mistral4.py:133", nullptr, "Mistral Small 4"},
    {"mistral_large4", kMistralLarge4.Eps(1e-5f), 128, 4,
     "modeling_mistral_large4.py:512"},
    {"mistral_large4_text", "mistral_large4"},
    {"mixtral", kMixtral.Eps(1e-5f), 8, 2, "modeling_mixtral.py:95",
     &kMixtralLayer},
    // The activation is gelu(gate) * (up + 1): the 1 is a part of up's bias.
    {"moondream3_text",
     kGranite.Act(Activation::kGelu)
         .Set(&CombineForm::has_expert_biases, true)
         .Ignores(ConfigField::rms_norm_eps)
         .NextNormIsOther(),
     64, 8, "vllm 0.32.0, moondream3.py:498", nullptr, "Moondream 3"},
    {"muse_spark",
     kSigmoid.Set(&RouteOptions::logit_scale, 0.1767766952966369f)
         .Bias()
         .OverSumPlus(1e-15f)
         .Scale(1.0f)
         .Needs(ConfigField::output_multiplier)
         .Reads(ConfigField::post_norm_eps)
         .BlockNorm()
         .Set(&CombineOptions::norm, NormKind::kPlusOne)
         .Set(&CombineOptions::eps, 1e-5f)
         .Set(&CombineOptions::block_eps, 1e-8f)
         .Set(&CombineOptions::block_norm, NormKind::kPlusOneFirst)
         .Set(&CombineForm::has_vectors, true)
         .WithoutResidual(),
     256, 8, "modeling_muse_spark.py:181"},
    {"muse_spark_text", "muse_spark"},
    {"nemotron_h",
     kGlm4.Act(Activation::kRelu2)
         .Set(&ActivateOptions::layout, GateUpLayout::kUngated)
         .OneShared()
         .Norm(NormKind::kWeightInF32)
         .Eps(1e-5f),
     8, 2, "modeling_nemotron_h.py:757", nullptr,
     "Nemotron 3 Nano, Super, Ultra"},
    {"nomic_bert",
     kSoftmax.Act(Activation::kGelu)
         .Set(&ActivateOptions::layout, GateUpLayout::kUngated)
         .Set(&CombineForm::has_vectors, true)
         .Reads(ConfigField::rms_norm_eps)
         .NextNormIsOther(),
     8, 2, "vllm 0.32.0, bert_with_rope.py:328", nullptr,
     "nomic-embed-text-v2-moe"},
    {"olmoe", kOlmoe.Eps(1e-5f), 64, 8, "modeling_olmoe.py:317", &kOlmoeLayer,
     "OLMoE"},
    {"openai_privacy_filter",
     kGranite.DividedByTopK()
         .Oai(GateUpLayout::kConcatenated)
         .Set(&CombineForm::has_expert_biases, true)
         .Norm(NormKind::kWeightInF32)
         .Eps(1e-5f),
     128, 4, "modeling_openai_privacy_filter.py:301"},
    // The model's streams are mixed like the streams of hyper-connections.
    {"openpangu_v2",
     kHy3.IfNormTopkProb(true).Shared(1).BlockNorm().WithoutResidual(), 0, 0,
     "ik_llama.cpp of August 2026, build_openpangu.cpp:1224", nullptr,
     "openPangu 2"},
    {"pangu_ultra_moe",
     kSigmoid.OverSum().IfNormTopkProb(true).ScaleOfSum(1.0f).Shared(1), 0, 0,
     "vllm 0.32.0, openpangu.py:194", nullptr, "openPangu-Ultra-MoE"},
    // The loader subtracts the mean from the correction bias.
    {"param2moe",
     kParam2Moe.Scale(1.0f).Reads(ConfigField::routed_scaling_factor), 0, 0,
     "vllm 0.32.0, param2moe.py:331", nullptr, "Param-2"},
    {"phimoe",
     Recipe(Score::kSparsemixer)
         .InModelType()
         .Needs(ConfigField::router_jitter_noise)
         .Eps(1e-5f)
         .NextNormIsOther(),
     16, 2, "modeling_phimoe.py:339", nullptr, "Phi-3.5-MoE"},
    {"qwen2_moe", kOlmoe.GatedShared(), 60, 4, "modeling_qwen2_moe.py:310",
     &kQwen2MoeLayer, "Qwen1.5-MoE, Qwen2"},
    {"qwen3_5_moe", kMixtral.GatedShared().Norm(NormKind::kPlusOne), 256, 8,
     "modeling_qwen3_5_moe.py:872", nullptr, "Qwen3.5, 3.6"},
    {"qwen3_5_moe_text", "qwen3_5_moe", nullptr, &kQwen2MoeLayer},
    {"qwen3_moe", kOlmoe, 128, 8, "modeling_qwen3_moe.py:248", &kQwen3MoeLayer,
     "Qwen3, Coder"},
    {"qwen3_moe_plus_plus", kOlmoe.ZeroExperts(64), 192, 8,
     "vllm-ascend pull request 14905, qwen3_moe_plus_plus.py", nullptr,
     "ZEDA-Qwen3"},
    {"qwen3_next", kQwen3Next.GatedShared().Norm(NormKind::kPlusOne), 512, 10,
     "modeling_qwen3_next.py:828", &kQwen2MoeLayer},
    {"qwen3_next_plus_plus",
     kQwen3Next.GatedShared().Norm(NormKind::kPlusOne).ZeroExperts(64), 576, 10,
     "ZEDA's sglang, qwen3_next_plus_plus.py"},
    {"qwen3_omni_moe", kQwen3Next, 128, 8, "modeling_qwen3_omni_moe.py:1346"},
    {"qwen3_omni_moe_talker_text", kOlmoe.GatedShared(), 128, 8,
     "modeling_qwen3_omni_moe.py:2820"},
    {"qwen3_omni_moe_text", "qwen3_omni_moe"},
    {"qwen3_vl_moe", kMixtral, 60, 4, "modeling_qwen3_vl_moe.py:124"},
    {"qwen3_vl_moe_text", "qwen3_vl_moe"},
    {"qwen4_exp",
     kQwen3Next.GatedShared().Norm(NormKind::kPlusOne).WithoutResidual(), 512,
     10, "modeling_qwen4_exp.py:954", nullptr, "Qwen3.8-Flash-Next"},
    {"qwen4_exp_text", "qwen4_exp"},
    {"rnd1", kMixtral, 128, 8, "llama.cpp 15d938c5, rnd1.cpp:87", nullptr,
     "RND1"},
    {"sarvam_mla", "sarvam_moe", "vllm 0.32.0, sarvam.py:350"},
    // The loader subtracts the mean from the correction bias.
    {"sarvam_moe", kParam2Moe, 0, 0, "vllm 0.32.0, sarvam.py:350", nullptr,
     "Sarvam"},
    {"sdar_moe", "qwen3_moe", "sglang 0.5.23, sdar_moe.py:91"},
    // The router reads the layer's input, before attention.
    {"smallthinker",
     kSigmoidOfSelected.OverSum()
         .Act(Activation::kRelu)
         .Reads(ConfigField::moe_primary_router_apply_softmax),
     32, 4, "llama.cpp 0a5cf2dc, smallthinker.cpp:88", nullptr, "SmallThinker"},
    {"solar_open", "glm4_moe", "modeling_solar_open.py:101", &kDeepseekV3Layer},
    {"step3_text", kOlmoe.Set(&CombineForm::num_shared_experts, 1).Eps(1e-5f),
     48, 3, "vllm 0.32.0, step3_text.py:72", nullptr, "Step-3"},
    {"step3_vl", "step3_text"},
    {"step3p5", "step3p7"},
    {"step3p7",
     kMinimaxM2.ScaleOfSum(1.0f)
         .Set(&ActivateOptions::limit_place, ActivatePlace::kAfter)
         .Norm(NormKind::kPlusOne)
         .Shared(1)
         .Eps(1e-5f),
     288, 8, "modeling_step3p7.py:582", nullptr, "Step-3.5, 3.7-Flash"},
    {"unlimited_ocr", kDeepseekV2, 64, 6, "modeling_unlimited_ocr.py:1147"},
    {"unlimited_ocr_text", "unlimited_ocr"},
    {"xverse", kOlmoe.Reads(ConfigField::norm_topk_prob).Shared(2), 64, 6,
     "sglang 0.5.23, xverse_moe.py:135", nullptr, "XVERSE-MoE"},
    // The model's last expert is a skip expert.
    {"zaya",
     kSoftmax.Bias()
         .InModelType()
         .Set(&RouteOptions::num_zero_experts, 1)
         .Set(&CombineForm::has_vectors, true)
         .Eps(1e-5f),
     17, 1, "modeling_zaya.py:506", nullptr, "ZAYA1"},
};

}  // namespace switchyard::families

#endif  // SWITCHYARD_SRC_FAMILIES_H_
