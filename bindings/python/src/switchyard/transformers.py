# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Importing this lets transformers run a model's experts by Switchyard:

    import switchyard.transformers
    model = AutoModelForCausalLM.from_pretrained(name, experts_implementation="switchyard")

or, for a model that is there, model.set_experts_implementation("switchyard").
patch(model) does that and lets it route, too. What cannot be done is left to
transformers' own implementation, with one warning for each reason.
"""

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


def experts_forward(self, hidden_states, top_k_index, top_k_weights):
    options = _options_of(self)
    if options is not None:
        up = self.gate_up_proj if self.has_gate else self.up_proj
        why = _experts.obstacle(self, hidden_states, top_k_index, top_k_weights, up,
                                self.down_proj)
        if why is None:
            up_bias = down_bias = None
            if self.has_bias:
                up_bias = self.gate_up_proj_bias if self.has_gate else self.up_proj_bias
                down_bias = self.down_proj_bias
            return torch.ops.switchyard.experts(
                hidden_states, top_k_index, top_k_weights, up, self.down_proj, up_bias,
                down_bias, *options, self._is_expert_parallel)
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

    def __str__(self):
        lines = [f"experts by switchyard: {len(self.experts)}, routers: {len(self.routers)}"]
        lines += [f"{name} is left alone: {why}" for name, why in self.untouched.items()]
        return "\n".join(lines)


def _patch_router(router):
    plan = _routers.plan_of(router)
    original = router.forward

    def forward(hidden_states, *more):
        if torch.is_grad_enabled() and (hidden_states.requires_grad or any(
                p.requires_grad for p in router.parameters())):
            return original(hidden_states, *more)
        return plan.route(router, hidden_states, *more)

    router.forward = forward
    router._switchyard_plan = plan


def patch(model):
    """Lets Switchyard run the model's experts, and its routers where their recipe is a preset.

    Returns what was done, as Patched; print() it. Gradients are not among what the new
    routers have: where one may be asked for, a router's own forward() runs.
    """
    done = Patched()
    if isinstance(model, PreTrainedModel):
        model.set_experts_implementation(NAME)
    for name, module in model.named_modules():
        if hasattr(module, "_is_expert_parallel"):
            if _options_of(module) is None:
                done.untouched[name] = module._switchyard_reason
            else:
                done.experts.append(name)
        elif _routers.is_router(module):
            try:
                if not hasattr(module, "_switchyard_plan"):
                    _patch_router(module)
                done.routers.append(name)
            except _experts.Unsupported as why:
                done.untouched[name] = str(why)
    return done
