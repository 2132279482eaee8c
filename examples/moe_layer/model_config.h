// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_MODEL_CONFIG_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_MODEL_CONFIG_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace moe_layer {

// What a model family calls things. A new family of softmax-routed, SiLU-gated
// experts is one more entry of the table in model_config.cc and nothing else.
struct Family {
  const char* model_type = "qwen3_moe";  // config.json's

  // Keys of config.json.
  struct Keys {
    const char* num_layers = "num_hidden_layers";
    const char* hidden = "hidden_size";
    const char* intermediate = "moe_intermediate_size";  // of one expert
    const char* num_experts = "num_experts";
    const char* top_k = "num_experts_per_tok";
    const char* norm_eps = "rms_norm_eps";
    const char* activation = "hidden_act";  // has to be "silu"; may be absent
    // Whether the selected weights are divided by their sum; null or absent
    // from config.json: `renormalize` below.
    const char* renormalize = "norm_topk_prob";
    const char* shared_intermediate = nullptr;  // null: no shared expert
    // A layer is dense if listed under the first, or if its number + 1 is no
    // multiple of the second. Null or absent: no layer is.
    const char* dense_layers = "mlp_only_layers";
    const char* sparse_step = "decoder_sparse_step";
  } keys;
  bool renormalize = false;

  // Tensor names; {layer} and {expert} stand for numbers.
  struct Names {
    const char* norm = "model.layers.{layer}.post_attention_layernorm.weight";
    const char* next_norm = "model.layers.{layer}.input_layernorm.weight";
    const char* last_norm = "model.norm.weight";  // after the last layer
    const char* router = "model.layers.{layer}.mlp.gate.weight";
    const char* gate =
        "model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight";
    const char* up = "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight";
    const char* down =
        "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight";
    // Of the shared expert, where there is one. `shared_logit` is [1, hidden]:
    // the sigmoid of its product with a token weights that expert.
    const char* shared_gate = nullptr;
    const char* shared_up = nullptr;
    const char* shared_down = nullptr;
    const char* shared_logit = nullptr;
  } names;
};

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
  // Whether the family has the key and config.json a value for it.
  bool Has(const char* key) const;
  [[noreturn]] void Fail(const char* key, const std::string& what) const;

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
