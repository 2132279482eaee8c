// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "model_config.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "programs/for_each.h"
#include "programs/program.h"
#include "src/families.h"
#include "src/preset_fields.h"
#include "switchyard/presets.h"

namespace moe_layer {
namespace {

using nlohmann::json;
using program::InputError;
using switchyard::internal::ConfigField;

// The largest size that is accepted. The product of two such sizes and the size
// of a float fits 64 bits.
constexpr uint64_t kMaxSize = INT32_MAX;

// Keys of objects in config.json that may hold the text model's configuration.
constexpr const char* kTextConfigs[] = {"text_config", "language_config",
                                        "llm_config", "thinker_config"};

// Returns the family that the object's model_type names, or null if moe_layer
// cannot run this family's layer.
const Family* FindFamily(const json& config) {
  const auto type = config.find("model_type");
  if (type == config.end()) return nullptr;
  for (const Family& family : kFamilies) {
    if (family.layer != nullptr && *type == family.preset.family) {
      return &family;
    }
  }
  return nullptr;
}

// Returns the object in `config` that has the text model's fields: an inner
// object whose model type is a family, or else `config` itself.
const json& TextOf(const json& config) {
  for (const char* key : kTextConfigs) {
    const auto text = config.find(key);
    if (text == config.end() || !text->is_object()) continue;
    const json& inside = TextOf(*text);
    if (FindFamily(inside) != nullptr) return inside;
  }
  return config;
}

// Returns the names that config.json may have for a field.
std::vector<const char*> NamesOf(ConfigField field) {
  std::vector<const char*> names;
  for (const char* name =
           switchyard::internal::kConfigNames[static_cast<size_t>(field)];
       *name != '\0'; name = switchyard::internal::NextName(name)) {
    names.push_back(name);
  }
  return names;
}

// If `value` is a list that has the same value for all layers, returns this
// value. Otherwise returns `value`.
const json& OfAllLayers(const json& value) {
  const bool is_same =
      value.is_array() && !value.empty() && value[0].is_primitive() &&
      std::all_of(value.begin(), value.end(),
                  [&](const json& v) { return v == value[0]; });
  return is_same ? value[0] : value;
}

// Sets the field that the file calls `key`. Returns an error for a list with
// different values.
switchyard::Status SetField(const std::string& key, const json& whole,
                            switchyard::ModelConfig* fields) {
  const json& value = OfAllLayers(whole);
  if (value.is_null()) return switchyard::SetNull(key.c_str(), fields);
  if (value.is_string()) {
    return switchyard::SetField(
        key.c_str(), value.get_ref<const std::string&>().c_str(), fields);
  }
  const double number =
      value.is_boolean()  ? static_cast<double>(value.get<bool>())
      : value.is_number() ? value.get<double>()
                          : std::numeric_limits<double>::quiet_NaN();
  return value.is_array() && value.empty()
             ? switchyard::Status()
             : switchyard::SetField(key.c_str(), number, fields);
}

// Returns "KEY is wrong" for "SetField: config: KEY is wrong".
std::string WithoutPlace(const switchyard::Status& status) {
  const std::string message = status.message();
  return message.substr(message.rfind(": ") + 2);
}

const Family& FamilyOf(const std::string& path, const json& config) {
  const Family* found = FindFamily(TextOf(config));
  if (found != nullptr) return *found;
  const auto type = config.find("model_type");
  if (type == config.end()) throw InputError(path + ": model_type: missing");
  throw InputError(path + ": model_type: " + type->dump() +
                   " is not supported; there are " + KnownFamilies());
}

}  // namespace

std::string KnownFamilies() {
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.layer == nullptr) continue;
    known += (known.empty() ? "" : ", ") + std::string(family.preset.family);
  }
  return known;
}

ModelConfig::ModelConfig(const std::string& path, const json& config)
    : ModelConfig(path, config, FamilyOf(path, config)) {}

ModelConfig::ModelConfig(const std::string& path, const json& config,
                         const Family& family)
    : ModelConfig(path, config, family.preset.family, *family.layer) {}

ModelConfig::ModelConfig(const std::string& path, const json& config,
                         const char* family, const FamilyLayer& layer)
    : path_(path), config_(TextOf(config)), family_(family), layer_(layer) {
  ReadSizes();
  ReadRecipe();
  for (const LayerRule& rule : layer.rules) {
    if (rule.key != nullptr) AddRule(rule);
  }
}

const char* ModelConfig::KeyOf(ConfigField field) const {
  const std::vector<const char*> names = NamesOf(field);
  const auto found = std::find_if(names.begin(), names.end(),
                                  [this](auto name) { return Has(name); });
  return found == names.end() ? names.front() : *found;
}

void ModelConfig::ReadSizes() {
  num_layers_ = Size(layer_.num_layers);
  shape_.hidden = Size(layer_.hidden);
  shape_.intermediate = Size(layer_.intermediate);
  const char* const experts = KeyOf(ConfigField::num_experts);
  const char* const top_k = KeyOf(ConfigField::num_experts_per_tok);
  shape_.num_experts = Size(experts);
  shape_.top_k = Size(top_k);
  const bool has_shared = layer_.shared.module != nullptr;
  const char* const width = layer_.shared_intermediate;
  const char* const shared = KeyOf(ConfigField::n_shared_experts);
  if (width != nullptr) {
    if (!layer_.shared_is_optional || Has(width)) {
      shape_.shared_intermediate =
          Size(width, layer_.shared_is_optional ? 0 : 1);
    }
  } else if (has_shared && Has(shared)) {
    const size_t count = Size(shared, 0);
    if (count > kMaxSize / shape_.intermediate) {
      Fail(shared, std::to_string(count) + " times " + layer_.intermediate +
                       " is more than " + std::to_string(kMaxSize));
    }
    shape_.shared_intermediate = count * shape_.intermediate;
  }
  shape_.norm_eps = Number(KeyOf(ConfigField::rms_norm_eps), 1);
  if (shape_.top_k > shape_.num_experts) {
    Fail(top_k, std::to_string(shape_.top_k) + ", but " + experts + " is " +
                    std::to_string(shape_.num_experts));
  }
}

void ModelConfig::ReadRecipe() {
  for (const char* const key : NamesOf(ConfigField::hidden_act)) {
    if (!Has(key) || config_[key] == layer_.hidden_act) continue;
    Fail(key, config_[key].dump() + " is not supported; only \"" +
                  layer_.hidden_act + "\"");
  }
  const char* const enabled_by = layer_.enabled_by;
  if (enabled_by != nullptr &&
      (!Has(enabled_by) || config_[enabled_by] != true)) {
    Fail(enabled_by, "not true: no layer has experts");
  }
  switchyard::Preset preset;
  program::Check(switchyard::FindPreset(family_, &preset));
  Apply(&preset);
  shape_.route = preset.route;
  if (layer_.bias_in_logits) {
    shape_.route.bias_place = switchyard::BiasPlace::kLogit;
    shape_.route.bias_in_weight = true;
  }
  shape_.activate = preset.activate;
  shape_.activate.layout = switchyard::GateUpLayout::kConcatenated;
  shape_.shared_gate = preset.form.shared_gate;
  shape_.norm = preset.combine.norm;
  shape_.scales = preset.combine.scales;
  shape_.weighs_input = preset.form.has_weights_on_input;
  shape_.residual = preset.form.has_residual;
}

void ModelConfig::Apply(switchyard::Preset* preset) const {
  switchyard::ModelConfig fields;
  const auto set = [&](const std::string& key, const json& value) {
    const switchyard::Status status = SetField(key, value, &fields);
    if (status.ok()) return;
    // The library's message is "KEY is wrong". Fail() prints the key, so this
    // replaces it by the value.
    const std::string message = WithoutPlace(status);
    Fail(key.c_str(), value.dump() + message.substr(message.find(' ')));
  };
  for (const auto& [key, value] : config_.items()) {
    if (!value.is_object()) {
      set(key, value);
      continue;
    }
    for (const auto& [inner, of_inner] : value.items()) {
      if (!of_inner.is_object()) set(key + "." + inner, of_inner);
    }
  }
  // Sets the three fields that ReadSizes() has read, because this family may
  // have other names for them.
  fields.num_experts = shape_.num_experts;
  fields.num_experts_per_tok = shape_.top_k;
  fields.rms_norm_eps = shape_.norm_eps;
  const switchyard::Status status = switchyard::ApplyConfig(fields, preset);
  if (status.ok()) return;
  // Replaces the field in the library's message, "FIELD is wrong", by the
  // file's key and value.
  const std::string message = WithoutPlace(status);
  const std::string field = message.substr(0, message.find(' '));
  const std::string rest = message.substr(field.size() + 1);
  const std::string key = KeyOfField(field);
  Fail(key.c_str(), Has(key.c_str()) ? config_[key].dump() + " " + rest : rest);
}

std::string ModelConfig::KeyOfField(const std::string& field) const {
  for (const auto& [key, value] : config_.items()) {
    switchyard::ModelConfig by_key, by_field;
    if (value.is_structured() || !SetField(key, value, &by_key).ok() ||
        !SetField(field, value, &by_field).ok()) {
      continue;
    }
    // SetField() makes names.of[i] nonzero when it sets field i. If `key` and
    // `field` set the same field, `key` is the file's name for the field.
    for (size_t i = 0; i < sizeof(by_key.names.of); ++i) {
      if (by_key.names.of[i] != 0 && by_field.names.of[i] != 0) return key;
    }
  }
  return field;
}

void ModelConfig::AddRule(const LayerRule& rule) {
  if (!Has(rule.key)) return;
  Rule added{rule};
  const json& value = config_[rule.key];
  switch (rule.kind) {
    case LayerRule::kStep:
      added.number = Size(rule.key);
      break;
    case LayerRule::kFirst:
    case LayerRule::kFirstByHash:
      added.number = Size(rule.key, 0);
      break;
    case LayerRule::kLast:
      if (value == -1) return;  // -1 means the last layer
      added.number = Size(rule.key, 0);
      break;
    case LayerRule::kFlags: {
      if (!value.is_array()) {
        added.number = Size(rule.key);
        break;
      }
      const auto is_flag = [](const json& v) {
        return v.is_boolean() || v == 0 || v == 1;
      };
      if (!std::all_of(value.begin(), value.end(), is_flag)) {
        Fail(rule.key,
             "expected a list of 0 and 1 or a number, found " + value.dump());
      }
      for (size_t i = 0; i < value.size(); ++i) {
        if (value[i] == 1 || value[i] == true) added.list.push_back(i);
      }
      break;
    }
    case LayerRule::kTypes: {
      const auto is_text = [](const json& v) { return v.is_string(); };
      if (!value.is_array() ||
          !std::all_of(value.begin(), value.end(), is_text)) {
        Fail(rule.key, "expected a list of words, found " + value.dump());
      }
      for (size_t i = 0; i < value.size(); ++i) {
        if (value[i] == rule.type) added.list.push_back(i);
      }
      break;
    }
    case LayerRule::kDense:
    case LayerRule::kListed: {
      const auto is_layer = [](const json& v) {
        return v.is_number_unsigned();
      };
      if (!value.is_array() ||
          !std::all_of(value.begin(), value.end(), is_layer)) {
        Fail(rule.key, "expected a list of layers, found " + value.dump());
      }
      added.list = value.get<std::vector<size_t>>();
      std::sort(added.list.begin(), added.list.end());
      break;
    }
  }
  rules_.push_back(std::move(added));
}

size_t ModelConfig::Rule::First(size_t layer) const {
  const auto from = std::lower_bound(list.begin(), list.end(), layer);
  switch (rule.kind) {
    case LayerRule::kDense:
      for (auto dense = from; dense != list.end() && *dense <= layer; ++dense) {
        if (*dense == layer) ++layer;
      }
      return layer;
    case LayerRule::kStep:
      return layer + (number - (layer + 1) % number) % number;
    case LayerRule::kFirst:
    case LayerRule::kFirstByHash:
      return std::max(layer, number);
    case LayerRule::kLast:
      return layer <= number ? layer : SIZE_MAX;
    case LayerRule::kFlags:
      if (number != 0) return layer + (number - layer % number) % number;
      [[fallthrough]];
    case LayerRule::kListed:
    case LayerRule::kTypes:
      return from == list.end() ? SIZE_MAX : *from;
  }
  return layer;
}

size_t ModelConfig::FirstFrom(size_t layer) const {
  for (size_t agreed = 0; agreed < rules_.size() && layer < num_layers_;) {
    agreed = 0;
    for (const Rule& rule : rules_) {
      const size_t first = rule.First(layer);
      if (first == layer) {
        ++agreed;
        continue;
      }
      layer = first;
      break;
    }
  }
  return layer < num_layers_ ? layer : SIZE_MAX;
}

std::string ModelConfig::WhyNot(size_t layer) const {
  for (const Rule& broken : rules_) {
    if (broken.First(layer) == layer) continue;
    const LayerRule& rule = broken.rule;
    const std::string is =
        std::string(rule.key) + " is " + std::to_string(broken.number) + ")";
    switch (rule.kind) {
      case LayerRule::kDense:
        return std::string("is dense (listed in ") + rule.key + ")";
      case LayerRule::kListed:
        return std::string("is dense (not listed in ") + rule.key + ")";
      case LayerRule::kTypes: {
        const json& types = config_[rule.key];
        const std::string type =
            layer < types.size() ? types[layer].dump() : "nothing";
        return std::string(type == "\"hash_moe\"" ? "routes by token id ("
                                                  : "is dense (") +
               rule.key + " has " + type + " for it)";
      }
      case LayerRule::kFlags:
        return broken.number != 0
                   ? "is dense (" + is
                   : std::string("is dense (") + rule.key + " has no 1 for it)";
      case LayerRule::kFirstByHash:
        return "routes by token id (" + is;
      case LayerRule::kStep:
      case LayerRule::kFirst:
      case LayerRule::kLast:
        return "is dense (" + is;
    }
  }
  return "";
}

size_t ModelConfig::SelectLayer(std::optional<size_t> layer) const {
  if (!layer.has_value()) {
    const size_t first = FirstFrom(0);
    if (first != SIZE_MAX) return first;
    throw InputError(path_ + ": every layer is dense, none has experts");
  }
  const std::string number = std::to_string(*layer);
  const std::string option = "--layer " + number + ": " + path_;
  if (*layer >= num_layers_) {
    throw InputError(option + " has layers 0 to " +
                     std::to_string(num_layers_ - 1));
  }
  const std::string why_not = WhyNot(*layer);
  if (!why_not.empty()) {
    throw InputError(option + ": layer " + number + " " + why_not);
  }
  return *layer;
}

bool ModelConfig::Has(const char* key) const {
  if (key == nullptr) return false;
  const auto found = config_.find(key);
  return found != config_.end() && !found->is_null();
}

void ModelConfig::Fail(const char* key, const std::string& what) const {
  throw InputError(path_ + ": " + key + ": " + what);
}

const json& ModelConfig::Require(const char* key) const {
  if (!Has(key)) Fail(key, "missing");
  return config_[key];
}

size_t ModelConfig::Size(const char* key, size_t least) const {
  const json& value = OfAllLayers(Require(key));
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least ||
      value.get<uint64_t>() > kMaxSize) {
    Fail(key, "expected an integer from " + std::to_string(least) + " to " +
                  std::to_string(kMaxSize) + ", found " + value.dump());
  }
  return value.get<size_t>();
}

float ModelConfig::Number(const char* key, double most) const {
  const json& value = Require(key);
  // Refuses numbers above `most`, because they are a mistake and might not fit
  // a float.
  if (!value.is_number() || !(value.get<double>() >= 0) ||
      value.get<double>() > most) {
    Fail(key, "expected a number from 0 to " +
                  std::to_string(static_cast<int>(most)) + ", found " +
                  value.dump());
  }
  return value.get<float>();
}

}  // namespace moe_layer
