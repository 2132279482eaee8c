// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <variant>

#include "src/base/fp_env.h"
#include "src/preset_fields.h"
#include "switchyard/presets.h"

namespace switchyard {
namespace {

using internal::ConfigField;
using internal::NextName;

constexpr Status Invalid(const char* message) {
  return {StatusCode::kInvalidArgument, message};
}
#define SAYS(field) "ApplyConfig: config: " #field

bool IsText(const char* text, const char* other) {
  return text != nullptr && std::strcmp(text, other) == 0;
}

using Member = std::variant<std::optional<size_t> ModelConfig::*,
                            std::optional<bool> ModelConfig::*,
                            std::optional<float> ModelConfig::*,
                            std::optional<const char*> ModelConfig::*>;
// A field of ModelConfig: its member, and the error messages for a missing and
// for a wrong value. Names() are its names in config.json.
struct Field {
  ConfigField field;
  Member member;
  const char* missing;
  const char* wrong;

  constexpr const char* Names() const {
    return internal::kConfigNames[static_cast<size_t>(field)];
  }
};
#define SWITCHYARD_FIELD(field, others)                                \
  {ConfigField::field, &ModelConfig::field, SAYS(field) " is missing", \
   "ModelConfig: " #field " has no such value"},
constexpr Field kFields[] = {SWITCHYARD_CONFIG_FIELDS(SWITCHYARD_FIELD)};
#undef SWITCHYARD_FIELD

// The tables of the names of all fields, and of SetField()'s messages for each
// name.
struct Name {
  const char* text = nullptr;
  size_t field = 0;
  uint8_t number = 0;  // the name's number among its field's names, from 1
  size_t pairs = 0;    // the index of its first message in kOtherValue
};
constexpr size_t CountNames(const Field& field) {
  size_t count = 0;
  for (const char* name = field.Names(); *name != '\0'; name = NextName(name)) {
    ++count;
  }
  return count;
}
// Returns the number of all names or, with are_pairs, of all pairs of names
// that have the same field.
constexpr size_t CountPairs(bool are_pairs) {
  size_t count = 0;
  for (const Field& field : kFields) {
    const size_t names = CountNames(field);
    count += names * (are_pairs ? names : 1);
  }
  return count;
}
constexpr auto kNames = [] {
  std::array<Name, CountPairs(false)> names = {};
  size_t at = 0, pairs = 0;
  for (size_t f = 0; f < std::size(kFields); ++f) {
    const size_t count = CountNames(kFields[f]);
    uint8_t number = 1;
    for (const char* name = kFields[f].Names(); *name != '\0';
         name = NextName(name)) {
      names[at++] = {name, f, number++, pairs};
      pairs += count;
    }
  }
  return names;
}();

using Message = internal::Message<120>;
constexpr const char* Kind(const Member& member) {
  switch (member.index()) {
    case 0:
      return " is not a whole number from 0 to 2^31 - 1";
    case 1:
      return " is neither true nor false";
    case 2:
      return " is not a finite number";
  }
  return " is not a text";
}
constexpr auto kOfAnotherKind = [] {
  std::array<Message, kNames.size()> messages = {};
  for (size_t i = 0; i < messages.size(); ++i) {
    messages[i]
        .Add("SetField: config: ")
        .Add(kNames[i].text)
        .Add(Kind(kFields[kNames[i].field].member));
  }
  return messages;
}();
constexpr auto kOtherValue = [] {
  std::array<Message, CountPairs(true)> messages = {};
  for (const Name& name : kNames) {
    for (const Name& other : kNames) {
      if (other.field != name.field || other.number == name.number) continue;
      messages[name.pairs + other.number - 1u]
          .Add("SetField: config: ")
          .Add(name.text)
          .Add(" differs from ")
          .Add(other.text)
          .Add(", and both are names of one field");
    }
  }
  return messages;
}();
static_assert(std::size(kFields) <= sizeof(ConfigNames));

// Replaces std::visit, which could throw.
template <class Visitor>
auto Visit(const Member& member, const Visitor& visitor) {
  if (const auto* count = std::get_if<0>(&member)) return visitor(*count);
  if (const auto* flag = std::get_if<1>(&member)) return visitor(*flag);
  if (const auto* number = std::get_if<2>(&member)) return visitor(*number);
  return visitor(*std::get_if<3>(&member));
}

bool IsSound(size_t count) { return count <= INT32_MAX; }
bool IsSound(bool) { return true; }
bool IsSound(float number) { return std::isfinite(number); }
bool IsSound(const char* text) { return text != nullptr; }

// Reads a configuration for one family.
class ConfigReader {
 public:
  ConfigReader(const ModelConfig& config, const internal::FamilyFields& fields)
      : config_(config), fields_(fields) {}

  // Returns the error of the first field that is missing or invalid.
  Status Check() const {
    for (const Field& field : kFields) {
      if (!Reads(field.field)) continue;
      const char* wrong = Visit(field.member, [&](auto member) {
        const auto& value = config_.*member;
        if (value.has_value()) {
          return IsSound(*value) ? nullptr : field.wrong;
        }
        return fields_.needs.Has(field.field) ? field.missing : nullptr;
      });
      if (wrong != nullptr) return Invalid(wrong);
    }
    return Status();
  }

  // Returns the configuration's value of a field, or no value if the family
  // does not read the field.
  template <class T>
  std::optional<T> Get(std::optional<T> ModelConfig::*field,
                       ConfigField which) const {
    return Reads(which) ? config_.*field : std::nullopt;
  }
  // True if a configuration without the field is refused.
  bool Needs(ConfigField field) const { return fields_.needs.Has(field); }
  template <class T, class Option>
  void Put(std::optional<T> ModelConfig::*field, ConfigField which,
           Option* option) const {
    const std::optional<T> value = Get(field, which);
    if (value.has_value()) *option = *value;
  }

 private:
  bool Reads(ConfigField field) const {
    return fields_.needs.Has(field) || fields_.reads.Has(field);
  }

  const ModelConfig& config_;
  const internal::FamilyFields& fields_;
};
// FIELD(name) gives the first two arguments of Get() and Put().
#define FIELD(field) &ModelConfig::field, ConfigField::field

Status ReadActivation(const ConfigReader& read, Preset* preset) {
  ActivateOptions& activate = preset->activate;
  if (const auto name = read.Get(FIELD(hidden_act))) {
    constexpr struct {
      const char* name;
      Activation activation;
    } kActivations[] = {{"silu", Activation::kSilu},
                        {"swish", Activation::kSilu},
                        {"gelu", Activation::kGelu},
                        {"gelu_pytorch_tanh", Activation::kGeluTanh},
                        {"gelu_new", Activation::kGeluTanh},
                        {"relu", Activation::kRelu},
                        {"relu2", Activation::kRelu2},
                        {"situ", Activation::kSitu}};
    bool found = false;
    for (const auto& known : kActivations) {
      if (!IsText(*name, known.name)) continue;
      activate.activation = known.activation;
      found = true;
    }
    if (!found) {
      return Invalid(SAYS(
          hidden_act) " is none of silu, gelu, "
                      "gelu_pytorch_tanh, relu, relu2, situ");
    }
  }
  read.Put(FIELD(swiglu_limit), &activate.limit);
  if (activate.limit < 0) return Invalid(SAYS(swiglu_limit) " is negative");
  read.Put(FIELD(swiglu_alpha), &activate.alpha);
  read.Put(FIELD(mlp_gate_softcap), &activate.beta);
  read.Put(FIELD(mlp_up_softcap), &activate.linear_beta);
  return Status();
}

Status ReadGroups(const ConfigReader& read, const Preset& preset,
                  RouteOptions* route) {
  const auto method = read.Get(FIELD(topk_method));
  const bool decides = read.Needs(ConfigField::topk_method);
  if (decides && IsText(*method, "greedy")) return Status();
  if (decides && !IsText(*method, "group_limited_greedy")) {
    return Invalid(SAYS(
        topk_method) " is neither greedy nor "
                     "group_limited_greedy");
  }
  if (method && !decides) {
    const bool is_biased = IsText(*method, "noaux_tc");
    if (!is_biased && !IsText(*method, "greedy") &&
        !IsText(*method, "group_limited_greedy")) {
      return Invalid(SAYS(
          topk_method) " is none of greedy, "
                       "group_limited_greedy, noaux_tc");
    }
    if (is_biased != preset.correction_bias) {
      return Invalid(SAYS(topk_method) " is not the method of this family");
    }
  }
  read.Put(FIELD(n_group), &route->num_expert_group);
  read.Put(FIELD(topk_group), &route->topk_group);
  const size_t groups = route->num_expert_group;
  if (groups == 0 && route->needs_groups) return Invalid(SAYS(n_group) " is 0");
  if (groups <= 1) {
    return route->topk_group > 1 ? Invalid(SAYS(topk_group) " is above n_group")
                                 : Status();
  }
  if (preset.num_experts % groups != 0) {
    return Invalid(SAYS(n_group) " does not divide num_experts");
  }
  if (preset.num_experts / groups < route->group_score_of) {
    return Invalid(SAYS(n_group) " leaves too few experts in a group");
  }
  if (route->topk_group == 0 || route->topk_group > groups) {
    return Invalid(SAYS(topk_group) " is 0 or above n_group");
  }
  return Status();
}

Status ReadScore(const ConfigReader& read, Preset* preset) {
  // Cohere2 selects in one of two ways, and each way is a separate recipe.
  if (const auto selection = read.Get(FIELD(expert_selection_fn))) {
    const bool is_sigmoid = IsText(*selection, "sigmoid");
    if (!is_sigmoid && !IsText(*selection, "softmax")) {
      return Invalid(SAYS(expert_selection_fn) " is neither softmax nor "
                                               "sigmoid");
    }
    Preset selected;
    (void)FindPreset(is_sigmoid ? "cohere2_moe_sigmoid" : "cohere2_moe",
                     &selected);
    preset->route = selected.route;
    preset->in_model_type = selected.in_model_type;
  }
  // SmallThinker's weights are a softmax of the selected logits, or the
  // sigmoids of the selected logits, divided by the sum of these sigmoids.
  if (read.Get(FIELD(moe_primary_router_apply_softmax)).value_or(false)) {
    preset->route.weight_of = WeightOf::kSoftmaxOfSelected;
    preset->route.renormalize = false;
  }
  if (const auto score = read.Get(FIELD(scoring_func))) {
    constexpr struct {
      const char* name;
      Score score;
      WeightOf weight;  // if the recipe has Score::kRaw
    } kScores[] = {{"softmax", Score::kSoftmax, WeightOf::kSoftmaxOfSelected},
                   {"sigmoid", Score::kSigmoid, WeightOf::kSigmoidOfSelected},
                   {"sqrtsoftplus", Score::kSqrtSoftplus, WeightOf::kScore}};
    // dots.llm1 names its method of selection in scoring_func.
    bool is_known = IsText(*score, "noaux_tc");
    bool is_own = is_known && preset->correction_bias;
    for (const auto& known : kScores) {
      if (!IsText(*score, known.name)) continue;
      is_known = true;
      is_own = preset->route.score == known.score ||
               (preset->route.score == Score::kRaw &&
                preset->route.weight_of == known.weight);
    }
    if (!is_known) {
      return Invalid(SAYS(
          scoring_func) " is none of softmax, sigmoid, "
                        "sqrtsoftplus");
    }
    if (!is_own) {
      return Invalid(SAYS(scoring_func) " is not the score of this family");
    }
  }
  return Status();
}

Status ReadRoute(const ConfigReader& read, const internal::FamilyFields& fields,
                 Preset* preset) {
  RouteOptions& route = preset->route;
  Status status = ReadScore(read, preset);
  if (!status.ok()) return status;
  read.Put(FIELD(num_experts), &preset->num_experts);
  read.Put(FIELD(num_experts_per_tok), &preset->top_k);
  if (preset->num_experts == 0) return Invalid(SAYS(num_experts) " is 0");
  if (preset->top_k == 0) return Invalid(SAYS(num_experts_per_tok) " is 0");
  if (route.score == Score::kSparsemixer && preset->top_k != 2) {
    return Invalid(SAYS(num_experts_per_tok) " is not 2");
  }
  status = ReadGroups(read, *preset, &route);
  if (!status.ok()) return status;
  read.Put(FIELD(zero_expert_num), &route.num_zero_experts);
  preset->num_experts += route.num_zero_experts;
  if (preset->num_experts > INT32_MAX) {
    return Invalid(SAYS(zero_expert_num) " and num_experts are more than "
                                         "2^31 - 1");
  }
  if (preset->top_k > preset->num_experts) {
    return Invalid(SAYS(num_experts_per_tok) " is above num_experts");
  }
  preset->form.has_identity_experts =
      fields.has_identity_experts && route.num_zero_experts != 0;

  read.Put(FIELD(norm_topk_prob), &route.renormalize);
  if (const auto uses_bias = read.Get(FIELD(use_expert_bias))) {
    if (read.Needs(ConfigField::use_expert_bias)) {
      preset->correction_bias = route.needs_correction_bias = *uses_bias;
    } else if (*uses_bias != preset->correction_bias) {
      return Invalid(preset->correction_bias
                         ? SAYS(use_expert_bias) " is not this family's, which "
                                                 "has a correction bias"
                         : SAYS(use_expert_bias) " is not this family's, which "
                                                 "has no correction bias");
    }
  }
  if (const auto norm = read.Get(FIELD(moe_normalize_expert_weights))) {
    route.renormalize = *norm != 0;
    if (*norm != 0 && *norm != 1) {
      return Invalid(
          SAYS(moe_normalize_expert_weights) " is not a division by the sum");
    }
  }
  read.Put(FIELD(moe_norm_min), &route.eps);
  if (route.eps < 0) return Invalid(SAYS(moe_norm_min) " is negative");
  read.Put(FIELD(output_multiplier), &route.logit_scale);
  if (route.logit_scale == 0) return Invalid(SAYS(output_multiplier) " is 0");
  read.Put(FIELD(moe_router_logit_softcapping), &route.logit_softcap);
  if (route.logit_softcap < 0) {
    return Invalid(SAYS(moe_router_logit_softcapping) " is negative");
  }
  read.Put(FIELD(router_jitter_noise), &route.jitter_eps);
  if (route.jitter_eps < 0) {
    return Invalid(SAYS(router_jitter_noise) " is negative");
  }
  return Status();
}

Status ReadCombine(const ConfigReader& read,
                   const internal::FamilyFields& fields, Preset* preset) {
  CombineOptions& combine = preset->combine;
  CombineForm& form = preset->form;
  read.Put(FIELD(rms_norm_eps), &combine.eps);
  read.Put(FIELD(rms_norm_eps), &combine.block_eps);
  read.Put(FIELD(post_norm_eps), &combine.block_eps);
  if (fields.rms_norm_needs_eps) {
    combine.needs_other_norm = !read.Get(FIELD(rms_norm_eps)).has_value();
  }
  if (combine.eps < 0) return Invalid(SAYS(rms_norm_eps) " is negative");
  if (combine.block_eps < 0) return Invalid(SAYS(post_norm_eps) " is negative");
  read.Put(FIELD(routed_scaling_factor),
           fields.scales_sum ? &combine.scales.routed
                             : &preset->route.routed_scaling_factor);
  if (preset->route.routed_scaling_factor < 0 || combine.scales.routed < 0) {
    return Invalid(SAYS(routed_scaling_factor) " is negative");
  }
  if (fields.divides_by_top_k) {
    combine.scales.routed = static_cast<float>(preset->top_k);
    preset->route.routed_scaling_factor = 1.0f / combine.scales.routed;
  }
  read.Put(FIELD(residual_multiplier), &combine.scales.block);
  read.Put(FIELD(mlp_alpha_factor), &combine.scales.residual);
  read.Put(FIELD(mlp_beta_factor), &combine.scales.block);

  // Inkling's logits have columns for the shared experts.
  read.Put(FIELD(n_shared_experts), preset->route.shared_logits
                                        ? &preset->route.num_shared_experts
                                        : &form.num_shared_experts);
  if (preset->route.shared_logits) {
    form.num_shared_experts = preset->route.num_shared_experts;
    preset->route.shared_logits = form.num_shared_experts != 0;
  }
  if (const auto width = read.Get(FIELD(shared_intermediate_size))) {
    form.num_shared_experts = *width != 0;
  }
  if (const auto way = read.Get(FIELD(shared_expert_combination_strategy))) {
    const bool averages = IsText(*way, "average");
    if (!averages && !IsText(*way, "sum")) {
      return Invalid(SAYS(shared_expert_combination_strategy) " is neither "
                                                              "average nor sum");
    }
    if (averages && form.num_shared_experts != 0) combine.scales.block = 0.5f;
  }
  read.Put(FIELD(moe_apply_router_weight_on_input), &form.has_weights_on_input);
  if (form.has_weights_on_input) {
    preset->activate.row_scale_place = ActivatePlace::kBefore;
  }
  return Status();
}

// Converts a number or a text to a field's value. Returns false if the field
// takes another kind of value.
bool Convert(double value, std::optional<size_t>* field) {
  if (!(value >= 0 && value <= INT32_MAX) || value != std::floor(value)) {
    return false;
  }
  *field = static_cast<size_t>(value);
  return true;
}
bool Convert(double value, std::optional<bool>* field) {
  if (value != 0 && value != 1) return false;
  *field = value == 1;
  return true;
}
bool Convert(double value, std::optional<float>* field) {
  const float number = static_cast<float>(value);
  if (!std::isfinite(number)) return false;
  *field = number;
  return true;
}
bool Convert(const char* value, std::optional<const char*>* field) {
  *field = value;
  return true;
}
bool Convert(double, std::optional<const char*>*) { return false; }
template <class T>
bool Convert(const char*, std::optional<T>*) {
  return false;
}

// Returns the name equal to `key`, or null. DBRX's names are in ffn_config.
const Name* FindName(const char* key) {
  constexpr char kInside[] = "ffn_config.";
  if (std::strncmp(key, kInside, sizeof(kInside) - 1) == 0) {
    key += sizeof(kInside) - 1;
  }
  for (const Name& name : kNames) {
    if (IsText(key, name.text)) return &name;
  }
  return nullptr;
}

template <class T>
bool IsSame(const std::optional<T>& a, const std::optional<T>& b) {
  return a == b;
}
bool IsSame(const std::optional<const char*>& a,
            const std::optional<const char*>& b) {
  return a.has_value() == b.has_value() && (!a.has_value() || IsText(*a, *b));
}

// Calls put(field) for the field that is called `key`. put() returns false if
// the field cannot take the value.
template <class Put>
Status SetAny(const char* key, ModelConfig* config, const Put& put) {
  const internal::DefaultFpEnv fp_env;  // the caller's environment may trap
  if (key == nullptr) return Invalid("SetField: key: is null");
  if (config == nullptr) return Invalid("SetField: config: is null");
  const Name* name = FindName(key);
  if (name == nullptr) return Status();
  uint8_t& set_by = config->names.of[name->field];
  return Visit(kFields[name->field].member, [&](auto member) {
    auto value = config->*member;
    if (!put(&value)) {
      return Invalid(
          kOfAnotherKind[static_cast<size_t>(name - kNames.data())].text);
    }
    // Checks set_by, because the caller's struct may hold any number.
    const bool is_other = set_by != 0 && set_by != name->number &&
                          set_by <= CountNames(kFields[name->field]);
    // An empty value does not unset a field that another name has set.
    if (is_other && !value.has_value()) return Status();
    if (is_other && (config->*member).has_value() &&
        !IsSame(value, config->*member)) {
      return Invalid(kOtherValue[name->pairs + set_by - 1u].text);
    }
    config->*member = value;
    set_by = value.has_value() ? name->number : uint8_t{0};
    return Status();
  });
}

}  // namespace

Status SetField(const char* key, double value, ModelConfig* config) noexcept {
  return SetAny(key, config,
                [value](auto* field) { return Convert(value, field); });
}
Status SetField(const char* key, const char* text,
                ModelConfig* config) noexcept {
  if (text == nullptr) return Invalid("SetField: text: is null");
  return SetAny(key, config,
                [text](auto* field) { return Convert(text, field); });
}
Status SetNull(const char* key, ModelConfig* config) noexcept {
  if (key == nullptr) return Invalid("SetNull: key: is null");
  if (config == nullptr) return Invalid("SetNull: config: is null");
  const bool is_zero =
      FindName(key) != nullptr && kFields[FindName(key)->field].field ==
                                      ConfigField::moe_normalize_expert_weights;
  if (is_zero) return SetField(key, 0.0, config);
  return SetAny(key, config, [](auto* field) {
    field->reset();
    return true;
  });
}

Status ApplyConfig(const ModelConfig& config, Preset* preset) noexcept {
  const internal::DefaultFpEnv fp_env;  // the caller's environment may trap
  if (preset == nullptr) return Invalid("ApplyConfig: preset: is null");
  const internal::FamilyFields* fields =
      preset->family == nullptr ? nullptr
                                : internal::FieldsOfFamily(preset->family);
  if (fields == nullptr) {
    return Invalid("ApplyConfig: preset: its family is not in Presets()");
  }
  Preset applied = *preset;
  if (fields->other_family != nullptr && config.scoring_func.has_value() &&
      IsText(*config.scoring_func, fields->other_score)) {
    Preset other;
    (void)FindPreset(fields->other_family, &other);
    fields = internal::FieldsOfFamily(fields->other_family);
    applied.route = other.route;
    applied.correction_bias = other.correction_bias;
    applied.in_model_type = other.in_model_type;
  }
  const ConfigReader read(config, *fields);
  Status status = read.Check();
  if (status.ok()) status = ReadRoute(read, *fields, &applied);
  if (status.ok()) status = ReadActivation(read, &applied);
  if (status.ok()) status = ReadCombine(read, *fields, &applied);
  if (!status.ok()) return status;
  applied.route.needs_config = false;
  *preset = applied;
  return status;
}

}  // namespace switchyard
