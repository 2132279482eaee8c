# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that patch() reports exactly the modules that Switchyard runs, and that requesting
Switchyard is an error if it runs none."""

import contextlib

import peft
import pytest
import torch
from test_models import _COMMON, fill, make
from test_state import TOKENS, run
from transformers import AutoModelForCausalLM, KimiLinearConfig, Qwen3Config
from what_ran import what_ran

import switchyard.transformers


@pytest.fixture(autouse=True)
def _one_thread(_alike):
    torch.set_num_threads(1)


def _lora(model):
    return peft.get_peft_model(model, peft.LoraConfig(
        target_modules=["q_proj"], target_parameters=["mlp.experts.down_proj"], lora_alpha=64,
        init_lora_weights=False)).eval()


class _Around(torch.nn.Sequential):
    def forward(self, tokens, **named):
        return self[0](tokens, **named)


WRAPPERS = {
    "peft": _lora,
    "Sequential": _Around,
    "compiled": lambda model: torch.compile(model, backend="eager"),
    "compiled before": None,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapped(wrapper):
    torch._dynamo.reset()
    model = make("qwen3_moe")
    if wrapper == "compiled before":
        wrapped = torch.compile(model, backend="eager")
        with torch.no_grad():
            wrapped(TOKENS, use_cache=False)
    else:
        wrapped = WRAPPERS[wrapper](model)
    model.set_experts_implementation("eager")
    with torch.no_grad():
        want = (model if "compiled" in wrapper else wrapped)(TOKENS, use_cache=False).logits
    done = switchyard.transformers.patch(wrapped)
    assert (len(done.experts), len(done.routers)) == (2, 2)
    if "compiled" in wrapper:
        with torch.no_grad(), torch.profiler.profile() as profile:
            got = wrapped(TOKENS, use_cache=False).logits
        counts = {e.key: e.count for e in profile.key_averages()}
        # The profiler counts each call twice: in the operator's Autograd kernel and in its CPU kernel.
        assert counts["switchyard::experts"] == counts["switchyard::route"] == 4
    else:
        run(wrapped)
        ran, got = run(wrapped)
        assert ran == (2, 2)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("part, want", [
    (lambda m: m.model, (2, 2)),
    (lambda m: m.model.layers[1], (1, 1)),
    (lambda m: m.model.layers[1].mlp, (1, 1)),
    (lambda m: m.model.layers[1].mlp.experts, (1, 0)),
], ids=["model", "layer", "block", "experts"])
def test_part_of_a_model(part, want):
    model = make("qwen3_moe")
    model.set_experts_implementation("eager")
    stock = run(model)[1]
    done = switchyard.transformers.patch(part(model))
    assert (len(done.experts), len(done.routers)) == want
    ran, got = run(model)
    assert ran == want
    torch.testing.assert_close(got, stock, rtol=1e-4, atol=1e-4)
    switchyard.transformers.unpatch(part(model))
    ran, got = run(model)
    assert ran == (0, 0) and torch.equal(got, stock)


def test_unpatch():
    model = make("qwen3_moe")
    model.set_experts_implementation("eager")
    want = run(model)[1]
    for pack in (False, True):
        switchyard.transformers.patch(model, pack_weights=pack)
        switchyard.transformers.patch(model, pack_weights=pack)  # once more
        switchyard.transformers.unpatch(model)
        ran, got = run(model)
        assert ran == (0, 0) and torch.equal(got, want)
        assert model.config._experts_implementation == "eager"
    loaded = AutoModelForCausalLM.from_config(model.config, experts_implementation="switchyard")
    switchyard.transformers.patch(loaded)
    switchyard.transformers.unpatch(loaded)
    assert loaded.config._experts_implementation == "grouped_mm" and run(loaded)[0] == (0, 0)


@contextlib.contextmanager
def _default(dtype):
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def test_default_dtype():
    with _default(torch.bfloat16):
        model = make("qwen3_moe", torch.bfloat16)
        done = switchyard.transformers.patch(model)
        assert (len(done.experts), len(done.routers)) == (2, 2), str(done)
        run(model)
        assert run(model)[0] == (2, 2)


def test_another_devices_model_is_not_counted():
    model = make("qwen3_moe").to("meta")
    done = switchyard.transformers.patch(model)
    assert not done.experts
    assert set(done.untouched.values()) >= {"its weights are on meta, not on the CPU"}


@pytest.mark.parametrize("function", ("patch", "unpatch"))
def test_no_model_is_named(function):
    with pytest.raises(TypeError, match=f"{function}: model: not a torch.nn.Module: NoneType"):
        getattr(switchyard.transformers, function)(None)


def test_report():
    model = make("deepseek_v3")
    lines = str(switchyard.transformers.patch(model)).splitlines()
    assert lines == ["experts by switchyard: 1, routers: 1",
                     "1 x DeepseekV3Experts: by switchyard",
                     "1 x DeepseekV3TopkRouter: by switchyard"]
    model = make("qwen3_moe")
    model.model.layers[1].mlp.experts.act_fn = torch.nn.Tanh()
    lines = str(switchyard.transformers.patch(model)).splitlines()
    assert lines[0] == "experts by switchyard: 1, routers: 2"
    assert ("1 x Qwen3MoeExperts: left to transformers: its gate is none of the library's "
            "activations") in lines and len(lines) == 4


def test_gates_of_attention_are_no_routers():
    config = KimiLinearConfig(**_COMMON | {
        "num_experts": 8, "num_experts_per_tok": 3, "num_attention_heads": 4,
        "num_key_value_heads": 4, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
        "v_head_dim": 16, "first_k_dense_replace": 0})
    model = fill(AutoModelForCausalLM.from_config(config))
    assert [m for m in model.modules() if "ForgetGate" in type(m).__name__]
    done = switchyard.transformers.patch(model)
    assert not [layer for layer in done.layers if "ForgetGate" in layer.kind], str(done)
    assert len(done.routers) == 2


def test_a_name_that_runs_nothing_is_refused(tmp_path):
    dense = AutoModelForCausalLM.from_config(Qwen3Config(**_COMMON))
    dense.save_pretrained(tmp_path)
    for load in (lambda: AutoModelForCausalLM.from_pretrained(
                     tmp_path, experts_implementation="switchyard"),
                 lambda: AutoModelForCausalLM.from_config(
                     Qwen3Config(**_COMMON), experts_implementation="switchyard"),
                 lambda: dense.set_experts_implementation("switchyard")):
        with pytest.raises(ValueError, match='"switchyard": nothing of Qwen3ForCausalLM would run'
                                             ' by it: it has no experts'):
            load()
    assert dense.config._experts_implementation != "switchyard"
    model = make("qwen3_moe")
    for layer in model.model.layers:
        layer.mlp.experts.has_post_expert_norm = True
    with pytest.raises(ValueError, match="Qwen3MoeExperts: it normalises each expert's output"):
        model.set_experts_implementation("switchyard")
    assert not switchyard.transformers.patch(dense).layers


def test_a_replaced_forward_is_left_alone():
    model = make("qwen3_moe")
    gate = model.model.layers[0].mlp.gate
    gate.forward = type(gate).forward.__get__(gate)
    done = switchyard.transformers.patch(model)
    assert len(done.routers) == 1
    assert list(done.untouched.values()) == ["somebody has replaced its forward() already"]
    assert what_ran(lambda: model(TOKENS))[0] == (2, 1)
