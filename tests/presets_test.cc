// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/presets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/families.h"
#include "src/preset_fields.h"
#include "testing/inputs.h"
#include "tests/call_errors.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

using families::Family;
using families::kFamilies;
using internal::ConfigField;

constexpr size_t kTokens = 5;

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
  std::vector<float> identity;
  bool operator==(const Routed& other) const {
    return ids == other.ids && weights == other.weights &&
           identity == other.identity;
  }
};

// Returns a configuration with the preset's defaults.
ModelConfig ConfigOf(const Preset& preset) {
  const RouteOptions& route = preset.route;
  const CombineOptions& combine = preset.combine;
  ModelConfig config;
  config.num_experts = (preset.num_experts == 0 ? 64 : preset.num_experts) -
                       route.num_zero_experts;
  config.num_experts_per_tok = preset.top_k == 0 ? 6 : preset.top_k;
  config.norm_topk_prob = route.renormalize;
  // One of these two factors is 1.
  config.routed_scaling_factor =
      route.routed_scaling_factor * combine.scales.routed;
  if (route.num_expert_group != 0) {
    config.n_group = route.num_expert_group;
    config.topk_group = route.topk_group;
  }
  config.topk_method = preset.correction_bias ? "noaux_tc" : "greedy";
  config.use_expert_bias = preset.correction_bias;
  config.moe_normalize_expert_weights = 1.0f;
  config.moe_norm_min = route.eps;
  config.output_multiplier = route.logit_scale;
  config.moe_router_logit_softcapping = route.logit_softcap;
  config.router_jitter_noise = route.jitter_eps;
  config.zero_expert_num = route.num_zero_experts;
  config.n_shared_experts = preset.form.num_shared_experts;
  config.shared_intermediate_size = preset.form.num_shared_experts;
  config.shared_expert_combination_strategy = "sum";
  config.moe_apply_router_weight_on_input = false;
  const Activation activation = preset.activate.activation;
  config.hidden_act = activation == Activation::kGelu ? "gelu"
                      : activation == Activation::kGeluTanh
                          ? "gelu_pytorch_tanh"
                      : activation == Activation::kRelu  ? "relu"
                      : activation == Activation::kRelu2 ? "relu2"
                                                         : "silu";
  config.swiglu_limit = preset.activate.limit;
  config.swiglu_alpha = preset.activate.alpha;
  config.mlp_gate_softcap = preset.activate.beta;
  config.mlp_up_softcap = preset.activate.linear_beta;
  // By default, Cohere2's class has no rms_norm_eps, and its norm is a
  // LayerNorm.
  if (std::strncmp(preset.family, "cohere2", 7) != 0) {
    config.rms_norm_eps = combine.eps;
  }
  config.post_norm_eps = combine.block_eps;
  config.residual_multiplier = combine.scales.block;
  config.mlp_alpha_factor = combine.scales.residual;
  config.mlp_beta_factor = combine.scales.block;
  config.moe_primary_router_apply_softmax = false;
  return config;
}

Preset Configured(Preset preset) {
  EXPECT_OK(ApplyConfig(ConfigOf(preset), &preset)) << preset.family;
  return preset;
}

// A call of RouteTopK on kTokens random rows of logits, with the preset's
// biases or scales and its default configuration.
class PresetCall {
 public:
  explicit PresetCall(const Preset& preset)
      : PresetCall(Configured(preset), 0) {}
  PresetCall(const Preset& preset, int)
      : experts(preset.num_experts),
        top_k(preset.top_k),
        columns(experts + (preset.route.shared_logits
                               ? preset.route.num_shared_experts
                               : 0)),
        slots(top_k + preset.route.num_shared_experts),
        preset_(preset) {
    Random random(7);
    logits = random.Uniforms(kTokens * columns, -4.0f, 4.0f);
    bias = random.Uniforms(experts, -0.01f, 0.01f);
    scale = random.Uniforms(experts, 0.5f, 1.5f);
  }

  Routed Run() const {
    Routed routed = {std::vector<int32_t>(kTokens * slots),
                     std::vector<float>(kTokens * slots),
                     std::vector<float>(kTokens)};
    RouteInputs in = {{logits.data(), kTokens, columns}};
    if (preset_.correction_bias) in.correction_bias = bias;
    if (preset_.expert_scale) in.expert_scale = scale;
    RouteOutputs out = {{routed.ids.data(), kTokens, slots},
                        {routed.weights.data(), kTokens, slots}};
    if (preset_.route.num_zero_experts > 0) {
      out.identity_weights = routed.identity;
    }
    EXPECT_OK(RouteTopK(in, out, preset_.route)) << preset_.family;
    return routed;
  }

  const size_t experts, top_k, columns, slots;
  std::vector<float> logits, bias, scale;

 private:
  const Preset preset_;
};

Preset Find(const std::string& family) {
  Preset preset;
  EXPECT_OK(FindPreset(family.c_str(), &preset)) << family;
  return preset;
}

TEST(Presets, AreInOrderAndFoundByName) {
  const Preset* last = nullptr;
  for (const Preset& preset : Presets()) {
    ASSERT_NE(preset.family, nullptr);
    if (last != nullptr) {
      EXPECT_LT(std::strcmp(last->family, preset.family), 0) << preset.family;
    }
    last = &preset;
    ASSERT_NE(preset.source, nullptr) << preset.family;
    EXPECT_GT(std::strlen(preset.source), 10u) << preset.family;
    EXPECT_STREQ(Find(preset.family).family, preset.family);
  }
  // transformers has 72 families. Three of them have no preset; the other 69
  // have at least one each, and some have several.
  EXPECT_GT(std::count_if(Presets().begin(), Presets().end(),
                          [](const Preset& p) {
                            return std::strstr(p.source, "modeling_") !=
                                   nullptr;
                          }),
            69);
}

TEST(Presets, UnknownNamesAreRefused) {
  Preset preset;
  preset.family = "untouched";
  const std::string unknown = "FindPreset: family: is not in Presets()";
  for (const char* name : {"", "aaa", "gpt", "zzz", "doge"}) {
    ExpectError(FindPreset(name, &preset), unknown);
  }
  // Tests other spellings of a family's name, typing errors, and names of any
  // length.
  for (const auto& [name, meant] : {std::pair("deepseek_v3 ", "deepseek_v3"),
                                    {"DEEPSEEK_V3", "deepseek_v3"},
                                    {"qwen3-moe", "qwen3_moe"},
                                    {"Qwen3MoE", "qwen3_moe"},
                                    {"gptoss", "gpt_oss"},
                                    {"mixtal", "mixtral"}}) {
    ExpectError(FindPreset(name, &preset), unknown + "; did you mean " + meant);
  }
  ExpectError(FindPreset(std::string(5000, 'q').c_str(), &preset), unknown);
  for (const Preset& known : Presets()) {
    ExpectError(FindPreset((known.family + std::string("?")).c_str(), &preset),
                unknown + "; did you mean " + known.family);
  }
  ExpectError(FindPreset(nullptr, &preset), "FindPreset: family: is null");
  ExpectError(FindPreset("mixtral", nullptr), "FindPreset: preset: is null");
  EXPECT_STREQ(preset.family, "untouched");
}

// Returns everything that a configuration may change, except
// route.needs_config.
std::vector<double> Changeable(const Preset& p) {
  const CombineForm& form = p.form;
  std::vector<double> values = {double(p.num_experts),
                                double(p.top_k),
                                double(p.correction_bias),
                                double(p.expert_scale),
                                double(form.has_residual),
                                double(form.num_shared_experts),
                                double(form.shared_gate),
                                double(form.has_identity_experts),
                                double(form.has_weights_on_input)};
  for (size_t i = 0; OptionAt(p, i).name != nullptr; ++i) {
    const PresetOption option = OptionAt(p, i);
    if (std::strcmp(option.name, "needs_config") != 0) {
      values.push_back(option.value);
    }
  }
  return values;
}

// In "architectures", config.json has the name of the class, not of the
// preset.
TEST(Presets, NamesOfClassesAreHinted) {
  for (const auto& [name, meant] : std::map<std::string, std::string>{
           {"Qwen3MoeForCausalLM", "qwen3_moe"},
           {"DeepseekV3ForCausalLM", "deepseek_v3"},
           {"MixtralForCausalLM", "mixtral"},
           {"GptOssForCausalLM", "gpt_oss"},
           {"Llama4ForConditionalGeneration", "llama4"},
           {"Glm4MoeModel", "glm4_moe"}}) {
    Preset preset;
    ExpectError(
        FindPreset(name.c_str(), &preset),
        "FindPreset: family: is not in Presets(); did you mean " + meant);
  }
}

TEST(Presets, TheirOwnConfigurationChangesNothing) {
  for (Preset preset : Presets()) {
    SCOPED_TRACE(preset.family);
    EXPECT_TRUE(preset.route.needs_config);
    const Preset configured = Configured(preset);
    EXPECT_FALSE(configured.route.needs_config);
    if (preset.num_experts == 0) preset.num_experts = configured.num_experts;
    if (preset.top_k == 0) preset.top_k = configured.top_k;
    EXPECT_EQ(Changeable(configured), Changeable(preset));
    // Applying the configuration again changes nothing.
    EXPECT_TRUE(Changeable(Configured(configured)) == Changeable(preset));
  }
}

// In Qwen3-30B-A3B's checkpoints the weights add up to one, although its
// class does not divide them by default.
TEST(Presets, WeightsOfQwen3AddUpToOne) {
  Preset preset = Find("qwen3_moe");
  EXPECT_FALSE(preset.route.renormalize);
  ModelConfig config;
  config.num_experts = 128;
  config.num_experts_per_tok = 8;
  config.norm_topk_prob = true;
  config.rms_norm_eps = 1e-6f;
  ASSERT_OK(ApplyConfig(config, &preset));
  const PresetCall call(preset, 0);
  const Routed routed = call.Run();
  for (size_t t = 0; t < kTokens; ++t) {
    float sum = 0;
    for (size_t j = 0; j < 8; ++j) sum += routed.weights[t * 8 + j];
    EXPECT_NEAR(sum, 1.0f, 1e-6f);
  }
}

// A key of a config.json, and its effect on a preset.
struct Said {
  const char* family;
  const char* key;
  double value;
  double (*is)(const Preset&);
};
TEST(Presets, EveryFieldIsApplied) {
#define SAID(family, key, value, member)                                 \
  {                                                                      \
    family, key, value, [](const Preset& p) { return double(p.member); } \
  }
  const Said said[] = {
      SAID("deepseek_v3", "n_routed_experts", 32, num_experts),
      {"longcat_flash", "zero_expert_num", 3,
       [](const Preset& p) {
         return double(p.num_experts) - 512 + double(p.route.num_zero_experts) -
                3;
       }},
      SAID("ernie4_5_moe", "moe_k", 3, top_k),
      SAID("bailing_hybrid", "moe_renormalize", 0, route.renormalize),
      SAID("afmoe", "route_scale", 1.5, route.routed_scaling_factor),
      SAID("step3p7", "moe_router_scaling_factor", 1.5, combine.scales.routed),
      {"openai_privacy_filter", "num_experts_per_tok", 8,
       [](const Preset& p) {
         return double(p.combine.scales.routed *
                       p.route.routed_scaling_factor) *
                8;
       }},
      SAID("bailing_hybrid", "num_expert_group", 4, route.num_expert_group),
      SAID("glm4_moe", "topk_group", 0, route.topk_group),
      {"lfm2_moe", "use_expert_bias", 0,
       [](const Preset& p) {
         return double(p.route.needs_correction_bias + p.correction_bias);
       }},
      SAID("dbrx", "moe_normalize_expert_weights", 0, route.renormalize),
      SAID("ernie4_5_moe", "moe_norm_min", 0.5, route.eps),
      SAID("muse_spark", "output_multiplier", 0.5, route.logit_scale),
      SAID("laguna", "moe_router_logit_softcapping", 4, route.logit_softcap),
      {"laguna", "moe_apply_router_weight_on_input", 1,
       [](const Preset& p) {
         return double(p.form.has_weights_on_input &&
                       p.activate.row_scale_place == ActivatePlace::kBefore);
       }},
      SAID("phimoe", "router_jitter_noise", 0.25, route.jitter_eps),
      SAID("inkling", "n_shared_experts", 3, route.num_shared_experts),
      SAID("deepseek_v3", "n_shared_experts", 0, form.num_shared_experts),
      {"granitemoeshared", "shared_intermediate_size", 512,
       [](const Preset& p) { return double(p.form.num_shared_experts) * 512; }},
      SAID("gpt_oss", "swiglu_limit", 3, activate.limit),
      SAID("gpt_oss", "swiglu_alpha", 1.5, activate.alpha),
      SAID("inkling2", "mlp_gate_softcap", 3, activate.beta),
      SAID("inkling2", "mlp_up_softcap", 3, activate.linear_beta),
      SAID("mixtral", "rms_norm_eps", 0.5, combine.eps),
      SAID("lfm2_moe", "norm_eps", 0.5, combine.block_eps),
      SAID("muse_spark", "post_norm_eps", 0.5, combine.block_eps),
      SAID("granitemoe", "residual_multiplier", 0.5, combine.scales.block),
      SAID("minimax", "mlp_alpha_factor", 3.5, combine.scales.residual),
      SAID("minimax", "layernorm_mlp_beta", 3.5, combine.scales.block),
  };
#undef SAID
  for (const Said& s : said) {
    SCOPED_TRACE(s.key);
    Preset preset = Find(s.family);
    const Preset before = preset;
    ModelConfig config = ConfigOf(preset);
    ASSERT_OK(SetField(s.key, s.value, &config));
    ASSERT_OK(ApplyConfig(config, &preset));
    if (std::strcmp(s.key, "zero_expert_num") == 0) {
      EXPECT_EQ(s.is(preset), 3.0);
    } else {
      EXPECT_EQ(s.is(preset), s.value);
    }
    if (std::strcmp(s.family, "openai_privacy_filter") != 0) {
      EXPECT_NE(s.is(before), s.is(preset));
    }
  }
}

TEST(Presets, TextsOfAConfigurationAreApplied) {
  Preset preset = Find("cohere2_moe");
  ModelConfig config = ConfigOf(preset);
  ASSERT_OK(SetField("expert_selection_fn", "sigmoid", &config));
  ASSERT_OK(SetField("shared_expert_combination_strategy", "average", &config));
  ASSERT_OK(SetField("num_shared_experts", 1, &config));
  ASSERT_OK(SetField("hidden_activation", "gelu_pytorch_tanh", &config));
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_EQ(preset.route.weight_of, WeightOf::kSigmoidOfSelected);
  EXPECT_EQ(preset.combine.scales.block, 0.5f);
  EXPECT_EQ(preset.activate.activation, Activation::kGeluTanh);

  preset = Find("deepseek_v2");
  config = ConfigOf(preset);
  config.num_experts = 160;
  config.n_group = 8;
  config.topk_group = 3;
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_EQ(preset.route.num_expert_group, 0u) << "greedy";
  config.topk_method = "group_limited_greedy";
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_EQ(preset.route.num_expert_group, 8u);
  EXPECT_EQ(preset.route.topk_group, 3u);
}

// Ling 1 and Ling 2.0 have the same model_type, and the score tells them
// apart.
TEST(Presets, AScoreChoosesBetweenTheRecipesOfAFamily) {
  Preset preset = Find("bailing_moe"), ling2 = Find("bailing_moe_v2");
  ModelConfig config = ConfigOf(preset);
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_EQ(preset.route.score, Score::kSoftmax);
  EXPECT_FALSE(preset.correction_bias);

  preset = Find("bailing_moe");
  config = ConfigOf(ling2);
  ASSERT_OK(SetField("score_function", "sigmoid", &config));
  ASSERT_OK(ApplyConfig(config, &preset));
  ASSERT_OK(ApplyConfig(config, &ling2));
  EXPECT_EQ(Changeable(preset), Changeable(ling2));
  EXPECT_STREQ(preset.family, "bailing_moe");
  // The configuration must have the fields that the chosen recipe needs.
  config.n_group.reset();
  preset = Find("bailing_moe");
  ExpectError(ApplyConfig(config, &preset),
              "ApplyConfig: config: n_group is missing");
  EXPECT_EQ(Changeable(preset), Changeable(Find("bailing_moe")));
  ASSERT_OK(SetField("score_function", "tanh", &config));
  ExpectError(ApplyConfig(config, &preset),
              "ApplyConfig: config: scoring_func is none of softmax, sigmoid, "
              "sqrtsoftplus");
}

TEST(Presets, AFlagChoosesTheWeightsOfSmallThinker) {
  for (const bool applies_softmax : {false, true}) {
    Preset preset = Find("smallthinker");
    ModelConfig config = ConfigOf(preset);
    ASSERT_OK(
        SetField("moe_primary_router_apply_softmax", applies_softmax, &config));
    ASSERT_OK(ApplyConfig(config, &preset));
    const PresetCall call(preset, 0);
    const Routed routed = call.Run();
    for (size_t t = 0; t < kTokens; ++t) {
      const float* logits = &call.logits[t * call.columns];
      const auto value = [&](size_t slot) {
        const double x = logits[routed.ids[t * call.slots + slot]];
        return applies_softmax ? std::exp(x) : 1.0 / (1.0 + std::exp(-x));
      };
      double sum = 0;
      for (size_t j = 0; j < call.slots; ++j) sum += value(j);
      for (size_t j = 0; j < call.slots; ++j) {
        EXPECT_NEAR(routed.weights[t * call.slots + j], value(j) / sum, 1e-6);
      }
    }
  }
}

// The text model of Kimi K3 is a kimi_linear with another activation.
TEST(Presets, KimiLinearTakesTheActivationOfKimiK3) {
  Preset preset = Find("kimi_linear");
  ModelConfig config = ConfigOf(preset);
  ASSERT_OK(SetField("hidden_act", "situ", &config));
  ASSERT_OK(SetField("activation_situ_beta", 4, &config));
  ASSERT_OK(SetField("activation_situ_linear_beta", 25, &config));
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_EQ(preset.activate.activation, Activation::kSitu);
  EXPECT_EQ(preset.activate.beta, 4.0f);
  EXPECT_EQ(preset.activate.linear_beta, 25.0f);
}

// Returns the names of the fields that the configuration of a family must
// have.
std::string FieldsNeeded(const char* family) {
  std::string needed;
  Preset preset = Find(family);
  ModelConfig config;
  for (;;) {
    const Status status = ApplyConfig(config, &preset);
    if (status.ok()) return needed;
    const std::string message = status.message();
    const std::string front = "ApplyConfig: config: ";
    const size_t end = message.find(" is missing");
    if (message.compare(0, front.size(), front) != 0 || end == message.npos) {
      return message;
    }
    const std::string field = message.substr(front.size(), end - front.size());
    needed += (needed.empty() ? "" : " ") + field;
    const ModelConfig all = ConfigOf(preset);
#define FILL(name, others) \
  if (field == #name) config.name = all.name;
    SWITCHYARD_CONFIG_FIELDS(FILL)
#undef FILL
  }
}
TEST(Presets, MissingFieldsAreNamed) {
  EXPECT_EQ(FieldsNeeded("qwen3_moe"),
            "num_experts num_experts_per_tok norm_topk_prob rms_norm_eps");
  EXPECT_EQ(FieldsNeeded("cohere2_moe"), "num_experts num_experts_per_tok");
  // For each family in kFamilies, ApplyConfig() requires exactly the fields
  // that fields.needs lists. docs/models.md is printed from the same table.
  for (const Family& family : kFamilies) {
    if (family.preset.same_as != nullptr) continue;
    std::string needed;
    const auto add = [&](const char* name, ConfigField field) {
      if (!family.fields.needs.Has(field)) return;
      needed += (needed.empty() ? "" : " ") + std::string(name);
    };
#define ADD(name, others) add(#name, ConfigField::name);
    SWITCHYARD_CONFIG_FIELDS(ADD)
#undef ADD
    EXPECT_EQ(FieldsNeeded(family.preset.family), needed)
        << family.preset.family;
  }
}

TEST(Presets, WrongConfigurationsAreRefused) {
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
#define SPOILT(family, name, value, text)                           \
  {                                                                 \
    family, [](ModelConfig* c) { c->name = value; }, #name " " text \
  }
  const struct {
    const char* family;
    void (*spoil)(ModelConfig*);
    const char* want;
  } spoilt[] = {
      SPOILT("mixtral", num_experts, 0, "is 0"),
      SPOILT("mixtral", num_experts_per_tok, 0, "is 0"),
      SPOILT("mixtral", num_experts_per_tok, 9, "is above num_experts"),
      SPOILT("phimoe", num_experts_per_tok, 3, "is not 2"),
      SPOILT("deepseek_v3", n_group, 0, "is 0"),
      SPOILT("deepseek_v3", n_group, 7, "does not divide num_experts"),
      SPOILT("deepseek_v3", n_group, 256, "leaves too few experts in a group"),
      SPOILT("deepseek_v3", topk_group, 0, "is 0 or above n_group"),
      SPOILT("deepseek_v3", topk_group, 9, "is 0 or above n_group"),
      SPOILT("glm4_moe", topk_group, 2, "is above n_group"),
      SPOILT("deepseek_v2", topk_method, "noaux_tc",
             "is neither greedy nor group_limited_greedy"),
      SPOILT("deepseek_v3", scoring_func, "softmax",
             "is not the score of this family"),
      SPOILT("cohere2_moe", expert_selection_fn, "tanh",
             "is neither softmax nor sigmoid"),
      SPOILT("cohere2_moe", shared_expert_combination_strategy, "max",
             "is neither average nor sum"),
      SPOILT("dbrx", moe_normalize_expert_weights, 2,
             "is not a division by the sum"),
      SPOILT("ernie4_5_moe", moe_norm_min, -1, "is negative"),
      SPOILT("muse_spark", output_multiplier, 0, "is 0"),
      SPOILT("laguna", moe_router_logit_softcapping, -1, "is negative"),
      SPOILT("phimoe", router_jitter_noise, -1, "is negative"),
      SPOILT("longcat_flash", zero_expert_num, INT32_MAX,
             "and num_experts are more than 2^31 - 1"),
      SPOILT("mixtral", hidden_act, "tanh",
             "is none of silu, gelu, gelu_pytorch_tanh, relu, relu2, situ"),
      SPOILT("gpt_oss", swiglu_limit, -1, "is negative"),
      SPOILT("mixtral", rms_norm_eps, -1, "is negative"),
      SPOILT("muse_spark", post_norm_eps, -1, "is negative"),
      SPOILT("deepseek_v3", routed_scaling_factor, -1, "is negative"),
  };
#undef SPOILT
  for (const auto& s : spoilt) {
    Preset preset = Find(s.family);
    ModelConfig config = ConfigOf(preset);
    s.spoil(&config);
    ExpectError(ApplyConfig(config, &preset),
                (std::string("ApplyConfig: config: ") + s.want).c_str());
    EXPECT_TRUE(preset.route.needs_config);
    EXPECT_EQ(Changeable(preset), Changeable(Find(s.family)));
  }
  const std::pair<void (*)(ModelConfig*), const char*> unsound[] = {
      {[](ModelConfig* c) { c->rms_norm_eps = kNan; },
       "ModelConfig: rms_norm_eps has no such value"},
      {[](ModelConfig* c) { c->num_experts = size_t{1} << 31; },
       "ModelConfig: num_experts has no such value"},
      {[](ModelConfig* c) { c->hidden_act = nullptr; },
       "ModelConfig: hidden_act has no such value"},
  };
  for (const auto& [spoil, want] : unsound) {
    Preset preset = Find("mixtral");
    ModelConfig config = ConfigOf(preset);
    spoil(&config);
    ExpectError(ApplyConfig(config, &preset), want);
  }
  // A field that the family does not have may have any value.
  Preset preset = Find("mixtral");
  ModelConfig config = ConfigOf(preset);
  config.n_group = 77;
  config.swiglu_limit = kNan;
  EXPECT_OK(ApplyConfig(config, &preset));
  ExpectError(ApplyConfig(config, nullptr), "ApplyConfig: preset: is null");
  preset.family = nullptr;
  ExpectError(ApplyConfig(config, &preset),
              "ApplyConfig: preset: its family is not in Presets()");
  preset.family = "llama";
  ExpectError(ApplyConfig(config, &preset),
              "ApplyConfig: preset: its family is not in Presets()");
}

TEST(Presets, FieldsAreSetByTheirNames) {
  ModelConfig config;
  EXPECT_OK(SetField("moe_num_experts", 8, &config));
  EXPECT_EQ(config.num_experts, 8u);
  EXPECT_OK(SetField("moe_num_experts", 9, &config));
  EXPECT_EQ(config.num_experts, 9u);
  EXPECT_OK(SetField("moe_renormalize", 1, &config));
  EXPECT_EQ(config.norm_topk_prob, true);
  EXPECT_OK(SetField("layer_norm_epsilon", 1e-5, &config));
  EXPECT_EQ(config.rms_norm_eps, 1e-5f);
  EXPECT_OK(SetField("architectures", "x", &config));
  EXPECT_OK(SetField("hidden_size", 1e300, &config));
  const std::tuple<const char*, double, const char*> wrong[] = {
      {"num_experts", -1,
       "num_experts is not a whole number from 0 to 2^31 - 1"},
      {"num_experts", 2.5,
       "num_experts is not a whole number from 0 to 2^31 - 1"},
      {"n_routed_experts", 2147483648.0,
       "n_routed_experts is not a whole number from 0 to 2^31 - 1"},
      {"norm_topk_prob", 2, "norm_topk_prob is neither true nor false"},
      {"moe_renormalize", 0.5, "moe_renormalize is neither true nor false"},
      {"rms_norm_eps", 1e300, "rms_norm_eps is not a finite number"},
      {"norm_eps", NAN, "norm_eps is not a finite number"},
      {"layernorm_epsilon", HUGE_VAL,
       "layernorm_epsilon is not a finite number"},
      {"mlp_hidden_act", 1, "mlp_hidden_act is not a text"}};
  for (const auto& [key, value, want] : wrong) {
    ExpectError(SetField(key, value, &config),
                std::string("SetField: config: ") + want);
  }
  // The value is a text instead of a number. The message has the file's key
  // and the kind of value that the key needs.
  const std::pair<const char*, const char*> texts[] = {
      {"n_routed_experts",
       "n_routed_experts is not a whole number from 0 to 2^31 - 1"},
      {"ffn_config.moe_top_k",
       "moe_top_k is not a whole number from 0 to 2^31 - 1"},
      {"moe_renormalize", "moe_renormalize is neither true nor false"},
      {"route_scale", "route_scale is not a finite number"}};
  for (const auto& [key, want] : texts) {
    ExpectError(SetField(key, "8", &config),
                std::string("SetField: config: ") + want);
  }
  EXPECT_EQ(config.num_experts, 9u);
  EXPECT_FALSE(config.hidden_act.has_value());
  ExpectError(SetField(nullptr, 1, &config), "SetField: key: is null");
  ExpectError(SetField("num_experts", 1, nullptr), "SetField: config: is null");
  ExpectError(SetField("hidden_act", nullptr, &config),
              "SetField: text: is null");
}

TEST(Presets, NamesOfOneFieldAgree) {
  ModelConfig config;
  EXPECT_OK(SetField("n_routed_experts", 256, &config));
  EXPECT_OK(SetField("num_local_experts", 256, &config));
  ExpectError(SetField("num_experts", 8, &config),
              "SetField: config: num_experts differs from num_local_experts, "
              "and both are names of one field");
  EXPECT_EQ(config.num_experts, 256u);
  EXPECT_OK(SetField("hidden_act", "silu", &config));
  EXPECT_OK(SetField("hidden_activation", "silu", &config));
  ExpectError(SetField("mlp_hidden_act", "relu2", &config),
              "SetField: config: mlp_hidden_act differs from "
              "hidden_activation, and both are names of one field");
  EXPECT_OK(SetField("rms_norm_eps", 1e-5, &config));
  ExpectError(SetField("layernorm_epsilon", 1e-6, &config),
              "SetField: config: layernorm_epsilon differs from rms_norm_eps, "
              "and both are names of one field");
  // SetField() may overwrite a field that was assigned directly.
  config = {};
  config.num_experts = 8;
  EXPECT_OK(SetField("n_routed_experts", 9, &config));
  EXPECT_EQ(config.num_experts, 9u);
  for (uint8_t& name : config.names.of)
    name = 255;  // SetField() never sets 255
  EXPECT_OK(SetField("num_experts", 10, &config));
  EXPECT_EQ(config.num_experts, 10u);
}

// A literal 0 is a number here, not a null pointer. Integers of any type are
// numbers.
TEST(Presets, FieldsTakeNumbersOfAnyType) {
  ModelConfig config;
  EXPECT_OK(SetField("n_shared_experts", 0, &config));
  EXPECT_EQ(config.n_shared_experts, size_t{0});
  EXPECT_OK(SetField("num_experts", size_t{128}, &config));
  EXPECT_EQ(config.num_experts, size_t{128});
  EXPECT_OK(SetField("norm_topk_prob", true, &config));
  EXPECT_EQ(config.norm_topk_prob, true);
  EXPECT_FALSE(SetField("num_experts", int64_t{-1}, &config).ok());
}

TEST(Presets, NullIsTheClasssDefault) {
  ModelConfig config;
  EXPECT_OK(SetField("n_routed_experts", 256, &config));
  EXPECT_OK(SetField("num_experts_per_tok", 8, &config));
  EXPECT_OK(SetField("norm_topk_prob", 1, &config));
  EXPECT_OK(SetField("n_group", 1, &config));
  EXPECT_OK(SetField("topk_group", 1, &config));
  EXPECT_OK(SetField("layernorm_epsilon", 1e-5, &config));
  // null does not unset a field that another name has set.
  EXPECT_OK(SetNull("num_experts", &config));
  EXPECT_OK(SetNull("num_hidden_layers", &config));
  // MiMo-V2-Flash's config.json has these fields.
  EXPECT_OK(SetField("routed_scaling_factor", 2, &config));
  EXPECT_OK(SetNull("routed_scaling_factor", &config));
  Preset preset = Find("mimo_v2_flash");
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_EQ(preset.route.routed_scaling_factor, 1.0f);
  EXPECT_EQ(preset.num_experts, 256u);
  EXPECT_EQ(preset.combine.eps, 1e-5f);
  preset = Find("deepseek_v3");
  ExpectError(ApplyConfig(config, &preset),
              "ApplyConfig: config: routed_scaling_factor is missing");

  // DBRX does not normalise the weights if moe_normalize_expert_weights is
  // null. Without the field, it does.
  for (const bool is_null : {false, true}) {
    config = {};
    EXPECT_OK(SetField("ffn_config.moe_num_experts", 16, &config));
    EXPECT_OK(SetField("ffn_config.moe_top_k", 4, &config));
    EXPECT_OK(SetField("ffn_config.ffn_act_fn.name", "gelu", &config));
    EXPECT_OK(SetField("attn_config.num_experts", 5, &config));
    if (is_null) {
      EXPECT_OK(SetNull("ffn_config.moe_normalize_expert_weights", &config));
    }
    preset = Find("dbrx");
    ASSERT_OK(ApplyConfig(config, &preset));
    EXPECT_EQ(preset.route.renormalize, !is_null);
    EXPECT_EQ(preset.num_experts, 16u);
    EXPECT_EQ(preset.top_k, 4u);
    EXPECT_EQ(preset.activate.activation, Activation::kGelu);
  }
  ExpectError(SetNull(nullptr, &config), "SetNull: key: is null");
  ExpectError(SetNull("num_experts", nullptr), "SetNull: config: is null");
}

// Fields that a family's class does not read have no effect.
TEST(Presets, FieldsThatTheClassDoesNotReadChangeNothing) {
  const auto unchanged = [](const char* family, const char* key, auto value) {
    Preset preset = Find(family);
    ModelConfig config = ConfigOf(preset);
    ASSERT_OK(ApplyConfig(config, &preset));
    Preset with_field = Find(family);
    ASSERT_OK(SetField(key, value, &config));
    ASSERT_OK(ApplyConfig(config, &with_field)) << family;
    EXPECT_EQ(Changeable(with_field), Changeable(preset))
        << family << ' ' << key;
  };
  // In transformers, deepseek_v4 and nemotron_h always have one shared expert.
  // They do not read n_shared_experts.
  unchanged("deepseek_v4", "n_shared_experts", 2);
  unchanged("nemotron_h", "n_shared_experts", 2);
  unchanged("granitemoe", "shared_intermediate_size", 512);
  unchanged("lfm2_moe", "hidden_act", "gelu");
  unchanged("gpt_oss", "hidden_act", "gelu");
  unchanged("kimi_k3", "hidden_act", "situ");
  unchanged("deepseek_v2", "norm_topk_prob", 1);
  unchanged("mixtral", "norm_topk_prob", 0);
}

struct PublicConfig {
  const char *model, *family, *fields, *options;
};
constexpr PublicConfig kPublicConfigs[] = {
#include "tests/public_configs.inc"
};

// Returns the options of a family with the fields "key=value key=value", or
// the error.
std::string Configured(const PublicConfig& from) {
  Preset preset;
  Status status = FindPreset(from.family, &preset);
  ModelConfig config;
  std::vector<std::string> words;  // ModelConfig points into these
  std::istringstream fields(from.fields);
  for (std::string word; fields >> word;) words.push_back(word);
  for (const std::string& word : words) {
    if (!status.ok()) break;
    const size_t equal = word.find('=');
    const std::string key = word.substr(0, equal);
    const char* const value = word.c_str() + equal + 1;
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    status = std::strcmp(value, "null") == 0 ? SetNull(key.c_str(), &config)
             : *end == '\0' ? SetField(key.c_str(), number, &config)
                            : SetField(key.c_str(), value, &config);
  }
  if (status.ok()) status = ApplyConfig(config, &preset);
  if (!status.ok()) return status.message();
  const RouteOptions& route = preset.route;
  std::ostringstream text;
  text << "experts=" << preset.num_experts << " top_k=" << preset.top_k
       << " renormalize=" << route.renormalize << " factor="
       << route.routed_scaling_factor * preset.combine.scales.routed
       << " groups=" << route.num_expert_group << '/' << route.topk_group
       << " eps="
       << (preset.combine.needs_other_norm ? 0.0f : preset.combine.eps)
       << " limit=" << preset.activate.limit
       << " shared=" << preset.form.num_shared_experts;
  return text.str();
}

TEST(Presets, PublicConfigurationsGiveTheirOptions) {
  EXPECT_GE(std::size(kPublicConfigs), 60u);
  for (const PublicConfig& config : kPublicConfigs) {
    EXPECT_EQ(Configured(config).substr(0, std::strlen(config.options)),
              config.options)
        << config.model;
  }
}

// A score, method or bias of another family is refused, under each name that
// the field may have.
TEST(Presets, ScoresAndMethodsAreThoseOfTheFamily) {
  const struct {
    const char *family, *key, *value, *want;
  } texts[] = {
      {"deepseek_v3", "scoring_func", "sigmoid", nullptr},
      {"deepseek_v3", "moe_router_activation_func", "softmax",
       "scoring_func is not the score of this family"},
      {"bailing_moe_v2", "score_function", "sigmoid", nullptr},
      {"bailing_moe_v2", "score_function", "softmax",
       "scoring_func is not the score of this family"},
      {"ernie4_5_moe", "moe_gate_act", "sigmoid",
       "scoring_func is not the score of this family"},
      {"afmoe", "score_func", "tanh",
       "scoring_func is none of softmax, sigmoid, sqrtsoftplus"},
      {"granitemoe", "scoring_func", "softmax", nullptr},
      {"llama4", "scoring_func", "sigmoid", nullptr},
      {"llama4", "scoring_func", "softmax",
       "scoring_func is not the score of this family"},
      {"dots1", "scoring_func", "noaux_tc", nullptr},
      {"mixtral", "scoring_func", "noaux_tc",
       "scoring_func is not the score of this family"},
      {"deepseek_v3", "topk_method", "noaux_tc", nullptr},
      {"deepseek_v3", "topk_method", "group_limited_greedy",
       "topk_method is not the method of this family"},
      {"mixtral", "topk_method", "noaux_tc",
       "topk_method is not the method of this family"},
      {"glm4_moe", "topk_method", "best",
       "topk_method is none of greedy, group_limited_greedy, noaux_tc"},
  };
  for (const auto& text : texts) {
    Preset preset = Find(text.family);
    ModelConfig config = ConfigOf(preset);
    EXPECT_OK(SetField(text.key, text.value, &config));
    const Status status = ApplyConfig(config, &preset);
    if (text.want == nullptr) {
      EXPECT_OK(status) << text.family << ' ' << text.value;
    } else {
      ExpectError(status, std::string("ApplyConfig: config: ") + text.want);
    }
  }
  for (const char* key : {"use_routing_bias", "use_moe_router_bias"}) {
    for (const char* family : {"minimax_m2", "mixtral"}) {
      for (const bool is_true : {false, true}) {
        Preset preset = Find(family);
        ModelConfig config = ConfigOf(preset);
        EXPECT_OK(SetField(key, is_true, &config));
        const Status status = ApplyConfig(config, &preset);
        if (is_true == preset.correction_bias) {
          EXPECT_OK(status) << family;
        } else {
          ExpectError(status,
                      std::string("ApplyConfig: config: use_expert_bias is not "
                                  "this family's, which has ") +
                          (is_true ? "no " : "a ") + "correction bias");
        }
      }
    }
  }
}

TEST(Presets, OptionsAreSetByTheirNames) {
  const Preset preset;
  const auto all = [](const Preset& of) {
    std::vector<double> values;
    while (OptionAt(of, values.size()).name != nullptr) {
      values.push_back(OptionAt(of, values.size()).value);
    }
    return values;
  };
  std::vector<double> want = all(preset);
  EXPECT_EQ(want.size(), 49u);
  for (size_t i = 0; i < want.size(); ++i) {
    Preset changed;
    const PresetOption option = OptionAt(preset, i);
    const std::string name = std::string(option.part) + "." + option.name;
    want[i] = option.value == 1 ? 0 : 1;
    EXPECT_OK(SetOption(name.c_str(), want[i], &changed)) << name;
    EXPECT_EQ(all(changed), want) << name;
    want[i] = option.value;
  }

  Preset set;
  EXPECT_OK(SetOption("score", "sqrt_softplus", &set));
  EXPECT_EQ(set.route.score, Score::kSqrtSoftplus);
  EXPECT_OK(SetOption("combine.norm", "plus_one", &set));
  EXPECT_EQ(set.combine.norm, NormKind::kPlusOne);
  EXPECT_OK(SetOption("combine.eps", 0.5, &set));
  EXPECT_EQ(std::pair(set.combine.eps, set.route.eps), std::pair(0.5f, 0.0f));
  EXPECT_OK(SetOption("topk_group", 2147483647, &set));
  EXPECT_OK(SetOption("layout", 255, &set));  // Activate() refuses 255
  const std::vector<double> before = all(set);
  const std::string error = "SetOption: ",
                    no_value = error + "value: does not fit this option's type",
                    no_name = error + "name: no option has this name";
  const std::pair<const char*, double> wrong[] = {
      {"renormalize", 2},   {"renormalize", -1},
      {"renormalize", NAN}, {"score", 256},
      {"score", 0.5},       {"combine.norm", -1},
      {"topk_group", 1.5},  {"topk_group", 1ull << 31}};
  for (const auto& [name, value] : wrong) {
    ExpectError(SetOption(name, value, &set), no_value);
  }
  for (const char* name : {"score", "clamp", "renormalize"}) {
    ExpectError(SetOption(name, "tanh", &set), no_value);
  }
  for (const char* name : {"", "routes.score", "route.limit", "route."}) {
    ExpectError(SetOption(name, 1, &set), no_name);
  }
  const auto details = [](const Status& status) {
    return std::string(status.details());
  };
  EXPECT_EQ(details(SetOption("renormalize", 2, &set)), "got 2, needs 0 or 1");
  EXPECT_EQ(details(SetOption("topk_group", -1, &set)),
            "got -1, needs a whole number from 0 to 2147483647");
  EXPECT_EQ(details(SetOption("score", 0.5, &set)),
            "got 0.5, needs a whole number from 0 to 255");
  EXPECT_EQ(details(SetOption("eps", "tiny", &set)),
            "got tiny, needs a number");
  EXPECT_EQ(details(SetOption("divisor", "sun", &set)).substr(0, 27),
            "got sun, needs a number or ");
  EXPECT_EQ(details(SetOption("renormalise", 1, &set)),
            "got renormalise; did you mean renormalize");
  EXPECT_EQ(details(SetOption("combine.epz", 1, &set)),
            "got combine.epz; did you mean combine.eps");
  EXPECT_EQ(details(SetOption("xyzzy", 1, &set)), "got xyzzy");
  ExpectError(SetOption(nullptr, 1, &set), error + "name: is null");
  ExpectError(SetOption("score", nullptr, &set), error + "enumerator: is null");
  ExpectError(SetOption("score", 1, nullptr), error + "preset: is null");
  EXPECT_EQ(all(set), before);
}

TEST(Presets, RoutingWithoutWhatBelongsToThemIsRefused) {
  const auto route = [](const Preset& preset, bool with_bias, bool given) {
    std::vector<float> logits(512), bias(512), weights(16, -7.0f);
    std::vector<int32_t> ids(16, -7), given_ids(16);
    for (size_t i = 0; i < 16; ++i) given_ids[i] = static_cast<int32_t>(i);
    RouteInputs in = {{logits.data(), 1, preset.num_experts}};
    if (with_bias) in.correction_bias = {bias.data(), 1, preset.num_experts};
    if (given) in.given_ids = {given_ids.data(), 1, preset.top_k};
    const Status status = RouteTopK(
        in, {{ids.data(), 1, preset.top_k}, {weights.data(), 1, preset.top_k}},
        preset.route);
    if (!status.ok()) {
      EXPECT_EQ(ids, std::vector<int32_t>(16, -7));
    }
    return status;
  };
  const char* const kUnconfigured =
      "RouteTopK: options: needs_config: call ApplyConfig for the preset first";
  ExpectError(route(Find("mixtral"), false, false), kUnconfigured);
  EXPECT_OK(route(Configured(Find("mixtral")), false, false));
  ExpectError(route(Find("kimi_k2"), true, false), kUnconfigured);
  const Preset biased = Configured(Find("kimi_k2"));
  ExpectError(route(biased, false, false),
              "RouteTopK: correction_bias: not given, but the options need it");
  EXPECT_OK(route(biased, true, false));
  EXPECT_OK(route(Configured(Find("deepseek_v4")), false, true))
      << "the bias would only select";
  Preset grouped = Configured(Find("deepseek_v3"));
  grouped.route.num_expert_group = grouped.route.topk_group = 0;
  ExpectError(route(grouped, true, false),
              "RouteTopK: options: num_expert_group is 0, but the options need "
              "groups (1: none)");
  ExpectError(route(Configured(Find("gemma4")), false, false),
              "RouteTopK: expert_scale: not given, but the options need it");
}

// Computes the preset's norm of x with the weights w.
Status Normed(const Preset& preset, const std::vector<float>& x,
              const std::vector<float>& w, std::vector<float>* normed) {
  CombineInputs in = {{}, {}, RowIndex::kTokenOrder};
  in.residual = {x.data(), 1, x.size()};
  in.norm_weight = {w.data(), 1, w.size()};
  CombineOutputs out;
  out.normed = {normed->data(), 1, normed->size()};
  CombineOptions options = preset.combine;
  options.eps = 0;
  return Combine(in, out, options);
}

// docs/models.md lists the norms, and norms.py of tools/parity compares them
// with transformers.
TEST(Presets, NormsAreThoseOfTheirFamilies) {
  size_t refused = 0, plus_one = 0;
  for (const Preset& preset : Presets()) {
    SCOPED_TRACE(preset.family);
    std::vector<float> normed(4, -7);
    const Status status = Normed(preset, {1, 1, 1, 1}, {0, 0, 0, 0}, &normed);
    if (preset.combine.needs_other_norm) {
      ++refused;
      ExpectError(
          status,
          "Combine: normed: given, but this preset's next layer begins with a "
          "norm that Combine does not have (options.needs_other_norm)");
      EXPECT_EQ(normed, std::vector<float>(4, -7));
    } else {
      // Normalising a row of ones leaves it unchanged. With weights of 0, the
      // result is 1 if the norm adds one to weights, and 0 otherwise.
      const bool adds_one = preset.combine.norm == NormKind::kPlusOne;
      plus_one += adds_one;
      EXPECT_OK(status);
      EXPECT_EQ(normed, std::vector<float>(4, adds_one ? 1 : 0));
    }
  }
  EXPECT_GE(refused, 5u);
  EXPECT_GE(plus_one, 12u);
}

// Cohere2's norm is an RMSNorm if the configuration has rms_norm_eps.
TEST(Presets, ANormFollowsItsEps) {
  Preset preset = Find("cohere2_moe");
  ModelConfig config;
  config.num_experts = 8;
  config.num_experts_per_tok = 2;
  config.rms_norm_eps = 1e-5f;
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_FALSE(preset.combine.needs_other_norm);
  EXPECT_EQ(preset.combine.eps, 1e-5f);
  std::vector<float> normed(4);
  EXPECT_OK(Normed(preset, {1, -1, 1, -1}, {2, 2, 2, 2}, &normed));
  EXPECT_EQ(normed, (std::vector<float>{2, -2, 2, -2}));
  config.rms_norm_eps.reset();
  ASSERT_OK(ApplyConfig(config, &preset));
  EXPECT_TRUE(preset.combine.needs_other_norm);
}

class PresetsTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(PresetsTest);

TEST_P(PresetsTest, EveryOneRoutes) {
  for (const Preset& preset : Presets()) {
    SCOPED_TRACE(preset.family);
    const PresetCall call(preset);
    const Routed routed = call.Run();
    for (size_t t = 0; t < kTokens; ++t) {
      const auto row =
          routed.ids.begin() + static_cast<ptrdiff_t>(t * call.slots);
      std::vector<int32_t> ids(row, row + static_cast<ptrdiff_t>(call.slots));
      std::sort(ids.begin(), ids.end());
      const auto real = std::lower_bound(ids.begin(), ids.end(), 0);
      EXPECT_EQ(std::adjacent_find(real, ids.end()), ids.end());
      EXPECT_LT(ids.back(), static_cast<int32_t>(call.columns));
      float sum = routed.identity[t];
      for (size_t j = 0; j < call.slots; ++j) {
        sum += routed.weights[t * call.slots + j];
      }
      EXPECT_GT(sum, 0.0f);
      // The sum is over the slots of all selected experts and, for Inkling,
      // of the shared experts.
      if (preset.route.renormalize && !preset.expert_scale) {
        EXPECT_NEAR(sum, preset.route.routed_scaling_factor, 1e-5f);
      }
    }
  }
}

// The logits of a row: those of all experts, and those of the selected
// experts.
struct RowLogits {
  std::vector<double> all, selected;
};
double SumOf(const std::vector<double>& logits, double (*f)(double)) {
  double sum = 0.0;
  for (const double x : logits) sum += f(x);
  return sum;
}
double Exp(double x) { return std::exp(x); }
double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double SqrtSoftplus(double x) { return std::sqrt(std::log1p(std::exp(x))); }

// Takes one family of each kind, and checks the weights of the selected
// experts by the family's formula.
TEST_P(PresetsTest, KnownRecipes) {
  using Weight = double (*)(const RowLogits&, double);
  const Weight softmax_of_selected = [](const RowLogits& row, double x) {
    return Exp(x) / SumOf(row.selected, Exp);
  };
  const Weight softmax = [](const RowLogits& row, double x) {
    return Exp(x) / SumOf(row.all, Exp);
  };
  const Weight sigmoid = [](const RowLogits&, double x) { return Sigmoid(x); };
  const Weight sigmoid_share = [](const RowLogits& row, double x) {
    return Sigmoid(x) / SumOf(row.selected, Sigmoid);
  };
  const Weight softplus_share = [](const RowLogits& row, double x) {
    return SqrtSoftplus(x) / SumOf(row.selected, SqrtSoftplus);
  };
  const struct {
    const char* family;
    double factor;
    Weight weight;
  } recipes[] = {{"mixtral", 1.0, softmax_of_selected},
                 {"ernie4_5_moe", 1.0, softmax_of_selected},
                 {"gpt_oss", 1.0, softmax_of_selected},
                 {"openai_privacy_filter", 0.25, softmax_of_selected},
                 {"bailing_moe", 1.0, softmax_of_selected},
                 {"moondream3_text", 1.0, softmax_of_selected},
                 {"nomic_bert", 1.0, softmax},
                 {"lladamoe", 1.0, softmax},
                 {"magi2", 4.9, sigmoid_share},
                 {"sarvam_moe", 2.5, sigmoid_share},
                 {"smallthinker", 1.0, sigmoid_share},
                 {"olmoe", 1.0, softmax},
                 {"llama4", 1.0, sigmoid},
                 {"kolibri1", 1.0, sigmoid},
                 {"minimax_m2", 1.0, sigmoid_share},
                 {"deepseek_v3", 2.5, sigmoid_share},
                 {"deepseek_v4", 1.5, softplus_share}};
  for (const auto& recipe : recipes) {
    SCOPED_TRACE(recipe.family);
    const PresetCall call(Find(recipe.family));
    const Routed routed = call.Run();
    for (size_t t = 0; t < kTokens; ++t) {
      const float* logits = call.logits.data() + t * call.columns;
      RowLogits row = {{logits, logits + call.experts}, {}};
      const auto logit = [&](size_t slot) {
        return row.all[static_cast<size_t>(routed.ids[t * call.slots + slot])];
      };
      for (size_t j = 0; j < call.top_k; ++j) row.selected.push_back(logit(j));
      for (size_t j = 0; j < call.top_k; ++j) {
        const double want = recipe.factor * recipe.weight(row, logit(j));
        EXPECT_NEAR(routed.weights[t * call.slots + j], want, 1e-5 * want);
      }
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
