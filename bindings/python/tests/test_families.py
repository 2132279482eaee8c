# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares Switchyard with eager, for each class of transformers that lets an implementation run
its experts.
"""

import copy

import pytest
import small_experts
import torch

from switchyard import _experts, _families

LEFT_ALONE = {"MuseSparkExperts": "it normalises each expert's output"}


def _inputs(tokens, dtype, top_k=3):
    weights, ids = torch.randn(tokens, small_experts.EXPERTS).softmax(-1).topk(top_k)
    return torch.randn(tokens, small_experts.HIDDEN).to(dtype), ids, weights.to(dtype)


def _run(module, implementation, hidden, ids, weights):
    module.config._experts_implementation = implementation
    with torch.no_grad():
        return module(hidden, ids, weights)


@pytest.mark.parametrize("family, name", small_experts.decorated())
def test_meets_the_bound_of_eager(family, name):
    torch.set_num_threads(1)  # threads would slow down eager's many small steps
    module = small_experts.make(family, name)
    if name in LEFT_ALONE:
        with pytest.raises(_experts.Unsupported, match=LEFT_ALONE[name]):
            _experts.options_of(module, _families.DECORATED)
        return
    _experts.options_of(module, _families.DECORATED)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        module.to(dtype)
        exact = copy.deepcopy(module).double()
        for tokens in (1, 20):
            hidden, ids, weights = _inputs(tokens, dtype)
            want = _run(exact, "eager", hidden.double(), ids, weights.double())
            eager = _run(module, "eager", hidden, ids, weights)
            got = _run(module, "switchyard", hidden, ids, weights)
            assert got.dtype == hidden.dtype and got.shape == hidden.shape
            scale = want.abs().max().item()
            bound = max(1.5 * (eager.double() - want).abs().max().item(),
                        2 * torch.finfo(dtype).eps * scale)
            assert (got.double() - want).abs().max().item() <= bound, (dtype, tokens)
            assert scale > 0.1


def test_there_are_many():
    assert len(small_experts.decorated()) >= 60
    assert LEFT_ALONE.keys() <= {name for _, name in small_experts.decorated()}
