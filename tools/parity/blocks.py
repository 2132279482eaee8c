# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a model of each family that moe_layer runs (transformers' own class with two small layers
and random weights), and runs its block. The model's checkpoint has the names of the hub.
"""

import torch
import transformers

HIDDEN = 64
# If a configuration has one of these fields, the field gets this value.
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
    "index_head_dim": 16, "mlp_layer_types": ["dense", "sparse"],
}


# Fields that are set only for single families.
_FULL = {"pad_token_id": 0, "layer_types": ["full_attention"] * 2}
_SAYS = {
    "afmoe": {"route_scale": 1.75},
    "bailing_hybrid": _FULL | {"num_expert_group": 4, "num_experts_per_token": 3},
    "deepseek_v4": {"mlp_layer_types": ["hash_moe", "moe"], "swiglu_limit": 1.5},
    "dots1": {"n_shared_experts": 2},
    "gemma4": {"enable_moe_block": True, "hidden_size_per_layer_input": 0,
               "layer_types": ["full_attention"] * 2},
    "gpt_oss": {"swiglu_limit": 1.5},
    "granitemoe": {"residual_multiplier": 0.22},
    "granitemoehybrid": {"residual_multiplier": 0.22, "layer_types": ["attention"] * 2},
    "granitemoeshared": {"residual_multiplier": 0.22},
    "kimi_linear": _FULL | {"num_experts_per_token": 3},
    "longcat_flash": {"num_layers": 2, "num_hidden_layers": 4, "zero_expert_num": 5},
    "qwen3_moe": {"norm_topk_prob": True},
}
# The comparison covers the part of the layer after its attention. In these families, another part
# of the model uses the block's output, so the comparison only covers mlp(norm). The values are the
# names of this norm.
NORMS = {"deepseek_v4": "post_attention_layernorm", "longcat_flash": "post_attention_layernorm.0"}
# The number of values that the attention returns, in families where it is not 2.
_ATTENTION = {"glm_moe_dsa": 3}

_BIAS = ("e_score_correction_bias", "expert_bias")


def make(family):
    """The model with random parameters, f32."""
    default = family.config_class()
    known = default.to_dict().keys() | default.attribute_map.keys()
    says = {name: value for name, value in SIZES.items() if name in known}
    config = family.config_class(**says | _SAYS.get(family.folder, {}))
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, t in [*model.named_parameters(), *model.named_buffers()]:
            last = name.rsplit(".", 1)[-1]
            if last in _BIAS:
                t.normal_(std=0.1)
            elif last.endswith("bias"):
                t.normal_(std=0.5)
            elif "norm" in name or last == "scale":
                # The weights are around 1. If RMSNorms multiply by 1 + weight, the weights
                # are around 0.
                t.add_(torch.empty_like(t).uniform_(-0.5, 0.5))
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


def run(family, model, number, hidden):
    """The output of a layer's block for hidden states [tokens, HIDDEN]."""
    layer = model.model.layers[number]
    if family.folder in NORMS:
        out = layer.mlp(layer.get_submodule(NORMS[family.folder])(hidden[None]))
    else:
        for name, results in (("self_attn", _ATTENTION.get(family.folder, 2)), ("linear_attn", 1)):
            if hasattr(layer, name):
                setattr(layer, name, _NoAttention(results))
        out = layer(hidden[None], position_embeddings=None)
    while isinstance(out, tuple):
        out = out[0]
    return out.reshape(hidden.shape)
