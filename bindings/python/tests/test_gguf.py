# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that the experts of GGUF files keep the file's blocks on a CPU."""

import struct

import pytest
import torch
from formats import random_blocks
from test_experts_dtype import error, logits_of
from test_models import fill
from transformers import GgufConfig, Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig
from what_ran import what_ran

import switchyard.transformers

E, H, I = 8, 256, 256
TYPES = {"q4_0": 2, "q8_0": 8, "q4_K": 12, "q6_K": 14}
# Parts of tensor names in transformers, and the names that a GGUF file has for them.
NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
         "model.layers": "blk", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "post_attention_layernorm": "post_attention_norm", "input_layernorm": "attn_norm",
         "mlp.gate.": "ffn_gate_inp.", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
         "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
         "mlp.shared_expert.up_proj": "ffn_up_shexp",
         "mlp.shared_expert.down_proj": "ffn_down_shexp"}


@pytest.fixture(autouse=True)
def _one_thread(_alike):
    torch.set_num_threads(1)


def config():
    return Qwen3_5MoeTextConfig(
        vocab_size=97, hidden_size=H, moe_intermediate_size=I, shared_expert_intermediate_size=64,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=64,
        num_experts=E, num_experts_per_tok=3, layer_types=["full_attention"] * 2,
        max_position_embeddings=256, pad_token_id=0)


def tensors_of(up, down):
    """Returns {name: (GGML's type, shape, bytes)}. Experts have random blocks; other tensors are
    f32."""
    tensors = {}
    for name, tensor in fill(Qwen3_5MoeForCausalLM(config())).state_dict().items():
        if ".experts." in name:
            continue
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        values = tensor + 1 if "norm" in name else tensor  # files store norms as 1 + weight
        tensors[name] = 0, tensor.shape, values.numpy().tobytes()
    for layer in range(2):
        for name, kind, rows, cols in (("gate", up, I, H), ("up", up, I, H), ("down", down, H, I)):
            blocks = random_blocks(kind, E, rows, cols // switchyard.weight_formats()[kind].columns)
            tensors[f"blk.{layer}.ffn_{name}_exps.weight"] = (
                TYPES[kind], (E, rows, cols), blocks.numpy().tobytes())
    return tensors


def write(path, tensors):
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    table, data = b"", b""
    for name, (kind, shape, content) in tensors.items():
        data += bytes(-len(data) % 32)
        table += (text(name) + struct.pack("<I", len(shape)) + struct.pack(
            f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", kind, len(data)))
        data += content
    head = (b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + text("general.architecture")
            + struct.pack("<I", 8) + text("qwen35moe") + table)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def load(folder, **named):
    return Qwen3_5MoeForCausalLM.from_pretrained(folder, gguf_file="model.gguf", config=config(),
                                                 dtype=torch.float32, **named).eval()


@pytest.mark.parametrize("up, down", [("q4_K", "q6_K"), ("q4_0", "q8_0")])
def test_experts_keep_their_blocks(up, down, tmp_path):
    write(tmp_path / "model.gguf", tensors_of(up, down))
    stock = load(tmp_path)
    assert stock.model.layers[0].mlp.experts.down_proj.is_floating_point()
    ours = load(tmp_path, experts_implementation="switchyard")
    done = switchyard.transformers.patch(ours)
    assert set(done.quantized.values()) == {(up, down)} and len(done.experts) == 2
    ran, _ = what_ran(lambda: logits_of(ours))
    assert ran[0] == 2
    got = logits_of(ours)
    assert error(got, logits_of(stock)) < 0.1
    ours.save_pretrained(tmp_path / "saved")
    again = Qwen3_5MoeForCausalLM.from_pretrained(tmp_path / "saved")
    switchyard.transformers.patch(again)
    assert torch.equal(logits_of(again), got)
    auto = load(tmp_path, experts_implementation="switchyard", device_map="auto")
    assert torch.equal(auto.model.layers[1].mlp.experts.packed_down,
                       ours.model.layers[1].mlp.experts.packed_down)
    floats = load(tmp_path, experts_implementation="switchyard",
                  quantization_config=GgufConfig(dequantize=True))
    assert torch.equal(floats.model.layers[1].mlp.experts.gate_up_proj,
                       stock.model.layers[1].mlp.experts.gate_up_proj)


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_a_truncated_file_is_an_error(share, tmp_path):
    path = tmp_path / "model.gguf"
    write(path, tensors_of("q4_0", "q4_0"))
    content = path.read_bytes()
    path.write_bytes(content[:int(len(content) * share)])
    with pytest.raises((ValueError, RuntimeError, struct.error)):
        load(tmp_path, experts_implementation="switchyard")
