# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that patch() replaces the right routers, and that results stay the same."""

import copy
import os
import pathlib
import sys

import pytest
import torch

from switchyard import _routers
from switchyard._experts import Unsupported
from switchyard.transformers import _patch_router

# tools/parity has the code that makes each family's router. It reads the presets from
# libswitchyard_parity.so.
ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools" / "parity"))
import families  # noqa: E402  isort: skip
import library  # noqa: E402  isort: skip
import routers  # noqa: E402  isort: skip

FAMILIES = families.routers_of(library.Library(os.environ.get(
    "SWITCHYARD_PARITY", str(ROOT / "build/release/tools/libswitchyard_parity.so"))))

LEFT_ALONE = {
    "afmoe": "cannot be tried out", "dbrx": "not one matrix product",
    "deepseek_v4, hash layers": "cannot be tried out",
    "diffusion_gemma": "own results", "gemma4": "own results",
    "ernie4_5_moe": "not one matrix product", "ernie4_5_vl_moe": "not one matrix product",
    "inkling": "does not return", "jetmoe": "does not return",
    "laguna, soft-cap": "own results", "llama4": "does not return",
    "muse_spark": "own results",
    "zaya": "not one matrix product",
}


def _router(family):
    configuration = routers.Configuration(family)
    for field, value in (("num_experts", family.experts), ("num_experts_per_tok", family.top_k)):
        if value:
            configuration.say(field, value)
    return routers.make(family, configuration)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
def test_router(family, dtype):
    torch.set_num_threads(1)
    router = _router(family)
    if not family.keeps_f32:
        router.to(dtype)
    if family.name in LEFT_ALONE:
        with pytest.raises(Unsupported, match=LEFT_ALONE[family.name]):
            _routers.plan_of(router, dtype)
        return
    # These rows differ from the rows with which patch() compared the router.
    rows = torch.randn(100, router.weight.shape[1] if hasattr(router, "weight") else 64).to(dtype)
    more = ()
    if family.folder in ("hy_v3", "minimax_m2", "dots3_note", "lfm2_moe"):
        wants = router.forward.__code__.co_varnames[2:router.forward.__code__.co_argcount]
        more = (torch.randn(router.weight.shape[0]) / 8,) if wants else ()
    with torch.no_grad():
        logits, weights, ids = router(rows, *more)
        _patch_router(router)
        got_logits, got_weights, got_ids = router(rows, *more)
    assert torch.equal(got_logits, logits) and got_logits.dtype == logits.dtype
    assert got_weights.dtype == weights.dtype and got_ids.dtype == ids.dtype
    want_ids, order = ids.sort(1)
    ours, our_order = got_ids.sort(1)
    same = (want_ids == ours).all(1)
    # If bf16 keys tie, torch.topk may select any of them.
    assert same.float().mean() >= (1 if logits.dtype == torch.float32 else 0.8)
    torch.testing.assert_close(got_weights.gather(1, our_order)[same],
                               weights.gather(1, order)[same],
                               rtol=1e-5 if weights.dtype == torch.float32 else 2 ** -6, atol=1e-9)


def test_a_gradient_is_what_it_was():
    router = _router(next(f for f in FAMILIES if f.name == "qwen3_moe"))
    rows = torch.randn(5, 64)
    router(rows)[1].sum().backward()
    want = router.weight.grad.clone()
    _patch_router(router)
    router.weight.grad = None
    router(rows)[1].sum().backward()
    assert torch.equal(router.weight.grad, want)


def test_a_copy_has_its_own_weights():
    router = _router(next(f for f in FAMILIES if f.name == "qwen3_moe"))
    rows = torch.randn(5, 64)
    _patch_router(router)
    other = copy.deepcopy(router)
    with torch.no_grad():
        other.weight.neg_()
        want = router(-rows)
        torch.testing.assert_close(other(rows), want)
    rows.requires_grad_()
    other(rows)[1].sum().backward()
    assert other.weight.grad is not None and router.weight.grad is None
