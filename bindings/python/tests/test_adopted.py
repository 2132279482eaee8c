# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests families that do not let transformers choose the implementation of their experts."""

import copy
import importlib
import pickle

import pytest
import torch
from accelerate.hooks import ModelHook, add_hook_to_module
from test_models import _COMMON, fill
from what_ran import what_ran

import switchyard.transformers

_LATENT = {"q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
           "v_head_dim": 16, "num_key_value_heads": 4, "head_dim": 8}
# For each family: the model's class, the configuration's class and its fields, and the numbers of
# experts and routers that Switchyard runs.
FAMILIES = {
    "llama4": ("Llama4ForCausalLM", "Llama4TextConfig", _COMMON | {
        "intermediate_size_mlp": 48, "num_local_experts": 8, "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 1}, (2, 0)),
    "llama4 of two": ("Llama4ForCausalLM", "Llama4TextConfig", _COMMON | {
        "intermediate_size_mlp": 48, "num_local_experts": 8, "num_experts_per_tok": 2,
        "interleave_moe_layer_step": 2}, (1, 0)),
    "jetmoe": ("JetMoeForCausalLM", "JetMoeConfig", _COMMON | {
        "kv_channels": 16, "num_local_experts": 8, "num_experts_per_tok": 2}, (2, 0)),
    "dbrx": ("DbrxForCausalLM", "DbrxConfig", {
        "d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 128, "vocab_size": 97,
        "pad_token_id": 0,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4},
        "ffn_config": {"ffn_hidden_size": 48, "hidden_size": 64, "moe_num_experts": 8,
                       "moe_top_k": 3, "moe_loss_weight": 0.0}}, (2, 0)),
    "longcat_flash": ("LongcatFlashForCausalLM", "LongcatFlashConfig", _COMMON | _LATENT | {
        "num_layers": 2, "ffn_hidden_size": 48, "expert_ffn_hidden_size": 48,
        "n_routed_experts": 8, "zero_expert_num": 4, "moe_topk": 3, "num_experts_per_tok": 3},
        (1, 1)),
    "step3p7": ("Step3p7TextModel", "Step3p7TextConfig", {
        "vocab_size": 97, "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_attention_groups": 2, "head_dim": 16,
        "num_local_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
        "share_expert_dim": 48, "moe_num_experts": 8, "moe_top_k": 3, "sliding_window": 16,
        "layer_types": ["full_attention"] * 2, "swiglu_limits": [0.0, 0.5],
        "mlp_layer_types": ["sparse"] * 2,
        "swiglu_limits_shared": [0.0, 0.5]}, (2, 2)),
}
TOKENS = torch.randint(2, 97, (2, 9), generator=torch.Generator().manual_seed(1))


@pytest.fixture(autouse=True)
def _one_thread(_alike):
    torch.set_num_threads(1)


def _classes(family):
    name, model, config = family.split()[0], *FAMILIES[family][:2]
    code = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    said = importlib.import_module(f"transformers.models.{name}.configuration_{name}")
    return getattr(code, model), getattr(said, config)


def make(family):
    model, config = _classes(family)
    return fill(model(config(**FAMILIES[family][2])))


def run(model):
    def call():
        out = model(TOKENS, use_cache=False)
        return (out.logits if hasattr(out, "logits") else out.last_hidden_state).double()
    return what_ran(call)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_is_patched(family, dtype):
    model = make(family)
    exact = run(copy.deepcopy(model).double())[1]
    model.to(dtype)
    ran, stock = run(model)
    assert ran == (0, 0)
    done = switchyard.transformers.patch(model)
    want = FAMILIES[family][3]
    assert (len(done.experts), len(done.routers)) == want, str(done)
    ran, ours = run(model)
    assert ran == want
    error, stock_error = ((x - exact).abs().quantile(0.9) for x in (ours, stock))
    assert error <= 1.5 * stock_error + 8 * torch.finfo(dtype).eps * exact.abs().max()
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        run(again)  # the first run compares its routers with their presets
        ran, other = run(again)
        assert ran == want and torch.equal(other, ours)
    model.set_experts_implementation("eager")
    assert run(model)[0][0] == 0
    switchyard.transformers.unpatch(model)
    ran, back = run(model)
    assert ran == (0, 0) and torch.equal(back, stock)
    assert not [m for m in model.modules() if "forward" in m.__dict__]


@pytest.mark.parametrize("family", FAMILIES)
def test_is_loaded(family, tmp_path):
    model = make(family)
    stock = run(model)[1]
    model.save_pretrained(tmp_path)
    loaded = _classes(family)[0].from_pretrained(tmp_path, experts_implementation="switchyard")
    ran, ours = run(loaded.eval())
    assert ran == (FAMILIES[family][3][0], 0)
    torch.testing.assert_close(ours, stock, rtol=1e-4, atol=1e-4)
    model.set_experts_implementation("switchyard")
    assert run(model)[0] == ran


def test_hooks_of_accelerate():
    """A hook before patch() keeps its layers with transformers; a hook after patch() changes nothing."""
    def hook(model):
        for layer in model.model.layers:
            add_hook_to_module(layer.feed_forward, ModelHook())

    model = make("llama4")
    later = copy.deepcopy(model)
    stock = run(model)[1]
    hook(model)
    for dtype in (None, "q8_0"):
        done = switchyard.transformers.patch(model, experts_dtype=dtype)
        assert not done.experts and not done.quantized
        assert done.untouched["model.layers.0.feed_forward"] == (
            "somebody has replaced its forward() already")
        ran, got = run(model)
        assert ran == (0, 0) and torch.equal(got, stock)

    switchyard.transformers.patch(later)
    ours = run(later)[1]
    hook(later)
    assert len(switchyard.transformers.patch(later).experts) == 2
    ran, got = run(later)
    assert ran == (2, 0) and torch.equal(got, ours)
    switchyard.transformers.unpatch(later)
    ran, got = run(later)
    assert ran == (0, 0) and torch.equal(got, stock)


def test_no_tokens():
    model = make("llama4")
    switchyard.transformers.patch(model)
    with torch.no_grad():
        out, _ = model.model.layers[0].feed_forward(torch.zeros(0, 1, 64))
    assert out.shape == (0, 64)


@pytest.mark.parametrize("family", ["llama4", "dbrx"])
def test_gradients_go_the_old_way(family):
    model = make(family)
    twin = copy.deepcopy(model)
    switchyard.transformers.patch(model)
    for m in (model, twin):
        m(TOKENS, labels=TOKENS, use_cache=False).loss.backward()
    for (name, p), q in zip(model.named_parameters(), twin.named_parameters()):
        torch.testing.assert_close(p.grad, q[1].grad, msg=name)


def test_packed_weights():
    for family, packed in (("llama4", 2), ("jetmoe", 2), ("dbrx", 0)):
        model = make(family)
        stock = run(model)[1]
        done = switchyard.transformers.patch(model, pack_weights=True)
        assert len(done.packed) == packed and len(done.unpacked) == 2 - packed
        torch.testing.assert_close(run(model)[1], stock, rtol=1e-4, atol=1e-4)
    assert set(done.unpacked.values()) == {"its gate is a matrix of its own"}
    assert ", its weights not packed: its gate is a matrix of its own" in str(done)
