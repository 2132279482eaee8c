# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that a patched model follows later changes by its user, and can be sent to other
processes."""

import copy
import multiprocessing
import pickle

import pytest
import torch
from test_models import make
from what_ran import what_ran

import switchyard.transformers

TOKENS = torch.randint(2, 97, (2, 9), generator=torch.Generator().manual_seed(1))


@pytest.fixture(autouse=True)
def _one_thread(_alike):
    torch.set_num_threads(1)


def run(model):
    return what_ran(lambda: model(TOKENS, use_cache=False).logits)


def _mlp(model):
    return model.model.layers[0].mlp


CHANGES = {
    "top_k": ("qwen3_moe", lambda m: setattr(_mlp(m).gate, "top_k", 1)),
    "norm_topk_prob": ("qwen3_moe", lambda m: setattr(_mlp(m).gate, "norm_topk_prob", False)),
    "scaling": ("glm4_moe", lambda m: [setattr(x.gate, "routed_scaling_factor", 3.0)
                                       for x in m.modules() if hasattr(x, "gate")]),
    "act_fn": ("qwen3_moe", lambda m: setattr(_mlp(m).experts, "act_fn", torch.nn.GELU())),
    "limit": ("gpt_oss", lambda m: setattr(_mlp(m).experts, "limit", 0.1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_followed(change):
    family, apply = CHANGES[change]
    model = make(family)
    twin = copy.deepcopy(model)
    twin.set_experts_implementation("eager")
    switchyard.transformers.patch(model)
    ran, before = run(model)
    for m in (model, twin):
        apply(m)
    run(model)
    again, after = run(model)
    assert again == ran and ran[0] > 0 and ran[1] > 0
    assert not torch.allclose(before, after, atol=1e-2)
    torch.testing.assert_close(after, run(twin)[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", ["qwen3_moe", "phimoe", "glm4_moe", "gpt_oss"])
def test_another_dtype_later(family):
    for first, second in ((torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16),
                          (torch.float32, torch.float64)):
        model = make(family, first)
        switchyard.transformers.patch(model)
        run(model)
        twin = copy.deepcopy(model)
        switchyard.transformers.unpatch(twin)
        twin.set_experts_implementation("eager")
        routers = [[x for x in m.modules() if type(x).__name__.endswith("Router")]
                   for m in (model.to(second), twin.to(second))]
        rows = torch.randn(20, 64, dtype=second)
        for ours, stock in zip(*routers):
            with torch.no_grad():
                got, want = ours(rows), stock(rows)
            assert [t.dtype for t in got] == [t.dtype for t in want]
            same = (got[2].sort(1)[0] == want[2].sort(1)[0]).all(1)
            assert same.float().mean() >= (0.8 if second == torch.bfloat16 else 1)
            torch.testing.assert_close(got[1].sort(1)[0][same], want[1].sort(1)[0][same],
                                       rtol=2 ** -6 if second == torch.bfloat16 else 1e-5, atol=1e-9)
        if second != torch.bfloat16:
            torch.testing.assert_close(run(model)[1], run(twin)[1], rtol=1e-3, atol=1e-3)


def test_float64_is_left_to_transformers():
    model = make("qwen3_moe").double()
    model.set_experts_implementation("eager")
    want = run(model)[1]
    done = switchyard.transformers.patch(model)
    assert not done.experts and not done.routers
    assert {why for why in done.untouched.values()} <= {
        "no products of torch.float64", "no products of torch.float64 and torch.float64"}
    ran, got = run(model)
    assert ran == (0, 0)
    torch.testing.assert_close(got, want)


def test_float64_routing_weights():
    model = make("qwen3_moe")
    experts = _mlp(model).experts
    weights, ids = torch.randn(5, 8).double().softmax(-1).topk(3)
    hidden = torch.randn(5, 64)
    with torch.no_grad():
        want = experts(hidden, ids, weights.float())
        switchyard.transformers.patch(model)
        ran, got = what_ran(lambda: experts(hidden, ids, weights))
    assert ran == (1, 0) and got.dtype == torch.float32
    torch.testing.assert_close(got, want)


def _logits_of(pickled, connection):
    connection.send(pickle.dumps(run(pickle.loads(pickled))[1]))


@pytest.mark.parametrize("packed", [False, True])
def test_is_pickled(packed, tmp_path):
    model = make("qwen3_moe")
    switchyard.transformers.patch(model, pack_weights=packed)
    ran, want = run(model)
    torch.save(model, tmp_path / "model.pt")
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model),
                  torch.load(tmp_path / "model.pt", weights_only=False)):
        run(other)
        again, got = run(other)
        assert again == ran
        torch.testing.assert_close(got, want)
        with torch.no_grad():
            _mlp(other).gate.weight.neg_()
        assert not torch.allclose(run(other)[1], want)
    torch.testing.assert_close(run(model)[1], want)


def test_is_sent_to_another_process():
    """Loads a patched model in a process that has not imported Switchyard before."""
    model = make("qwen3_moe")
    switchyard.transformers.patch(model)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_logits_of, args=(pickle.dumps(model), theirs))
    process.start()
    assert ours.poll(120), "no answer"
    torch.testing.assert_close(pickle.loads(ours.recv()), run(model)[1])
    process.join()
    assert process.exitcode == 0


def test_derivatives_in_forward_mode_are_transformers_own():
    model = make("qwen3_moe")
    rows = torch.randn(1, 3, 64)
    block = _mlp(model)

    def tangent():
        return torch.func.jvp(lambda x: block(x)[0] if isinstance(block(x), tuple) else block(x),
                              (rows,), (torch.ones_like(rows),))[1]

    model.set_experts_implementation("eager")
    want = tangent()
    switchyard.transformers.patch(model)
    torch.testing.assert_close(tangent(), want, rtol=1e-4, atol=1e-4)
    assert want.abs().max() > 0.1
