// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "model_config.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "common/program.h"

namespace moe_layer {
namespace {

using example::InputError;

using nlohmann::json;

// Sizes are multiplied by each other: below this, two of them and the size of a
// float stay within 64 bits.
constexpr uint64_t kMaxSize = INT32_MAX;

const Family& FamilyOf(const std::string& path, const json& config) {
  const auto type = config.find("model_type");
  if (type == config.end()) throw InputError(path + ": model_type: missing");
  const Family* family =
      type->is_string() ? FindFamily(type->get<std::string>()) : nullptr;
  if (family == nullptr) {
    throw InputError(path + ": model_type: " + type->dump() +
                     " is not supported; there are " + FamilyList());
  }
  return *family;
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
  shape_.renormalize = Flag(keys.renormalize, family.renormalize);
  shape_.norm_eps = Epsilon(keys.norm_eps);
  if (shape_.top_k > shape_.num_experts) {
    throw InputError(path_ + ": " + keys.top_k + ": " +
                     std::to_string(shape_.top_k) + ", but " +
                     keys.num_experts + " is " +
                     std::to_string(shape_.num_experts));
  }
  const auto activation = config_.find(keys.activation);
  if (activation != config_.end() && *activation != "silu") {
    throw InputError(path_ + ": " + keys.activation + ": " +
                     activation->dump() + " is not supported; only \"silu\"");
  }
  ReadDenseLayers();
}

void ModelConfig::ReadDenseLayers() {
  const Family::Keys& keys = family_->keys;
  if (keys.sparse_step != nullptr && config_.contains(keys.sparse_step)) {
    sparse_step_ = Size(keys.sparse_step);
  }
  if (keys.dense_layers == nullptr || !config_.contains(keys.dense_layers)) {
    return;
  }
  const json& list = config_[keys.dense_layers];
  if (list.is_null()) return;
  const auto is_layer = [](const json& v) { return v.is_number_unsigned(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_layer)) {
    throw InputError(path_ + ": " + keys.dense_layers +
                     ": expected a list of layers, found " + list.dump());
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
    for (size_t candidate = 0; candidate < num_layers_; ++candidate) {
      if (WhyDense(candidate).empty()) return candidate;
    }
    throw InputError(path_ + ": every layer is dense, none has experts");
  }
  const size_t number = *layer;
  if (number >= num_layers_) {
    throw InputError("--layer " + std::to_string(number) + ": " + path_ +
                     " has layers 0 to " + std::to_string(num_layers_ - 1));
  }
  const std::string why_dense = WhyDense(number);
  if (!why_dense.empty()) {
    throw InputError("--layer " + std::to_string(number) + ": " + path_ +
                     ": layer " + std::to_string(number) + " is dense (" +
                     why_dense + ")");
  }
  return number;
}

const json& ModelConfig::Require(const char* key) const {
  const auto found = config_.find(key);
  if (found == config_.end()) {
    throw InputError(path_ + ": " + key + ": missing");
  }
  return *found;
}

size_t ModelConfig::Size(const char* key) const {
  const json& value = Require(key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 ||
      value.get<uint64_t>() > kMaxSize) {
    throw InputError(path_ + ": " + key + ": expected an integer from 1 to " +
                     std::to_string(kMaxSize) + ", found " + value.dump());
  }
  return value.get<size_t>();
}

float ModelConfig::Epsilon(const char* key) const {
  const json& value = Require(key);
  // Not above 1: larger ones are a mistake, and might not fit a float.
  if (!value.is_number() || !(value.get<double>() >= 0) ||
      value.get<double>() > 1) {
    throw InputError(path_ + ": " + key +
                     ": expected a number from 0 to 1, found " + value.dump());
  }
  return value.get<float>();
}

bool ModelConfig::Flag(const char* key, bool fallback) const {
  if (key == nullptr || !config_.contains(key)) return fallback;
  const json& value = config_[key];
  if (!value.is_boolean()) {
    throw InputError(path_ + ": " + key + ": expected true or false, found " +
                     value.dump());
  }
  return value.get<bool>();
}

}  // namespace moe_layer
