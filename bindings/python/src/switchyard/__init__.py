# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Fast Mixture-of-Experts layers on CPUs, as operators of torch.

`import switchyard.transformers` is what models of transformers need. Here are the
operators themselves, torch.ops.switchyard.experts and .route, and what goes with them.
"""

import functools
import pathlib

import torch

torch.ops.load_library(str(pathlib.Path(__file__).with_name("switchyard_torch.so")))

experts = torch.ops.switchyard.experts
route = torch.ops.switchyard.route


@functools.cache
def presets():
    """The options of each preset by its family's name, each a dict of numbers."""
    lines = (line.split() for line in torch.ops.switchyard.presets().splitlines())
    return {name: {key: float(value) for key, value in (word.split("=") for word in words)}
            for name, *words in lines}


def workspace_limit(bytes=None):
    """Sets how many bytes of scratch each thread keeps between calls, and returns it.

    What a call needs beyond that is allocated for it and given back.
    """
    return torch.ops.switchyard.workspace_limit(bytes)


@torch.library.register_fake("switchyard::experts")
def _(hidden, topk_ids, topk_weights, up, down, *more, **options):
    torch._check(hidden.dim() == 2 and topk_ids.dim() == 2 and down.dim() == 3,
                 lambda: "switchyard::experts: hidden, topk_ids, down: not of 2, 2 and 3 dimensions")
    return torch.empty_like(hidden, memory_format=torch.contiguous_format)


@torch.library.register_fake("switchyard::activate")
def _(up, activation="silu", layout="concatenated", *options, **more):
    torch._check(up.dim() == 2, lambda: "switchyard::activate: up: not of two dimensions")
    return up.new_empty((up.shape[0], up.shape[1] // (1 if layout == "ungated" else 2)))


@torch.library.register_fake("switchyard::route")
def _(logits, preset, top_k, correction_bias=None, expert_scale=None, *, options="", dtype=None):
    torch._check(logits.dim() == 2,
                 lambda: "switchyard::route: logits: not a tensor of two dimensions")
    zero = presets().get(preset, {}).get("num_zero_experts", 0)
    for word in options.split():
        if word.startswith("num_zero_experts="):
            zero = float(word.split("=")[1])
    shape = (logits.shape[0], top_k)
    weights = logits.new_empty(shape, dtype=dtype or logits.dtype)
    return (logits.new_empty(shape, dtype=torch.int64), weights,
            weights.new_empty((logits.shape[0] if zero else 0, 1)))


def _refuse_gradients(op):
    def setup_context(ctx, inputs, output, keyword_only_inputs=None):
        raise RuntimeError(
            f"switchyard::{op}: autograd: has no derivative, and an input requires one: call it "
            "under torch.no_grad() or torch.inference_mode()")

    def backward(ctx, *gradients):
        raise AssertionError("setup_context() has refused")

    torch.library.register_autograd(f"switchyard::{op}", backward, setup_context=setup_context)


for _op in ("experts", "route", "activate"):
    _refuse_gradients(_op)
