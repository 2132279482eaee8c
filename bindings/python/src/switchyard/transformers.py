# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Importing this lets transformers run a model's experts by Switchyard:

    import switchyard.transformers
    model = AutoModelForCausalLM.from_pretrained(name, experts_implementation="switchyard")

or, for a model that is there, model.set_experts_implementation("switchyard").
patch(model) does that and lets it route, too; unpatch(model) takes both back. What cannot
be done is left to transformers' own implementation, with one warning for each reason; a
model of which nothing can be done refuses the name.
"""

import collections
import copy
import dataclasses
import functools
import threading
import types
import weakref

import torch
from torch.autograd import forward_ad
from transformers import PreTrainedModel
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.utils import logging

from switchyard import _experts, _families, _routers

NAME = "switchyard"
_logger = logging.get_logger(__name__)
_warned = set()


def _warn(module, why):
    key = (type(module).__name__, why)
    if key not in _warned:
        _warned.add(key)
        _logger.warning("switchyard: %s is left to transformers' own implementation: %s", *key)


# Knowledge about modules, by module: none of it is in their copies and pickles.
_options = _experts.Remembered(
    lambda module: _experts.options_of(module, _families.kind_of(module)))
_plan = _experts.Remembered(_routers.plan_of)
_packed = weakref.WeakKeyDictionary()
_before = weakref.WeakKeyDictionary()  # the implementations that patch() replaced


@torch._dynamo.assume_constant_result
def _options_of(module):
    return _options(module)


@torch._dynamo.assume_constant_result
def _plan_of(router, dtype):
    plan, why = _plan(router, dtype)
    return plan and tuple(plan), why  # constants are all that torch.compile takes from here


@torch._dynamo.assume_constant_result
def _packed_of(module):
    """The number of the module's packed weights, or 0: to be read as they lie."""
    packed = _packed.get(module)
    if packed is None:
        return 0
    if packed.is_of(_families.kind_of(module).weights(module)):
        return packed.number
    del _packed[module]
    _logger.warning("switchyard: the weights of %s have changed since patch() packed them: they "
                    "are read as they lie from now on", type(module).__name__)
    return 0


def _run(module, kind, instead, hidden, *more):
    """The module's forward() with Switchyard's experts, or `instead` of it."""
    options, why = _options_of(module)
    why = why or _experts.obstacle(module, hidden, *more)
    if why is None:
        weights = kind.weights(module)
        why = _experts.unusable(weights)
    if why is not None:
        if not torch.compiler.is_compiling():
            _warn(module, why)
        return instead(module, hidden, *more)

    def experts(rows, ids, factors, allow_dropped=False):
        if factors.dtype not in _experts.DTYPES:
            factors = factors.float()
        return torch.ops.switchyard.experts(
            rows, ids, factors, weights.up, weights.down, weights.up_bias, weights.down_bias,
            *options, allow_dropped, _packed_of(module), weights.gate)

    return kind.forward(module, experts, hidden, *more)


def experts_forward(self, hidden_states, top_k_index, top_k_weights):
    instead = ALL_EXPERTS_FUNCTIONS["grouped_mm"]
    # Nor does that have other types, nor derivatives in forward mode.
    if hidden_states.dtype not in _experts.DTYPES or forward_ad._current_level >= 0:
        instead = type(self).forward.__wrapped__
    return _run(self, _families.DECORATED, instead, hidden_states, top_k_index, top_k_weights)


ALL_EXPERTS_FUNCTIONS.register(NAME, experts_forward)


def _adopted_forward(self, *arguments):
    """forward() of a class that does not ask ALL_EXPERTS_FUNCTIONS."""
    own = type(self).forward
    if self.config._experts_implementation != NAME:
        return own(self, *arguments)
    return _run(self, _families.kind_of(self), own, *arguments)


def _routed(self, *arguments, **named):
    plan, why = None, "it is called with named arguments" if named else None
    why = why or _experts.obstacle(self, *arguments)
    if why is None:
        plan, why = _plan_of(self, arguments[0].dtype)
    if why is not None:
        if not torch.compiler.is_compiling():
            _warn(self, why)
        return type(self).forward(self, *arguments, **named)
    return _routers.Plan(*plan).route(self, *arguments)


def _is_replaced(module, function):
    forward = module.__dict__.get("forward")
    return isinstance(forward, functools.partial) and forward.func is function


def _replace(module, function):
    """Lets `function` be this module's forward(), in copies and pickles, too."""
    if _is_replaced(module, function):
        return
    if "forward" in module.__dict__:
        raise _experts.Unsupported("somebody has replaced its forward() already")
    module.__dict__["forward"] = functools.partial(function, module)


def _restore(module, function):
    if _is_replaced(module, function):
        del module.__dict__["forward"]


def _experts_in(model):
    """(name, module, Kind) of all modules with experts."""
    for name, module in model.named_modules():
        kind = _families.kind_of(module)
        if kind is not None:
            yield name, module, kind


def _models_in(model):
    return {name: m for name, m in model.named_modules() if isinstance(m, PreTrainedModel)}


def _adopt(model):
    """Lets classes that do not ask ALL_EXPERTS_FUNCTIONS ask it: those of this model."""
    models = _models_in(model)
    for name, module, kind in _experts_in(model):
        if kind is _families.DECORATED:
            continue
        owner = next((models[n] for n in _prefixes(name) if n in models), None)
        if owner is not None:
            module.config = owner.config
            for m in models.values():
                if m.config is owner.config:
                    # Else transformers looks for its decorator in the source.
                    type(m)._can_set_experts_implementation_cached_value = True
        elif not _is_replaced(module, _adopted_forward):
            module.config = types.SimpleNamespace(_experts_implementation=None)
        _replace(module, _adopted_forward)


def _prefixes(name):
    """"a.b", "a", "" of "a.b"."""
    parts = name.split(".") if name else []
    return [".".join(parts[:n]) for n in range(len(parts), -1, -1)]


def _require_experts(model):
    """Raises unless something would run by Switchyard."""
    reasons = {}
    for _, module, _ in _experts_in(model):
        why = _options(module)[1]
        if why is None:
            return
        reasons[type(module).__name__] = why
    for module in model.modules():
        why = _families.why_not(module)
        if why is not None:
            reasons[type(module).__name__] = why
    raise ValueError(
        f'experts_implementation="{NAME}": nothing of {type(model).__name__} would run by it: '
        + ("; ".join(f"{name}: {why}" for name, why in reasons.items()) or "it has no experts"))


_set_implementation = PreTrainedModel.set_experts_implementation
_post_init = PreTrainedModel.post_init
_loading = threading.local()


@functools.wraps(_post_init)
def _post_init_and_adopt(self):
    _post_init(self)
    if self.config._experts_implementation == NAME:
        _adopt(self)


@functools.wraps(_set_implementation)
def _set_checked_implementation(self, experts_implementation):
    asked = (experts_implementation.values() if isinstance(experts_implementation, dict)
             else [experts_implementation])
    if NAME in asked:
        _require_experts(self)
        _adopt(self)
    _set_implementation(self, experts_implementation)


def _checked(load):
    """The class method `load`, whose outermost call looks whether the name it was given
    runs anything.
    """
    @functools.wraps(load)
    def checked(cls, *arguments, **named):
        _loading.depth = getattr(_loading, "depth", 0) + 1
        try:
            loaded = load(cls, *arguments, **named)
        finally:
            _loading.depth -= 1
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        if _loading.depth == 0 and any(
                m.config._experts_implementation == NAME for m in _models_in(model).values()):
            _require_experts(model)
        return loaded

    return classmethod(checked)


PreTrainedModel.post_init = _post_init_and_adopt
PreTrainedModel.set_experts_implementation = _set_checked_implementation
PreTrainedModel.from_pretrained = _checked(PreTrainedModel.from_pretrained.__func__)
PreTrainedModel._from_config = _checked(PreTrainedModel._from_config.__func__)


@dataclasses.dataclass
class Layer:
    """What patch() did to a module."""

    name: str
    kind: str  # its class
    role: str  # "experts" or "router"
    why: str | None = None  # it is left to transformers
    not_packed: str | None = ""  # why not; None if it is; "" if nobody asked


class Patched:
    """What patch() did: print() it, or look at `layers` or at lists of names."""

    def __init__(self):
        self.layers = []

    def _names(self, role):
        return [layer.name for layer in self.layers if layer.role == role and layer.why is None]

    experts = property(lambda self: self._names("experts"))
    routers = property(lambda self: self._names("router"))
    untouched = property(lambda self: {n.name: n.why for n in self.layers if n.why is not None})
    packed = property(lambda self: [n.name for n in self.layers if n.not_packed is None])
    unpacked = property(lambda self: {n.name: n.not_packed for n in self.layers if n.not_packed})

    def __str__(self):
        lines = [f"experts by switchyard: {len(self.experts)}, routers: {len(self.routers)}"]
        said = collections.Counter()
        for layer in self.layers:
            says = "by switchyard" if layer.why is None else f"left to transformers: {layer.why}"
            if layer.not_packed is None:
                says += ", its weights packed for oneDNN, beside their own memory"
            elif layer.not_packed:
                says += f", its weights not packed: {layer.not_packed}"
            said[layer.kind, says] += 1
        return "\n".join(lines + [f"{n} x {kind}: {says}" for (kind, says), n in said.items()])


def _patch_experts(module, kind, pack_weights, layer):
    _packed.pop(module, None)
    if module.config._experts_implementation != NAME:
        # Part of a model whose other parts nobody has asked about.
        module._switchyard_config, module.config = module.config, copy.copy(module.config)
        _name_implementation(module.config, NAME)
    layer.why = _options(module)[1] or _experts.unusable(kind.weights(module))
    if layer.why is None and pack_weights:
        try:
            _packed[module] = _experts.Packed(kind.weights(module), kind.is_transposed(module))
            layer.not_packed = None
        except _experts.Unsupported as why:
            layer.not_packed = str(why)


def _name_implementation(config, name):
    internal = "_experts_implementation_internal"  # the other one tells sub-configurations
    setattr(config, internal if hasattr(config, internal) else "_experts_implementation", name)


def _patch_router(router):
    dtype = next(p.dtype for p in router.parameters())
    why = _plan(router, dtype)[1]
    if why is not None:
        raise _experts.Unsupported(why)
    _replace(router, _routed)


def _require_module(function, model):
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"switchyard.transformers.{function}: model: not a torch.nn.Module: "
                        f"{type(model).__name__}")


def patch(model, pack_weights=False):
    """Lets Switchyard run the experts of a model, or of any part of one, and its routers
    where their recipe is a preset.

    With pack_weights, a copy of the experts' weights is made in the layout that oneDNN likes
    to read: their memory is needed twice. Each call makes it anew, or drops it if called
    without. Weights that torch knows to be written to since are read as they lie, but by a
    model that torch.compile has compiled, which does not look; after writing through .data,
    call this again.

    Returns what was done, as Patched; print() it. Where derivatives may be asked for,
    transformers' own code runs.
    """
    _require_module("patch", model)
    done = Patched()
    _adopt(model)
    for m in _models_in(model).values():
        now = m.config._experts_implementation
        _before.setdefault(m, None if now == NAME else now)
    for m in _models_in(model).values():
        _set_implementation(m, NAME)
    for name, module in model.named_modules():
        layer = Layer(name, type(module).__name__, "experts", _families.why_not(module))
        kind = _families.kind_of(module)
        if kind is not None:
            _patch_experts(module, kind, pack_weights, layer)
        elif _routers.is_router(module, _parent_of(model, name)):
            layer.role = "router"
            try:
                _patch_router(module)
            except _experts.Unsupported as why:
                layer.why = str(why)
        if kind is not None or layer.role == "router" or layer.why is not None:
            done.layers.append(layer)
    return done


def unpatch(model):
    """Gives a model, or a part of one, back to transformers' own code.

    Its experts' implementation is what it was before patch(), or else transformers' default.
    """
    _require_module("unpatch", model)
    for m in _models_in(model).values():
        _set_implementation(m, _before.pop(m, None))
    for module in model.modules():
        _packed.pop(module, None)
        _restore(module, _routed)
        shared = module.__dict__.pop("_switchyard_config", None)
        if shared is not None:
            module.config = shared
        if _is_replaced(module, _adopted_forward):
            _restore(module, _adopted_forward)
            del module.config


def _parent_of(model, name):
    return model.get_submodule(name.rpartition(".")[0]) if name else None
