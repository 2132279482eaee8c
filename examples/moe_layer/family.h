// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_FAMILY_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_FAMILY_H_

#include <string>

namespace moe_layer {

// What a model family calls things. A new family of softmax-routed, SiLU-gated
// experts is one more entry of the table in family.cc and nothing else.
struct Family {
  const char* model_type;  // config.json's

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

// Nullptr for a model type that is not in the table.
const Family* FindFamily(const std::string& model_type);

// The table's model types, "a, b, c", for error messages.
std::string FamilyList();

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_FAMILY_H_
