# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Importing this lets transformers run a model's experts by Switchyard:

    import switchyard.transformers
    model = AutoModelForCausalLM.from_pretrained(name, experts_implementation="switchyard")

or, for a model that is there, model.set_experts_implementation("switchyard").
patch(model) does that and lets it route, too. What cannot be done is left to
transformers' own implementation, with one warning for each reason.
"""

import types

import torch
from transformers import PreTrainedModel
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.utils import logging

from switchyard import _experts, _routers

NAME = "switchyard"
_logger = logging.get_logger(__name__)
_warned = set()


def _warn(module, why):
    key = (type(module).__name__, why)
    if key not in _warned:
        _warned.add(key)
        _logger.warning("switchyard: %s is left to transformers' own implementation: %s", *key)


@torch._dynamo.assume_constant_result
def _options_of(module):
    """The module's options, or None: found once."""
    known = module.__dict__.get("_switchyard_options", module)
    if known is module:
        try:
            known = _experts.options_of(module)
        except _experts.Unsupported as why:
            _warn(module, str(why))
            known = None
            module.__dict__["_switchyard_reason"] = str(why)
        module.__dict__["_switchyard_options"] = known
    return known


def _weights_of(module):
    return module.gate_up_proj if module.has_gate else module.up_proj, module.down_proj


@torch._dynamo.assume_constant_result
def _packed_of(module):
    """The number of the module's packed weights, or 0: to be read as they lie."""
    packed = module.__dict__.get("_switchyard_packed")
    if packed is None:
        return 0
    if packed.is_of(*_weights_of(module)):
        return packed.number
    del module.__dict__["_switchyard_packed"]
    _logger.warning("switchyard: the weights of %s have changed since patch() packed them: they "
                    "are read as they lie from now on", type(module).__name__)
    return 0


def experts_forward(self, hidden_states, top_k_index, top_k_weights):
    options = _options_of(self)
    if options is not None:
        up, down = _weights_of(self)
        why = _experts.obstacle(self, hidden_states, top_k_index, top_k_weights, up, down)
        if why is None:
            up_bias = down_bias = None
            if self.has_bias:
                up_bias = self.gate_up_proj_bias if self.has_gate else self.up_proj_bias
                down_bias = self.down_proj_bias
            return torch.ops.switchyard.experts(
                hidden_states, top_k_index, top_k_weights, up, down, up_bias, down_bias,
                *options, self._is_expert_parallel, _packed_of(self))
        if not torch.compiler.is_compiling():
            _warn(self, why)
    instead = ALL_EXPERTS_FUNCTIONS["grouped_mm"]
    if hidden_states.dtype not in _experts.DTYPES:  # nor does grouped_mm
        instead = type(self).forward.__wrapped__
    return instead(self, hidden_states, top_k_index, top_k_weights)


ALL_EXPERTS_FUNCTIONS.register(NAME, experts_forward)


class Patched:
    """What patch() did: names of modules, and those it left alone with the reason."""

    def __init__(self):
        self.experts, self.routers, self.untouched = [], [], {}
        self.packed, self.unpacked = [], {}

    def __str__(self):
        lines = [f"experts by switchyard: {len(self.experts)}, routers: {len(self.routers)}"]
        if self.packed or self.unpacked:
            lines += [f"weights packed for oneDNN, beside their own memory: {len(self.packed)}"]
        lines += [f"{name} is left alone: {why}" for name, why in self.untouched.items()]
        lines += [f"{name} is not packed: {why}" for name, why in self.unpacked.items()]
        return "\n".join(lines)


def _routed(self, hidden_states, *more):
    if torch.is_grad_enabled() and (hidden_states.requires_grad or any(
            p.requires_grad for p in self.parameters())):
        return self._switchyard_forward(hidden_states, *more)
    return self._switchyard_plan.route(self, hidden_states, *more)


def _patch_router(router):
    router._switchyard_plan = _routers.plan_of(router)
    router._switchyard_forward = router.forward
    # Bound, so that a copy of the router is routed by its own weights.
    router.forward = types.MethodType(_routed, router)


def _pack(name, module, done):
    try:
        module.__dict__["_switchyard_packed"] = _experts.Packed(
            *_weights_of(module), bool(module.is_transposed))
        done.packed.append(name)
    except _experts.Unsupported as why:
        done.unpacked[name] = str(why)


def patch(model, pack_weights=False):
    """Lets Switchyard run the model's experts, and its routers where their recipe is a preset.

    With pack_weights, a copy of the experts' weights is made in the layout that oneDNN likes
    to read: their memory is needed twice. It is dropped by patch() without that, and not
    used for weights that have been written to since (a model that torch.compile has
    compiled does not look).

    Returns what was done, as Patched; print() it. Gradients are not among what the new
    routers have: where one may be asked for, a router's own forward() runs.
    """
    done = Patched()
    if isinstance(model, PreTrainedModel):
        model.set_experts_implementation(NAME)
    for name, module in model.named_modules():
        if hasattr(module, "_is_expert_parallel"):
            module.__dict__.pop("_switchyard_packed", None)
            if _options_of(module) is None:
                done.untouched[name] = module._switchyard_reason
                continue
            done.experts.append(name)
            if pack_weights:
                _pack(name, module, done)
        elif _routers.is_router(module):
            try:
                if not hasattr(module, "_switchyard_plan"):
                    _patch_router(module)
                done.routers.append(name)
            except _experts.Unsupported as why:
                done.untouched[name] = str(why)
    return done
