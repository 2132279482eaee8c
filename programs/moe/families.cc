// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Names as the checkpoints have them, which are not always transformers' own:
// it renames while it loads (conversion_mapping.py of 5.23).

#include "families.h"

#include <utility>

namespace moe_layer {
namespace {

using Experts = Family::Names::Experts;

std::string Layer(const std::string& name) {
  return "{root}layers.{layer}." + name;
}

// A gated MLP of Llama's, or of each expert where `module` has {expert}.
Experts Mlp(const std::string& module) {
  return {Layer(module) + ".gate_proj.weight",
          Layer(module) + ".up_proj.weight",
          Layer(module) + ".down_proj.weight", ""};
}
// The same in Mixtral's names.
Experts Numbered(const std::string& module) {
  return {Layer(module) + ".w1.weight", Layer(module) + ".w3.weight",
          Layer(module) + ".w2.weight", ""};
}
// One tensor of all experts, gate and up in one.
Experts Fused(const std::string& gate_up, const std::string& down) {
  return {"", "", Layer(down), Layer(gate_up)};
}
Experts Transposed(const std::string& module, bool interleaved) {
  Experts experts = Fused(module + ".gate_up_proj", module + ".down_proj");
  experts.transposed = true;
  experts.interleaved = interleaved;
  return experts;
}

// Most are this but for what is said of them.
Family Qwen3Moe(const char* model_type) {
  Family family;
  family.model_type = model_type;
  family.layers = {{LayerRule::kDense, "mlp_only_layers"},
                   {LayerRule::kStep, "decoder_sparse_step"}};
  auto& vectors = family.names.vectors;
  vectors[kNorm] = Layer("post_attention_layernorm.weight");
  vectors[kNextNorm] = Layer("input_layernorm.weight");
  family.names.router = Layer("mlp.gate.weight");
  family.names.experts = {
      Mlp("mlp.experts.{expert}"),
      Fused("mlp.experts.gate_up_proj", "mlp.experts.down_proj")};
  return family;
}

Family Qwen2Moe(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.keys.shared_intermediate = "shared_expert_intermediate_size";
  family.names.shared = Mlp("mlp.shared_expert");
  family.names.shared_logit = Layer("mlp.shared_expert_gate.weight");
  return family;
}

Family Olmoe(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.keys.intermediate = "intermediate_size";
  family.layers.clear();
  return family;
}

Family DeepseekV3(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.keys.num_experts = "n_routed_experts";
  family.keys.shared_count = "n_shared_experts";
  family.layers = {{LayerRule::kFirst, "first_k_dense_replace"},
                   {LayerRule::kTypes, "mlp_layer_types"},
                   {LayerRule::kFlags, "moe_layer_freq"}};
  family.names.vectors[kCorrectionBias] =
      Layer("mlp.gate.e_score_correction_bias");
  family.names.shared = Mlp("mlp.shared_experts");
  return family;
}

// The family whose config counts num_experts and num_shared_experts.
Family ExaoneMoe(const char* model_type) {
  Family family = DeepseekV3(model_type);
  family.keys.num_experts = "num_experts";
  family.keys.shared_count = "num_shared_experts";
  family.layers.push_back({LayerRule::kFlags, "is_moe_layer"});
  family.names.vectors[kCorrectionBias] = Layer("mlp.e_score_correction_bias");
  return family;
}

Family Afmoe(const char* model_type) {
  Family family = ExaoneMoe(model_type);
  family.layers = {{LayerRule::kFirst, "num_dense_layers"}};
  auto& vectors = family.names.vectors;
  vectors[kNorm] = Layer("pre_mlp_layernorm.weight");
  vectors[kBlockOutNorm] = Layer("post_mlp_layernorm.weight");
  vectors[kCorrectionBias] = Layer("mlp.expert_bias");
  family.names.router = Layer("mlp.router.gate.weight");
  return family;
}

Family Axk1(const char* model_type) {
  Family family = DeepseekV3(model_type);
  family.names.vectors[kBlockOutNorm] = Layer("post_mlp_layernorm.weight");
  return family;
}

Family MimoV2(const char* model_type) {
  Family family = DeepseekV3(model_type);
  family.keys.shared_count = nullptr;
  return family;
}

Family HunyuanV1(const char* model_type) {
  Family family = Olmoe(model_type);
  family.keys.top_k = "moe_topk";
  family.keys.shared_intermediate = "intermediate_size";
  family.names.router = Layer("mlp.gate.wg.weight");
  family.names.shared = Mlp("mlp.shared_mlp");
  return family;
}

Family BailingHybrid(const char* model_type) {
  Family family = ExaoneMoe(model_type);
  family.keys.top_k = "num_experts_per_token";
  family.names.vectors[kCorrectionBias] = Layer("mlp.gate.expert_bias");
  return family;
}

Family KimiLinear(const char* model_type) {
  Family family = BailingHybrid(model_type);
  family.names.router = Layer("block_sparse_moe.gate.weight");
  family.names.vectors[kCorrectionBias] =
      Layer("block_sparse_moe.gate.e_score_correction_bias");
  family.names.experts = {Numbered("block_sparse_moe.experts.{expert}")};
  family.names.shared = Mlp("block_sparse_moe.shared_experts");
  return family;
}

Family Mellum(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.layers = {{LayerRule::kTypes, "mlp_layer_types"}};
  return family;
}

Family Mixtral(const char* model_type) {
  Family family = Olmoe(model_type);
  family.keys.num_experts = "num_local_experts";
  family.names.router = Layer("block_sparse_moe.gate.weight");
  family.names.experts = {Numbered("block_sparse_moe.experts.{expert}")};
  return family;
}

Family MinimaxM2(const char* model_type) {
  Family family = Mixtral(model_type);
  family.names.vectors[kCorrectionBias] =
      Layer("block_sparse_moe.e_score_correction_bias");
  return family;
}

Family GptOss(const char* model_type) {
  Family family = Olmoe(model_type);
  family.keys.num_experts = "num_local_experts";
  family.bias_in_logits = true;
  auto& names = family.names;
  names.router = Layer("mlp.router.weight");
  names.vectors[kCorrectionBias] = Layer("mlp.router.bias");
  names.vectors[kGateUpBias] = Layer("mlp.experts.gate_up_proj_bias");
  names.vectors[kDownBias] = Layer("mlp.experts.down_proj_bias");
  names.experts = {Transposed("mlp.experts", true)};
  return family;
}

Family Granite(const char* model_type) {
  Family family = Olmoe(model_type);
  family.keys.num_experts = "num_local_experts";
  family.names.router = Layer("block_sparse_moe.router.layer.weight");
  family.names.experts = {Fused("block_sparse_moe.input_linear.weight",
                                "block_sparse_moe.output_linear.weight")};
  return family;
}

// Granite 4 and its like. The shared expert may be missing.
Family GraniteShared(const char* model_type) {
  Family family = Granite(model_type);
  family.keys.shared_width = "shared_intermediate_size";
  family.names.shared = Fused("shared_mlp.input_linear.weight",
                              "shared_mlp.output_linear.weight");
  return family;
}

Family Llama4(const char* model_type) {
  Family family = Olmoe(model_type);
  family.keys.num_experts = "num_local_experts";
  family.keys.shared_intermediate = "intermediate_size";
  family.layers = {{LayerRule::kListed, "moe_layers"},
                   {LayerRule::kStep, "interleave_moe_layer_step"}};
  family.names.router = Layer("feed_forward.router.weight");
  family.names.experts = {Transposed("feed_forward.experts", false)};
  family.names.shared = Mlp("feed_forward.shared_expert");
  return family;
}

// The dense MLP beside the experts is a shared one with norms of its own.
Family Gemma4(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.keys.top_k = "top_k_experts";
  family.keys.shared_intermediate = "intermediate_size";
  family.keys.activation = "hidden_activation";
  family.hidden_act = "gelu_pytorch_tanh";
  family.enabled_by = "enable_moe_block";
  family.router_norm_by_root = true;
  family.layers.clear();
  auto& names = family.names;
  names.vectors[kNorm] = Layer("pre_feedforward_layernorm_2.weight");
  names.vectors[kRouterNorm] = Layer("router.scale");
  names.vectors[kSharedNorm] = Layer("pre_feedforward_layernorm.weight");
  names.vectors[kRoutedOutNorm] = Layer("post_feedforward_layernorm_2.weight");
  names.vectors[kSharedOutNorm] = Layer("post_feedforward_layernorm_1.weight");
  names.vectors[kBlockOutNorm] = Layer("post_feedforward_layernorm.weight");
  names.vectors[kExpertScale] = Layer("router.per_expert_scale");
  names.vectors[kLayerScalar] = Layer("layer_scalar");
  names.router = Layer("router.proj.weight");
  names.experts = {Fused("experts.gate_up_proj", "experts.down_proj")};
  names.shared = Mlp("mlp");
  return family;
}

Family HyV3(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.keys.shared_count = "num_shared_experts";
  family.layers = {{LayerRule::kTypes, "mlp_layer_types"},
                   {LayerRule::kFirst, "first_k_dense_replace"}};
  family.names.router = Layer("mlp.router.gate.weight");
  family.names.vectors[kCorrectionBias] = Layer("mlp.expert_bias");
  family.names.shared = Mlp("mlp.shared_mlp");
  return family;
}

Family Ernie(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.keys.num_experts = "moe_num_experts";
  family.keys.top_k = "moe_k";
  family.keys.shared_count = "moe_num_shared_experts";
  family.layers = {{LayerRule::kFirst, "moe_layer_start_index"},
                   {LayerRule::kLast, "moe_layer_end_index"},
                   {LayerRule::kStep, "moe_layer_interval"}};
  family.names.vectors[kCorrectionBias] =
      Layer("mlp.moe_statics.e_score_correction_bias");
  family.names.shared = Mlp("mlp.shared_experts");
  return family;
}

// Its output is added two sublayers later.
Family Longcat(const char* model_type) {
  Family family = Qwen3Moe(model_type);
  family.keys.num_layers = "num_layers";
  family.keys.intermediate = "expert_ffn_hidden_size";
  family.keys.num_experts = "n_routed_experts";
  family.keys.top_k = "moe_topk";
  family.layers.clear();
  auto& vectors = family.names.vectors;
  vectors[kNorm] = Layer("post_attention_layernorm.0.weight");
  vectors[kNextNorm] = "";
  vectors[kCorrectionBias] = Layer("mlp.router.e_score_correction_bias");
  family.names.router = Layer("mlp.router.classifier.weight");
  return family;
}

// Its output goes to the streams of hyper-connections.
Family DeepseekV4(const char* model_type) {
  Family family = DeepseekV3(model_type);
  family.layers = {{LayerRule::kTypes, "mlp_layer_types", "moe"},
                   {LayerRule::kFirstByHash, "num_hash_layers"}};
  auto& names = family.names;
  names.vectors[kNorm] = Layer("ffn_norm.weight");
  names.vectors[kNextNorm] = "";
  names.vectors[kCorrectionBias] = Layer("ffn.gate.bias");
  names.router = Layer("ffn.gate.weight");
  names.experts = {Numbered("ffn.experts.{expert}")};
  names.shared = Numbered("ffn.shared_experts");
  return family;
}

}  // namespace

const std::vector<Family>& Families() {
  static const std::vector<Family> families = {
      Afmoe("afmoe"),
      Axk1("axk1"),
      BailingHybrid("bailing_hybrid"),
      DeepseekV3("deepseek_v3"),
      DeepseekV3("deepseek_v32"),
      DeepseekV4("deepseek_v4"),
      DeepseekV3("dots1"),
      Ernie("ernie4_5_moe"),
      ExaoneMoe("exaone_moe"),
      Gemma4("gemma4_text"),
      DeepseekV3("glm4_moe"),
      DeepseekV3("glm4_moe_lite"),
      DeepseekV3("glm_moe_dsa"),
      GptOss("gpt_oss"),
      Granite("granitemoe"),
      GraniteShared("granitemoehybrid"),
      GraniteShared("granitemoeshared"),
      HunyuanV1("hunyuan_v1_moe"),
      HyV3("hy_v3"),
      DeepseekV3("kimi_k2"),
      KimiLinear("kimi_linear"),
      Llama4("llama4_text"),
      Longcat("longcat_flash"),
      Mellum("mellum"),
      MimoV2("mimo_v2_flash"),
      MinimaxM2("minimax_m2"),
      Mixtral("mixtral"),
      Olmoe("olmoe"),
      Qwen2Moe("qwen2_moe"),
      Qwen2Moe("qwen3_5_moe_text"),
      Qwen3Moe("qwen3_moe"),
      Qwen2Moe("qwen3_next"),
      DeepseekV3("solar_open"),
  };
  return families;
}

}  // namespace moe_layer
