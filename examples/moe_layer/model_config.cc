// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "model_config.h"

#include <algorithm>
#include <cstdint>

#include "programs/program.h"

namespace moe_layer {
namespace {

using nlohmann::json;
using program::InputError;

// Sizes are multiplied by each other: below this, two of them and the size of a
// float stay within 64 bits.
constexpr uint64_t kMaxSize = INT32_MAX;

Family Qwen2Moe() {
  Family family;
  family.model_type = "qwen2_moe";
  family.keys.shared_intermediate = "shared_expert_intermediate_size";
  family.names.shared_gate =
      "model.layers.{layer}.mlp.shared_expert.gate_proj.weight";
  family.names.shared_up =
      "model.layers.{layer}.mlp.shared_expert.up_proj.weight";
  family.names.shared_down =
      "model.layers.{layer}.mlp.shared_expert.down_proj.weight";
  family.names.shared_logit =
      "model.layers.{layer}.mlp.shared_expert_gate.weight";
  return family;
}

const Family& FamilyOf(const std::string& path, const json& config) {
  static const Family families[] = {Qwen2Moe(), Family()};
  const auto type = config.find("model_type");
  if (type == config.end()) throw InputError(path + ": model_type: missing");
  std::string known;
  for (const Family& family : families) {
    if (*type == family.model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  throw InputError(path + ": model_type: " + type->dump() +
                   " is not supported; there are " + known);
}

}  // namespace

ModelConfig::ModelConfig(const std::string& path, const json& config)
    : ModelConfig(path, config, FamilyOf(path, config)) {}

ModelConfig::ModelConfig(const std::string& path, const json& config,
                         const Family& family)
    : path_(path), config_(config), family_(&family) {
  const Family::Keys& keys = family.keys;
  num_layers_ = Size(keys.num_layers);
  shape_.hidden = Size(keys.hidden);
  shape_.intermediate = Size(keys.intermediate);
  shape_.num_experts = Size(keys.num_experts);
  shape_.top_k = Size(keys.top_k);
  if (keys.shared_intermediate != nullptr) {
    shape_.shared_intermediate = Size(keys.shared_intermediate);
  }
  shape_.renormalize = family.renormalize;
  if (Has(keys.renormalize)) {
    const json& value = config_[keys.renormalize];
    if (!value.is_boolean()) {
      Fail(keys.renormalize, "expected true or false, found " + value.dump());
    }
    shape_.renormalize = value.get<bool>();
  }
  shape_.norm_eps = Epsilon(keys.norm_eps);
  if (shape_.top_k > shape_.num_experts) {
    Fail(keys.top_k, std::to_string(shape_.top_k) + ", but " +
                         keys.num_experts + " is " +
                         std::to_string(shape_.num_experts));
  }
  if (Has(keys.activation) && config_[keys.activation] != "silu") {
    Fail(keys.activation,
         config_[keys.activation].dump() + " is not supported; only \"silu\"");
  }
  if (Has(keys.sparse_step)) sparse_step_ = Size(keys.sparse_step);
  if (!Has(keys.dense_layers) || config_[keys.dense_layers].is_null()) return;
  const json& list = config_[keys.dense_layers];
  const auto is_layer = [](const json& v) { return v.is_number_unsigned(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_layer)) {
    Fail(keys.dense_layers, "expected a list of layers, found " + list.dump());
  }
  dense_layers_ = list.get<std::vector<size_t>>();
}

std::string ModelConfig::WhyDense(size_t layer) const {
  const Family::Keys& keys = family_->keys;
  if (std::find(dense_layers_.begin(), dense_layers_.end(), layer) !=
      dense_layers_.end()) {
    return std::string("listed in ") + keys.dense_layers;
  }
  if ((layer + 1) % sparse_step_ != 0) {
    return std::string(keys.sparse_step) + " is " +
           std::to_string(sparse_step_);
  }
  return "";
}

size_t ModelConfig::SelectLayer(std::optional<size_t> layer) const {
  if (!layer.has_value()) {
    // No more of these are dense than are listed: the search ends soon even
    // where config.json claims 2^31 layers.
    for (size_t candidate = sparse_step_ - 1; candidate < num_layers_;
         candidate += sparse_step_) {
      if (WhyDense(candidate).empty()) return candidate;
    }
    throw InputError(path_ + ": every layer is dense, none has experts");
  }
  const std::string number = std::to_string(*layer);
  const std::string option = "--layer " + number + ": " + path_;
  if (*layer >= num_layers_) {
    throw InputError(option + " has layers 0 to " +
                     std::to_string(num_layers_ - 1));
  }
  const std::string why_dense = WhyDense(*layer);
  if (!why_dense.empty()) {
    throw InputError(option + ": layer " + number + " is dense (" + why_dense +
                     ")");
  }
  return *layer;
}

bool ModelConfig::Has(const char* key) const {
  return key != nullptr && config_.contains(key);
}

void ModelConfig::Fail(const char* key, const std::string& what) const {
  throw InputError(path_ + ": " + key + ": " + what);
}

const json& ModelConfig::Require(const char* key) const {
  if (!Has(key)) Fail(key, "missing");
  return config_[key];
}

size_t ModelConfig::Size(const char* key) const {
  const json& value = Require(key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 ||
      value.get<uint64_t>() > kMaxSize) {
    Fail(key, "expected an integer from 1 to " + std::to_string(kMaxSize) +
                  ", found " + value.dump());
  }
  return value.get<size_t>();
}

float ModelConfig::Epsilon(const char* key) const {
  const json& value = Require(key);
  // Not above 1: larger ones are a mistake, and might not fit a float.
  if (!value.is_number() || !(value.get<double>() >= 0) ||
      value.get<double>() > 1) {
    Fail(key, "expected a number from 0 to 1, found " + value.dump());
  }
  return value.get<float>();
}

}  // namespace moe_layer
