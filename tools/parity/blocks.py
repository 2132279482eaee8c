# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""The MoE block of each family that moe_layer runs, as data: a line of BLOCKS each.

What a line makes is a model of transformers' own class and of two small layers, with
random weights; what it writes is a checkpoint under the names that the hub has.
"""

import dataclasses
import importlib
from typing import Any

import torch

HIDDEN = 64
# Said to each configuration that has such.
SIZES = {
    "hidden_size": HIDDEN, "intermediate_size": 48, "moe_intermediate_size": 40,
    "expert_ffn_hidden_size": 40, "ffn_hidden_size": 48, "shared_intermediate_size": 56,
    "shared_expert_intermediate_size": 56, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 64, "max_position_embeddings": 64,
    "num_experts": 12, "n_routed_experts": 12, "num_local_experts": 12, "moe_num_experts": 12,
    "num_experts_per_tok": 3, "moe_k": 3, "moe_topk": 3, "top_k_experts": 3,
    "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1, "q_lora_rank": 32,
    "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16,
    "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 16,
    "linear_value_head_dim": 16, "o_lora_rank": 16, "o_groups": 2, "index_n_heads": 2,
    "index_head_dim": 16,
}


@dataclasses.dataclass(frozen=True)
class Block:
    name: str  # the folder in transformers/models
    model: str  # its class in modeling_<name>.py
    config: str  # its class in configuration_<name>.py
    says: dict[str, Any] = dataclasses.field(default_factory=dict)  # beside SIZES
    # The layer behind its attention is compared; or, if another part of the model uses the block's
    # output, mlp(norm) of these names.
    norm: str = ""
    attention: int = 2  # how many things that returns
    # RMSNorms multiply by 1 + weight.
    plus_one: bool = False


_SPARSE = {"mlp_layer_types": ["dense", "sparse"]}
BLOCKS = [
    Block("afmoe", "AfmoeForCausalLM", "AfmoeConfig", {"route_scale": 1.75}),
    Block("axk1", "AXK1ForCausalLM", "AXK1Config", _SPARSE),
    Block("bailing_hybrid", "BailingHybridForCausalLM", "BailingHybridConfig",
          _SPARSE | {"pad_token_id": 0, "layer_types": ["full_attention"] * 2,
                     "num_expert_group": 4, "num_experts_per_token": 3}),
    Block("deepseek_v3", "DeepseekV3ForCausalLM", "DeepseekV3Config"),
    Block("deepseek_v32", "DeepseekV32ForCausalLM", "DeepseekV32Config", _SPARSE),
    Block("deepseek_v4", "DeepseekV4ForCausalLM", "DeepseekV4Config",
          {"mlp_layer_types": ["hash_moe", "moe"], "swiglu_limit": 1.5},
          norm="post_attention_layernorm"),
    Block("dots1", "Dots1ForCausalLM", "Dots1Config", {"n_shared_experts": 2}),
    Block("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", "Ernie4_5_MoeConfig"),
    Block("exaone_moe", "ExaoneMoeForCausalLM", "ExaoneMoeConfig", _SPARSE),
    Block("gemma4", "Gemma4ForCausalLM", "Gemma4TextConfig",
          {"enable_moe_block": True, "hidden_size_per_layer_input": 0,
           "layer_types": ["full_attention"] * 2}),
    Block("glm4_moe", "Glm4MoeForCausalLM", "Glm4MoeConfig"),
    Block("glm4_moe_lite", "Glm4MoeLiteForCausalLM", "Glm4MoeLiteConfig", _SPARSE),
    Block("glm_moe_dsa", "GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", _SPARSE, attention=3),
    Block("gpt_oss", "GptOssForCausalLM", "GptOssConfig", {"swiglu_limit": 1.5}),
    Block("granitemoe", "GraniteMoeForCausalLM", "GraniteMoeConfig", {"residual_multiplier": 0.22}),
    Block("granitemoehybrid", "GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig",
          {"residual_multiplier": 0.22, "layer_types": ["attention"] * 2}),
    Block("granitemoeshared", "GraniteMoeSharedForCausalLM", "GraniteMoeSharedConfig",
          {"residual_multiplier": 0.22}),
    Block("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", "HunYuanMoEV1Config"),
    Block("hy_v3", "HYV3ForCausalLM", "HYV3Config"),
    Block("kimi_linear", "KimiLinearForCausalLM", "KimiLinearConfig",
          _SPARSE | {"pad_token_id": 0, "layer_types": ["full_attention"] * 2,
                     "num_experts_per_token": 3}),
    Block("llama4", "Llama4ForCausalLM", "Llama4TextConfig"),
    Block("longcat_flash", "LongcatFlashForCausalLM", "LongcatFlashConfig",
          {"num_layers": 2, "num_hidden_layers": 4, "zero_expert_num": 5},
          norm="post_attention_layernorm.0"),
    Block("mellum", "MellumForCausalLM", "MellumConfig", _SPARSE),
    Block("mimo_v2_flash", "MiMoV2FlashForCausalLM", "MiMoV2FlashConfig", _SPARSE),
    Block("minimax_m2", "MiniMaxM2ForCausalLM", "MiniMaxM2Config"),
    Block("mixtral", "MixtralForCausalLM", "MixtralConfig"),
    Block("olmoe", "OlmoeForCausalLM", "OlmoeConfig"),
    Block("qwen2_moe", "Qwen2MoeForCausalLM", "Qwen2MoeConfig"),
    Block("qwen3_5_moe", "Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig", plus_one=True),
    Block("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", {"norm_topk_prob": True}),
    Block("qwen3_next", "Qwen3NextForCausalLM", "Qwen3NextConfig", plus_one=True),
    Block("solar_open", "SolarOpenForCausalLM", "SolarOpenConfig"),
]

_BIAS = ("e_score_correction_bias", "expert_bias")


def make(block):
    """The model with random parameters, f32."""
    folder = f"transformers.models.{block.name}."
    config_class = getattr(importlib.import_module(f"{folder}configuration_{block.name}"),
                           block.config)
    default = config_class()
    known = default.to_dict().keys() | default.attribute_map.keys()
    says = {name: value for name, value in SIZES.items() if name in known} | block.says
    code = importlib.import_module(f"{folder}modeling_{block.name}")
    model = getattr(code, block.model)(config_class(**says)).eval()
    with torch.no_grad():
        for name, t in [*model.named_parameters(), *model.named_buffers()]:
            last = name.rsplit(".", 1)[-1]
            if last in _BIAS:
                t.normal_(std=0.1)
            elif last.endswith("bias"):
                t.normal_(std=0.5)
            elif "norm" in name or last == "scale":
                t.uniform_(-0.5, 0.5).add_(0.0 if block.plus_one else 1.0)
            elif last in ("per_expert_scale", "layer_scalar"):
                t.uniform_(0.5, 1.5)
            elif t.dim() > 1 and t.is_floating_point():
                t.normal_(std=1.5 / t.shape[-1] ** 0.5)
    return model


class _NoAttention(torch.nn.Module):
    def __init__(self, results):
        super().__init__()
        self._results = results

    def forward(self, hidden_states, *_, **__):
        nothing = torch.zeros_like(hidden_states)
        return nothing if self._results == 1 else (nothing,) + (None,) * (self._results - 1)


def run(block, model, number, hidden):
    """What the block of a layer makes of hidden states [tokens, HIDDEN]."""
    layer = model.model.layers[number]
    if block.norm:
        out = layer.mlp(layer.get_submodule(block.norm)(hidden[None]))
    else:
        for name, results in (("self_attn", block.attention), ("linear_attn", 1)):
            if hasattr(layer, name):
                setattr(layer, name, _NoAttention(results))
        out = layer(hidden[None], position_embeddings=None)
    while isinstance(out, tuple):
        out = out[0]
    return out.reshape(hidden.shape)
