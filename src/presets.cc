// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/presets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace switchyard {
namespace {

// Options said one after the other: what a family computes, in its order.
struct Recipe {
  Preset preset;

  constexpr explicit Recipe(Score score) {
    preset.route.score = score;
    preset.route.renormalize = false;
  }
  template <class T>
  constexpr Recipe With(T RouteOptions::*option,
                        std::common_type_t<T> value) const {
    Recipe recipe = *this;
    recipe.preset.route.*option = value;
    return recipe;
  }
  constexpr Recipe That(bool Preset::*is) const {
    Recipe recipe = *this;
    recipe.preset.*is = true;
    return recipe;
  }

  constexpr Recipe Bias(BiasPlace place = BiasPlace::kScore) const {
    return That(&Preset::correction_bias)
        .With(&RouteOptions::bias_place, place);
  }
  constexpr Recipe Groups(size_t groups, size_t kept) const {
    return With(&RouteOptions::num_expert_group, groups)
        .With(&RouteOptions::topk_group, kept);
  }
  // Of a group, if there are any: how many make its score; and that the keys of
  // the others become 0.
  constexpr Recipe GroupScore(size_t of) const {
    return With(&RouteOptions::group_score_of, of)
        .With(&RouteOptions::dropped_key_is_zero, true);
  }
  constexpr Recipe Weight(WeightOf of) const {
    return With(&RouteOptions::weight_of, of);
  }
  constexpr Recipe Over(Divisor divisor, float eps = 0.0f) const {
    return With(&RouteOptions::divisor, divisor)
        .With(&RouteOptions::eps, eps)
        .With(&RouteOptions::renormalize, true);
  }
  constexpr Recipe OverSum() const { return Over(Divisor::kSum); }
  constexpr Recipe OverSumPlus(float eps) const {
    return Over(Divisor::kSumPlusEps, eps);
  }
  // It does so if norm_topk_prob, which is this by default.
  constexpr Recipe IfNormTopkProb(bool by_default) const {
    return That(&Preset::norm_topk_prob)
        .With(&RouteOptions::renormalize, by_default);
  }
  constexpr Recipe Scale(float factor) const {
    return With(&RouteOptions::routed_scaling_factor, factor);
  }
  constexpr Recipe InModelType() const { return That(&Preset::in_model_type); }
};

struct Line : Preset {
  constexpr Line(const char* family_in, const Recipe& recipe,
                 size_t num_experts_in, size_t top_k_in, const char* source_in)
      : Preset(recipe.preset) {
    family = family_in;
    num_experts = num_experts_in;
    top_k = top_k_in;
    source = source_in;
  }
  // An exact copy. Without a source it is another name of the same code.
  constexpr Line(const char* family_in, const char* same_as_in,
                 const char* source_in = nullptr) {
    family = family_in;
    same_as = same_as_in;
    source = source_in;
  }
};

// Recipes of more than one family, by the first or the best known of them.
constexpr Recipe kSoftmax(Score::kSoftmax);
constexpr Recipe kSigmoid(Score::kSigmoid);
constexpr Recipe kMixtral = kSoftmax.OverSum();
constexpr Recipe kOlmoe = kSoftmax.OverSum().IfNormTopkProb(false);
constexpr Recipe kQwen3Next = kOlmoe.IfNormTopkProb(true);
constexpr Recipe kGranite =
    Recipe(Score::kRaw).Weight(WeightOf::kSoftmaxOfSelected);
constexpr Recipe kSigmoidOfSelected =
    Recipe(Score::kRaw).Weight(WeightOf::kSigmoidOfSelected);
constexpr Recipe kDeepseekV2 = kSoftmax.GroupScore(1);
constexpr Recipe kDeepseekV3 =
    kSigmoid.Bias().Groups(8, 4).OverSumPlus(1e-20f).IfNormTopkProb(true).Scale(
        2.5f);
constexpr Recipe kGlm4 = kDeepseekV3.Groups(1, 1).Scale(1.0f);
constexpr Recipe kHy3 = kSigmoid.Bias().OverSumPlus(1e-20f);
constexpr Recipe kMinimaxM2 = kSigmoid.Bias().OverSum();
constexpr Recipe kErnie =
    kSoftmax.Bias().Over(Divisor::kMaxOfSumAndEps, 1e-12f);
constexpr Recipe kDeepseekV4 =
    Recipe(Score::kSqrtSoftplus).Bias().OverSumPlus(1e-20f).InModelType();
constexpr Recipe kMistralLarge4 =
    kSoftmax.Groups(1, 1).GroupScore(2).OverSumPlus(1e-20f);

// A line each, in alphabetical order. Where a family multiplies the sum of the
// routed experts by its factor, and not their weights, there is none here.
constexpr Line kLines[] = {
    {"afmoe", kHy3, 64, 6, "modeling_afmoe.py:127"},
    {"aria", kGranite, 8, 2, "modeling_aria.py:250"},
    {"aria_text", "aria"},
    {"axk1", kDeepseekV3, 192, 8, "modeling_axk1.py:134"},
    {"axk2", kGlm4.Groups(0, 0).GroupScore(2).Scale(2.5f), 128, 8,
     "modeling_axk2.py:280"},
    {"bailing_hybrid", kDeepseekV3, 512, 8, "modeling_bailing_hybrid.py:767"},
    {"bailing_moe_v2", kDeepseekV3, 256, 8, "commonly published, not checked"},
    {"beam", kDeepseekV3.Scale(1.0f), 256, 8, "modeling_beam.py:337"},
    {"cohere2_moe", kGranite, 8, 2, "modeling_cohere2_moe.py:140"},
    // With expert_selection_fn "sigmoid".
    {"cohere2_moe_sigmoid",
     kSigmoidOfSelected.OverSum().IfNormTopkProb(true).InModelType(), 8, 2,
     "modeling_cohere2_moe.py:154"},
    {"dbrx", kMixtral.InModelType(), 4, 1, "modeling_dbrx.py:338"},
    {"deepseek_ocr2", kDeepseekV2, 64, 0, "modeling_deepseek_ocr2.py:1167"},
    {"deepseek_ocr2_text", "deepseek_ocr2"},
    // topk_method "group_limited_greedy" is the same with groups.
    {"deepseek_v2", kDeepseekV2, 64, 0, "modeling_deepseek_v2.py:85"},
    {"deepseek_v3", kDeepseekV3, 256, 8, "modeling_deepseek_v3.py:120"},
    {"deepseek_v32", "deepseek_v3", "modeling_deepseek_v32.py:496"},
    // The hash layers are the same with given_ids.
    {"deepseek_v4", kDeepseekV4.Scale(1.5f), 256, 6,
     "modeling_deepseek_v4.py:1079"},
    // With a second row of correction_bias for images.
    {"deepseek_v41", kDeepseekV4.Scale(1.5f), 384, 6,
     "its config.json; routing as deepseek_v4"},
    {"diffusion_gemma", "gemma4", "modeling_diffusion_gemma.py:506"},
    {"diffusion_gemma_text", "gemma4", "modeling_diffusion_gemma.py:506"},
    {"dots1", kGlm4.IfNormTopkProb(false), 0, 0, "modeling_dots1.py:271"},
    {"dots3_note", kGlm4, 256, 8, "modeling_dots3_note.py:294"},
    {"dots3_note_text", "dots3_note"},
    {"dots3_note_vision_encoder", kHy3, 0, 2, "modeling_dots3_note.py:1285"},
    {"ernie4_5_moe", kErnie, 64, 6, "modeling_ernie4_5_moe.py:335"},
    {"ernie4_5_vl_moe", "ernie4_5_moe", "modeling_ernie4_5_vl_moe.py:327"},
    {"ernie4_5_vl_moe_text", "ernie4_5_moe", "modeling_ernie4_5_vl_moe.py:327"},
    {"exaone_moe", kGlm4.Scale(2.5f), 64, 8, "modeling_exaone_moe.py:226"},
    {"flex_olmo", kOlmoe, 7, 5, "modeling_flex_olmo.py:273"},
    {"flint", kSigmoid.OverSum().IfNormTopkProb(true), 256, 6,
     "modeling_flint.py:81"},
    {"gemma4", kMixtral.That(&Preset::expert_scale), 0, 0,
     "modeling_gemma4.py:1302"},
    {"gemma4_text", "gemma4"},
    {"glm4_moe", kGlm4, 128, 8, "modeling_glm4_moe.py:268"},
    {"glm4_moe_lite", kGlm4.Scale(1.8f), 64, 4,
     "modeling_glm4_moe_lite.py:374"},
    {"glm4v_moe", "glm4_moe", "modeling_glm4v_moe.py:270"},
    {"glm4v_moe_text", "glm4_moe", "modeling_glm4v_moe.py:270"},
    {"glm5_next", kGlm4.Scale(2.5f), 288, 8, "modeling_glm5_next.py:144"},
    {"glm5_next_text", "glm5_next"},
    {"glm_moe_dsa", kGlm4.Scale(2.5f), 256, 8, "modeling_glm_moe_dsa.py:469"},
    {"gpt_oss", kGranite, 128, 4, "modeling_gpt_oss.py:116"},
    {"granitemoe", kGranite, 8, 2, "modeling_granitemoe.py:113"},
    {"granitemoe_swa", "granitemoe", "modeling_granitemoe_swa.py:46"},
    {"granitemoehybrid", "granitemoe", "modeling_granitemoehybrid.py:817"},
    {"granitemoeshared", "granitemoe", "modeling_granitemoeshared.py:116"},
    {"grok_1", kMixtral.With(&RouteOptions::logit_softcap, 30.0f), 8, 2,
     "commonly published, not checked; renormalised as in llama.cpp"},
    {"grok_2", "grok_1"},
    {"hunyuan_large", kSoftmax, 16, 1, "commonly published, not checked"},
    {"hunyuan_v1_moe", kMixtral, 1, 1, "modeling_hunyuan_v1_moe.py:223"},
    {"hy_v3", kHy3.Scale(2.826f), 192, 8, "modeling_hy_v3.py:270"},
    {"hy_v4", kGlm4.Scale(2.827f), 256, 8, "modeling_hy_v4.py:499"},
    // Times its learned global_scale.
    {"inkling",
     kSigmoid.Bias()
         .OverSum()
         .Scale(8.0f)
         .With(&RouteOptions::num_shared_experts, 2)
         .With(&RouteOptions::shared_logits, true),
     256, 6, "modeling_inkling.py:344"},
    {"inkling2", kHy3.Scale(8.0f), 384, 8, "modeling_inkling2.py:696"},
    {"inkling2_text", "inkling2"},
    {"inkling_mm_model", "inkling"},
    {"inkling_text", "inkling"},
    {"jamba", kSoftmax, 16, 2, "modeling_jamba.py:680"},
    {"jetmoe", kGranite, 8, 2, "modeling_jetmoe.py:160"},
    {"kimi_k2", kGlm4.Scale(2.827f), 384, 8,
     "its config.json; routing as deepseek_v3"},
    {"kimi_k25", "kimi_k2"},
    // 1.0 in one fixture: what the checkpoint says goes.
    {"kimi_k3", kGlm4.Scale(2.827f), 896, 16,
     "its config.json; factor of a kernel's test"},
    {"kimi_linear", kGlm4.Scale(2.446f), 256, 8, "modeling_kimi_linear.py:718"},
    {"kolibri1",
     kSigmoidOfSelected.Bias(BiasPlace::kLogit).OverSum().IfNormTopkProb(false),
     384, 6, "modeling_kolibri1.py:265"},
    // Has an optional logit_softcap.
    {"laguna", kMinimaxM2, 256, 8, "modeling_laguna.py:147"},
    {"lfm2_moe",
     kSigmoid.Bias().OverSumPlus(1e-6f).IfNormTopkProb(true).InModelType(), 32,
     4, "modeling_lfm2_moe.py:171"},
    // The weight multiplies the expert's input.
    {"llama4", kSigmoidOfSelected, 16, 1, "modeling_llama4.py:140"},
    {"llama4_text", "llama4"},
    {"longcat_flash",
     kSoftmax.Bias().Scale(6.0f).With(&RouteOptions::num_zero_experts, 256),
     768, 12, "modeling_longcat_flash.py:130"},
    {"mellum", kQwen3Next, 64, 8, "modeling_mellum.py:312"},
    {"mimo_v2", kGlm4, 384, 8, "its config.json; sigmoid noaux_tc"},
    {"mimo_v2_flash", kGlm4, 256, 8, "modeling_mimo_v2_flash.py:129"},
    {"minicpm5_moe", kGlm4.Scale(3.66f), 160, 16,
     "its config.json; sigmoid taken as deepseek_v3's, not checked"},
    {"minimax", "mixtral", "modeling_minimax.py:451"},
    {"minimax_m2", kMinimaxM2, 256, 8, "modeling_minimax_m2.py:45"},
    {"minimax_m3_vl", kMinimaxM2, 128, 4, "modeling_minimax_m3_vl.py:221"},
    {"minimax_m3_vl_text", "minimax_m3_vl"},
    {"mistral4", kMistralLarge4.IfNormTopkProb(true).InModelType(), 128, 4,
     "modeling_mistral4.py:133"},
    {"mistral_large4", kMistralLarge4, 128, 4,
     "modeling_mistral_large4.py:512"},
    {"mistral_large4_text", "mistral_large4"},
    {"mixtral", kMixtral, 8, 2, "modeling_mixtral.py:95"},
    {"muse_spark",
     kSigmoid.With(&RouteOptions::logit_scale, 0.1767766952966369f)
         .Bias()
         .OverSumPlus(1e-15f),
     256, 8, "modeling_muse_spark.py:181"},
    {"muse_spark_text", "muse_spark"},
    {"nemotron_h", kGlm4, 8, 2, "modeling_nemotron_h.py:757"},
    {"olmoe", kOlmoe, 64, 8, "modeling_olmoe.py:317"},
    // 1 / top_k, by which its block multiplies the sum again.
    {"openai_privacy_filter", kGranite.Scale(0.25f), 128, 4,
     "modeling_openai_privacy_filter.py:301"},
    {"phimoe", Recipe(Score::kSparsemixer).InModelType(), 16, 2,
     "modeling_phimoe.py:339"},
    {"qwen2_moe", kOlmoe, 60, 4, "modeling_qwen2_moe.py:310"},
    {"qwen3_5_moe", kMixtral, 256, 8, "modeling_qwen3_5_moe.py:872"},
    {"qwen3_5_moe_text", "qwen3_5_moe"},
    {"qwen3_moe", kOlmoe, 128, 8, "modeling_qwen3_moe.py:248"},
    {"qwen3_next", kQwen3Next, 512, 10, "modeling_qwen3_next.py:828"},
    {"qwen3_omni_moe", kQwen3Next, 128, 8, "modeling_qwen3_omni_moe.py:1346"},
    {"qwen3_omni_moe_talker_text", "qwen3_moe",
     "modeling_qwen3_omni_moe.py:2820"},
    {"qwen3_omni_moe_text", "qwen3_omni_moe"},
    {"qwen3_vl_moe", kMixtral, 60, 4, "modeling_qwen3_vl_moe.py:124"},
    {"qwen3_vl_moe_text", "qwen3_vl_moe"},
    {"qwen4_exp", "qwen3_next", "modeling_qwen4_exp.py:954"},
    {"qwen4_exp_text", "qwen3_next", "modeling_qwen4_exp.py:954"},
    {"solar_open", "glm4_moe", "modeling_solar_open.py:101"},
    {"step3p5", "step3p7"},
    {"step3p7", kMinimaxM2, 288, 8, "modeling_step3p7.py:582"},
    {"unlimited_ocr", kDeepseekV2, 64, 6, "modeling_unlimited_ocr.py:1147"},
    {"unlimited_ocr_text", "unlimited_ocr"},
    // Its skip expert is the last.
    {"zaya",
     kSoftmax.Bias().InModelType().With(&RouteOptions::num_zero_experts, 1), 17,
     1, "modeling_zaya.py:506"},
};

constexpr int Compare(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}

// A copy's options are those of the line that it names; not to have that line,
// or not to be in order, does not compile.
constexpr auto Resolved() {
  std::array<Preset, std::size(kLines)> presets = {};
  for (size_t i = 0; i < presets.size(); ++i) {
    const Preset& line = kLines[i];
    const Preset* original = &line;
    for (const Line& other : kLines) {
      if (line.same_as == nullptr) break;
      if (other.same_as == nullptr &&
          Compare(other.family, line.same_as) == 0) {
        original = &other;
      }
    }
    if (original->same_as != nullptr) throw "a copy of what is not there";
    if (i > 0 && Compare(kLines[i - 1].family, line.family) >= 0) {
      throw "not in alphabetical order";
    }
    presets[i] = *original;
    presets[i].family = line.family;
    presets[i].same_as = line.same_as;
    if (line.source != nullptr) presets[i].source = line.source;
  }
  return presets;
}
constexpr auto kPresets = Resolved();

}  // namespace

Span<const Preset> Presets() noexcept { return kPresets; }

Status FindPreset(const char* family, Preset* preset) noexcept {
  if (family == nullptr) {
    return {StatusCode::kInvalidArgument, "FindPreset: family: is null"};
  }
  if (preset == nullptr) {
    return {StatusCode::kInvalidArgument, "FindPreset: preset: is null"};
  }
  const auto found = std::lower_bound(kPresets.begin(), kPresets.end(), family,
                                      [](const Preset& p, const char* name) {
                                        return Compare(p.family, name) < 0;
                                      });
  if (found == kPresets.end() || Compare(found->family, family) != 0) {
    return {StatusCode::kInvalidArgument,
            "FindPreset: family: is none of Presets()"};
  }
  *preset = *found;
  return {};
}

}  // namespace switchyard
