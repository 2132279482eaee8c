// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_MODEL_CONFIG_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_MODEL_CONFIG_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "family.h"

namespace moe_layer {

// The sizes and recipe of one MoE block.
struct MoeShape {
  size_t hidden = 0;
  size_t intermediate = 0;
  size_t num_experts = 0;
  size_t top_k = 0;
  size_t shared_intermediate = 0;  // 0: no shared expert
  bool renormalize = false;
  float norm_eps = 0;
};

// What config.json says of a model. Throws InputError, with `path` in front.
class ModelConfig {
 public:
  // The family comes from the file's model_type, or is given.
  ModelConfig(const std::string& path, const nlohmann::json& config);
  ModelConfig(const std::string& path, const nlohmann::json& config,
              const Family& family);

  const Family& family() const { return *family_; }
  const MoeShape& shape() const { return shape_; }
  size_t num_layers() const { return num_layers_; }

  // Why the layer has a dense MLP instead of experts; empty if it has experts.
  std::string WhyDense(size_t layer) const;
  // Checks the layer asked for; without one, picks the first with experts.
  size_t SelectLayer(std::optional<size_t> layer) const;

 private:
  const nlohmann::json& Require(const char* key) const;
  size_t Size(const char* key) const;
  float Epsilon(const char* key) const;
  // The value where the key is present, else `fallback`.
  bool Flag(const char* key, bool fallback) const;
  void ReadDenseLayers();

  std::string path_;
  nlohmann::json config_;
  const Family* family_;
  MoeShape shape_;
  size_t num_layers_ = 0;
  std::vector<size_t> dense_layers_;
  size_t sparse_step_ = 1;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_MODEL_CONFIG_H_
