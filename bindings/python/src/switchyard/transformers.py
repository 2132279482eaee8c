# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""After this module is imported, transformers can run a model's experts with Switchyard:

    import switchyard.transformers
    model = AutoModelForCausalLM.from_pretrained(name, experts_implementation="switchyard")

For a loaded model, call model.set_experts_implementation("switchyard"). patch(model) does the same
and also replaces the routers; unpatch(model) undoes both. patch(model, experts_dtype="q4_0") also
quantises the experts.

Modules that Switchyard cannot run are left to transformers' own implementation, with one warning
for each reason. If Switchyard can run no part of a model, requesting the implementation
"switchyard" for that model raises an error.
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

from switchyard import _checkpoints, _experts, _families, _quantized, _records, _routers, _sessions
from switchyard._checkpoints import ExpertsConfig  # noqa: F401  (of from_pretrained())
from switchyard._records import Record  # noqa: F401  (of record())

NAME = "switchyard"
_logger = logging.get_logger(__name__)
_warned = set()


def _warn(module, why):
    key = (type(module).__name__, why)
    if key not in _warned:
        _warned.add(key)
        _logger.warning("switchyard: %s is left to transformers' own implementation: %s", *key)


# Caches the arguments of each module's operator. The cache is here and not in the modules, so that
# copies and pickles of modules do not contain it.
_options = _experts.Remembered(
    lambda module: _experts.options_of(module, _families.kind_of(module)))
_plan = _experts.Remembered(_routers.plan_of)
_packed = weakref.WeakKeyDictionary()
_before = weakref.WeakKeyDictionary()  # the implementations that patch() replaced
_session = weakref.WeakKeyDictionary()  # the record() or replay() in which a router takes part


@torch._dynamo.assume_constant_result
def _options_of(module):
    return _options(module)


@torch._dynamo.assume_constant_result
def _plan_of(router, dtype):
    plan, why = _plan(router, dtype)
    return plan and tuple(plan), why  # only constants, because torch.compile accepts nothing else


@torch._dynamo.assume_constant_result
def _packed_of(module):
    """Returns the number of the module's packed weights, or 0 if it has none."""
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
    """Runs the module's forward() with Switchyard's experts, or calls `instead` if Switchyard
    cannot run it."""
    options, why = _options_of(module)
    formats = _quantized.formats_of(module)
    why = why or _experts.obstacle(module, hidden, *more, autocast=formats is not None)
    if why is None:
        weights = _quantized.weights_of(module, kind)
        why = _experts.unusable(weights)
    if why is not None:
        if formats is not None:
            raise RuntimeError(f"switchyard: {type(module).__name__}: {why}; transformers cannot "
                               f"multiply its weights, which are {formats[0]} and {formats[1]}")
        if not torch.compiler.is_compiling():
            _warn(module, why)
        return instead(module, hidden, *more)

    def experts(rows, ids, factors, allow_dropped=False):
        if factors.dtype not in _experts.DTYPES:
            factors = factors.float()
        text, transposed = options
        if weights.formats is not None:
            return torch.ops.switchyard.quantized_experts(
                rows, ids, factors, weights.up, weights.down, *weights.formats, weights.up_bias,
                weights.down_bias, weights.gate, options=text, allow_dropped=allow_dropped)
        return torch.ops.switchyard.experts(
            rows, ids, factors, weights.up, weights.down, weights.up_bias, weights.down_bias,
            weights.gate, options=text, transposed=transposed, allow_dropped=allow_dropped,
            packed=_packed_of(module))

    return kind.forward(module, experts, hidden, *more)


def _experts_without_switchyard(self, hidden_states, top_k_index, top_k_weights):
    instead = ALL_EXPERTS_FUNCTIONS["grouped_mm"]
    # Falls back to eager for dtypes outside of DTYPES, for forward-mode derivatives, and for rows
    # of weights that are no multiple of 16 bytes, because grouped_mm does not support them.
    if (hidden_states.dtype not in _experts.DTYPES or forward_ad._current_level >= 0
            or any(p.dim() == 3 and p.shape[-1] * p.element_size() % 16 != 0
                   for p in self.parameters(recurse=False))):
        instead = type(self).forward.__wrapped__
    return instead(self, hidden_states, top_k_index, top_k_weights)


def experts_forward(self, hidden_states, top_k_index, top_k_weights):
    return _run(self, _families.DECORATED, _experts_without_switchyard, hidden_states, top_k_index,
                top_k_weights)


ALL_EXPERTS_FUNCTIONS.register(NAME, experts_forward)


def _adopted_forward(self, *arguments):
    """Replaces forward() of a class that does not use ALL_EXPERTS_FUNCTIONS."""
    own = type(self).forward
    if self.config._experts_implementation != NAME:
        return own(self, *arguments)
    return _run(self, _families.kind_of(self), own, *arguments)


def _plan_call(router, arguments, named):
    """Returns the Plan with which Switchyard runs a call of a router, or None if Switchyard cannot
    run the call."""
    plan, why = None, "it is called with named arguments" if named else None
    why = why or _experts.obstacle(router, *arguments)
    if why is None:
        plan, why = _plan_of(router, arguments[0].dtype)
    if why is not None:
        if not torch.compiler.is_compiling():
            _warn(router, why)
        return None
    return _routers.Plan(*plan)


def _routed(self, *arguments, **named):
    plan = _plan_call(self, arguments, named)
    if plan is None:
        return type(self).forward(self, *arguments, **named)
    return plan.route(self, *arguments)


@torch.compiler.disable
def _routed_in_session(self, *arguments, **named):
    session = _session.get(self)
    if session is None:  # the router is a copy; only the original takes part in a session
        return _routed(self, *arguments, **named)
    own = functools.partial(type(self).forward, self)
    return session.run(self, _plan_call(self, arguments, named), own, arguments, named)


def _replaced_at(module, function):
    """Returns the name of the module's attribute that has `function` as its forward(), or None. A
    hook of accelerate is a forward() itself, and calls _old_forward."""
    for name in ("forward", "_old_forward"):
        forward = module.__dict__.get(name)
        if isinstance(forward, functools.partial) and forward.func is function:
            return name
    return None


def _is_replaced(module, function):
    return _replaced_at(module, function) is not None


def _replace(module, function):
    """Makes `function` this module's forward(), also in copies and pickles of the module."""
    if _is_replaced(module, function):
        return
    if "forward" in module.__dict__:
        raise _experts.Unsupported("somebody has replaced its forward() already")
    module.__dict__["forward"] = functools.partial(function, module)


def _restore(module, function):
    name = _replaced_at(module, function)
    if name == "forward":
        del module.__dict__["forward"]
    elif name is not None:
        module.__dict__[name] = types.MethodType(type(module).forward, module)


def _models_in(model):
    return {name: m for name, m in model.named_modules() if isinstance(m, PreTrainedModel)}


def _adopt(model):
    """Makes experts modules follow model.config's experts implementation, if their class does not use
    transformers' decorator for this. Returns {module: reason} of modules for which this is impossible."""
    models = _models_in(model)
    reasons = {}
    for name, module, kind in _checkpoints.experts_in(model):
        if kind is _families.DECORATED:
            continue
        is_new = not _is_replaced(module, _adopted_forward)
        try:
            _replace(module, _adopted_forward)
        except _experts.Unsupported as why:
            reasons[module] = str(why)
            continue
        owner = next((models[n] for n in _prefixes(name) if n in models), None)
        if owner is not None:
            module.config = owner.config
            for m in models.values():
                if m.config is owner.config:
                    # Without this attribute, transformers would look for its decorator in the
                    # class's source.
                    type(m)._can_set_experts_implementation_cached_value = True
        elif is_new:
            module.config = types.SimpleNamespace(_experts_implementation=None)
    return reasons


def _prefixes(name):
    """Returns a dotted name and its prefixes: "a.b", "a" and "" for "a.b"."""
    parts = name.split(".") if name else []
    return [".".join(parts[:n]) for n in range(len(parts), -1, -1)]


def _require_experts(model):
    """Raises ValueError if Switchyard would run no part of the model."""
    reasons = {}
    for _, module, _ in _checkpoints.experts_in(model):
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
_save = PreTrainedModel.save_pretrained
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
    if any(name != NAME for name in asked):
        _require_originals("set_experts_implementation", self)
    if NAME in asked:
        _require_experts(self)
        _adopt(self)
    _set_implementation(self, experts_implementation)


@functools.wraps(_save)
def _save_described(self, *arguments, **named):
    with _checkpoints.described(self):
        return _save(self, *arguments, **named)


def _checked(load):
    """Wraps the class method `load`, so that its outermost call raises if Switchyard is requested
    but can run no part of the model.
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
PreTrainedModel.save_pretrained = _save_described
PreTrainedModel.from_pretrained = _checked(PreTrainedModel.from_pretrained.__func__)
PreTrainedModel._from_config = _checked(PreTrainedModel._from_config.__func__)


@dataclasses.dataclass
class Layer:
    """The result of patch() for one module."""

    name: str
    kind: str  # the module's class
    role: str  # "experts" or "router"
    why: str | None = None  # why the module is left to transformers
    not_packed: str | None = ""  # why weights are not packed; None if packed; "" if not requested
    formats: tuple | None = None  # the formats of gate and up, and of down, if quantised
    not_quantized: str = ""  # why weights are not quantised, if quantising was requested
    why_formats: str = ""  # why some formats differ from the requested one
    bytes: tuple = (0, 0)  # the bytes of the weights, before and after patch()
    advice: str | None = None  # a way to run the module faster


class Patched:
    """The result of patch(): print() it, or read `layers` or the lists of names."""

    def __init__(self):
        self.layers = []

    def _names(self, role):
        return [layer.name for layer in self.layers if layer.role == role and layer.why is None]

    experts = property(lambda self: self._names("experts"))
    routers = property(lambda self: self._names("router"))
    untouched = property(lambda self: {n.name: n.why for n in self.layers if n.why is not None})
    packed = property(lambda self: [n.name for n in self.layers if n.not_packed is None])
    unpacked = property(lambda self: {n.name: n.not_packed for n in self.layers if n.not_packed})
    quantized = property(lambda self: {n.name: n.formats for n in self.layers if n.formats})
    kept_float = property(lambda self: {n.name: n.not_quantized for n in self.layers
                                        if n.not_quantized})

    def _says(self, layer):
        says = "by switchyard" if layer.why is None else f"left to transformers: {layer.why}"
        if layer.formats is not None:
            up, down = layer.formats
            says += f", {up}" if up == down else f", gate and up {up}, down {down}"
            if layer.why_formats:
                says += f", {layer.why_formats}"
        elif layer.not_quantized:
            says += f", its weights stay floats: {layer.not_quantized}"
        if layer.not_packed is None:
            says += ", its weights packed for oneDNN, beside their own memory"
        elif layer.not_packed:
            says += f", its weights not packed: {layer.not_packed}"
        if layer.advice is not None:
            says += f"; {layer.advice}"
        return says

    def __str__(self):
        lines = [f"experts by switchyard: {len(self.experts)}, routers: {len(self.routers)}"]
        said = collections.Counter((layer.kind, self._says(layer)) for layer in self.layers)
        lines += [f"{n} x {kind}: {says}" for (kind, says), n in said.items()]
        before, after = (sum(layer.bytes[i] for layer in self.layers) for i in range(2))
        if before != after:
            lines.append(f"experts' weights: {_size(before)} before, {_size(after)} now")
        return "\n".join(lines)


def _size(size):
    return f"{size / 1e9:.2f} GB" if size >= 1e8 else f"{size / 1e6:.2f} MB"


def _bytes_of(weights):
    return sum(t.numel() * t.element_size()
               for t in (weights.up, weights.down, weights.gate) if t is not None)


def _in_adapter(module, parent):
    """True if an adapter of peft adds its own weights to the module's weights in each call."""
    return getattr(parent, "parameter_name", None) and getattr(parent, "base_layer", None) is module


def _plan_quantization(model, experts_dtype):
    """Returns {module: plan()} of the modules to quantise, and {module: reason} of all other
    modules."""
    plans, reasons = {}, {}
    for name, module, kind in _checkpoints.experts_in(model):
        if _quantized.formats_of(module) is not None:
            continue
        try:
            why = _options(module)[1] or _experts.unusable(kind.weights(module))
            if why is None and _in_adapter(module, _parent_of(model, name)):
                why = "an adapter adds to them in each call: merge it first"
            if why is None and torch.nn.utils.parametrize.is_parametrized(module):
                why = "they are computed in each call, by a parametrization"
            if why is not None:
                raise _experts.Unsupported(why)
            plans[module] = _quantized.plan(module, kind, experts_dtype)
        except _experts.Unsupported as why:
            reasons[module] = str(why)
    return plans, reasons


def _quantize(model, plans, experts_dtype):
    """Quantises modules one after the other. A progress bar counts experts' products."""
    kinds = {module: kind for _, module, kind in _checkpoints.experts_in(model) if module in plans}
    total = sum(len(getattr(kind.weights(module), role))
                for module, kind in kinds.items() for role in kind.sources(module))
    with logging.tqdm(total=total, desc=f"Quantizing experts to {experts_dtype}") as bar:
        for module, kind in kinds.items():
            _packed.pop(module, None)
            _quantized.quantize(module, kind, plans[module][0], bar.update)


def _refuse_another_format(model, experts_dtype):
    known = {formats[:2] for _, module, kind in _checkpoints.experts_in(model)
             if (formats := _quantized.formats_of(module)) is not None
             and type(module).__name__ != "GgufExperts"
             and not _quantized.is_format(formats, experts_dtype)}
    if known:
        up, down = min(known)
        raise ValueError(
            f"switchyard.transformers.patch: experts_dtype: {experts_dtype!r}, but experts are "
            f"{up} and {down} already, and their floats are gone: load the model again")


def _describe(model, experts_dtype):
    """Makes save_pretrained() write packed experts. If several models in `model` share a config, the
    config gets the formats of the outermost model."""
    told = []
    for m in _models_in(model).values():
        if _checkpoints.layers_of(m) and not any(m.config is config for config in told):
            told.append(m.config)
            _checkpoints.describe(m, experts_dtype)


def _require_originals(function, model):
    """Raises if transformers' own code can no longer run the model's experts."""
    names = [f"{name} ({_quantized.formats_of(module)[0]})"
             for name, module, _ in _checkpoints.experts_in(model)
             if _quantized.formats_of(module) is not None]
    if names:
        raise ValueError(
            f"switchyard.transformers.{function}: the experts are quantised, and their floats, the "
            f"originals, are gone: load the model again. {len(names)} modules, first {names[0]}")


def _take_over(module):
    if module.config._experts_implementation != NAME:
        # Only this part of the model is patched, so the other parts keep their configuration.
        module._switchyard_config, module.config = module.config, copy.copy(module.config)
        _name_implementation(module.config, NAME)


def _patch_experts(module, kind, pack_weights, layer):
    _packed.pop(module, None)
    _take_over(module)
    layer.why = _options(module)[1]
    if layer.why is not None:
        return
    weights = _quantized.weights_of(module, kind)
    layer.why = _experts.unusable(weights)
    if weights.formats is not None:
        layer.formats = weights.formats[:2]
    if layer.why is None:
        layer.advice = _experts.advice(weights, kind.is_transposed(module))
    if layer.why is None and pack_weights:
        try:
            _packed[module] = _experts.Packed(weights, kind.is_transposed(module))
            layer.not_packed = None
        except _experts.Unsupported as why:
            layer.not_packed = str(why)


def _name_implementation(config, name):
    internal = "_experts_implementation_internal"  # the public name also sets sub-configurations
    setattr(config, internal if hasattr(config, internal) else "_experts_implementation", name)


def _patch_router(router):
    if router in _session:
        return
    dtype = next(p.dtype for p in router.parameters())
    why = _plan(router, dtype)[1]
    if why is not None:
        raise _experts.Unsupported(why)
    _replace(router, _routed)


def _require_module(function, model):
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"switchyard.transformers.{function}: model: not a torch.nn.Module: "
                        f"{type(model).__name__}")


def patch(model, pack_weights=False, experts_dtype=None):
    """Makes Switchyard run the experts of a model, or of a part of a model. Also makes it run the
    routers that compute the same results as a preset.

    experts_dtype: quantises the experts' weights to "int8", "q8_0", "q4_0", "mxfp4", "q4_K" or
    "q6_K", or packs them as "bf16", "f16" or "f32". Quantises the products of a layer (gate and up,
    then down) one after the other, and frees the floats of each product before the next. So memory
    never holds more than the model and one product of a layer.

    - If a format's blocks do not divide a product's input size, this product uses q8_0 or int8.
    - A layer that cannot be quantised keeps its floats, and the result names it.
    - save_pretrained() writes the quantised weights, and from_pretrained() reads them.
    - An interruption leaves some layers quantised, some as floats, and at most one half done. Each
      use of the half-done layer raises RuntimeError.

    pack_weights: makes a copy of the experts' weights in oneDNN's preferred layout, which doubles
    their memory. Each call of patch() makes the copy anew, or drops it if called without
    pack_weights. Once torch notices a write to the weights, the copy is no longer used. A model
    compiled by torch.compile does not check for writes, and torch does not notice writes through
    .data: call torch.compiler.reset() and then patch() again after such writes.

    Returns Patched, a summary to print(). If a call may need derivatives, transformers' own code
    runs. With quantised weights it cannot run, and the call raises RuntimeError.

    Raises ValueError for an unknown experts_dtype, and if experts are already quantised to another
    format. The model is then unchanged.
    """
    _require_module("patch", model)
    if not isinstance(pack_weights, bool):
        raise TypeError("switchyard.transformers.patch: pack_weights: neither True nor False: "
                        f"{pack_weights!r}; a format is experts_dtype=")
    plans, reasons = {}, {}
    if experts_dtype is not None:
        _quantized.check_name(experts_dtype)
        _refuse_another_format(model, experts_dtype)
        plans, reasons = _plan_quantization(model, experts_dtype)
    done = Patched()
    sizes = {module: _bytes_of(_quantized.weights_of(module, kind))
             for _, module, kind in _checkpoints.experts_in(model) if _options(module)[1] is None}
    not_adopted = _adopt(model)
    plans = {module: plan for module, plan in plans.items() if module not in not_adopted}
    for m in _models_in(model).values():
        now = m.config._experts_implementation
        _before.setdefault(m, None if now == NAME else now)
    for m in _models_in(model).values():
        _set_implementation(m, NAME)
    if plans:
        for module in plans:
            _take_over(module)  # first, so that an interruption leaves no packed weights to transformers
        _quantize(model, plans, experts_dtype)
        _describe(model, experts_dtype)
    for name, module in model.named_modules():
        layer = Layer(name, type(module).__name__, "experts", _families.why_not(module))
        kind = _families.kind_of(module)
        if kind is not None:
            layer.why = not_adopted.get(module)
            if layer.why is None:
                _patch_experts(module, kind, pack_weights, layer)
            layer.not_quantized = reasons.get(module, "")
            layer.why_formats = plans.get(module, ("", ""))[1]
            if module in sizes:
                weights = _quantized.weights_of(module, kind)
                layer.bytes = sizes[module], _bytes_of(weights)
        elif _routers.is_router(module, _container_of(model, name)):
            layer.role = "router"
            try:
                if _in_adapter(module, _parent_of(model, name)):
                    raise _experts.Unsupported(
                        "an adapter adds to its weights in each call: merge it first")
                _patch_router(module)
            except _experts.Unsupported as why:
                layer.why = str(why)
        if kind is not None or layer.role == "router" or layer.why is not None:
            done.layers.append(layer)
    return done


def unpatch(model):
    """Returns a model, or a part of one, to transformers' own code.

    Restores the experts' implementation from before patch(), or else transformers' default. Raises
    ValueError if experts are quantised, because their floats are gone. The model is then unchanged.
    """
    _require_module("unpatch", model)
    _require_originals("unpatch", model)
    for m in _models_in(model).values():
        _set_implementation(m, _before.pop(m, None))
    for module in model.modules():
        _packed.pop(module, None)
        _restore(module, _routed)
        _restore(module, _routed_in_session)
        _session.pop(module, None)
        shared = module.__dict__.pop("_switchyard_config", None)
        if shared is not None:
            module.config = shared
        if _is_replaced(module, _adopted_forward):
            _restore(module, _adopted_forward)
            del module.config


def _root_of(model):
    """Returns the outermost model of transformers in `model`. Sessions use this model instead of a
    module around it, because such a module may have a forward() with other arguments. Names of layers
    begin at the returned model.
    """
    return next(iter(_models_in(model).values()), model)


def _recordable(function, model):
    """Returns a list of the model's layers. Raises ValueError, with the name of each layer that
    cannot be recorded.
    """
    layers, reasons, owners = [], {}, []
    for name, module in model.named_modules():
        if _families.kind_of(module) is not None:
            owners.append((name, name.rpartition(".")[0]))
        elif _is_replaced(module, _routed_in_session) and module in _session:
            reasons[name] = f"takes part in a {_session[module].function}() already"
        elif _is_replaced(module, _routed):
            plan, why = _plan(module, next(p.dtype for p in module.parameters()))
            if why is not None:
                reasons[name] = why
                continue
            rows = len(module.get_submodule(plan.owner).weight)
            layers.append(_sessions.Layer(name, module, plan, rows))
        elif _routers.is_router(module, _container_of(model, name)):
            reasons[name] = "patch() has not replaced it"
    names = [layer.name for layer in layers] + list(reasons)
    for name, owner in owners:
        if not any(n.startswith(owner + ".") for n in names):
            reasons[name] = "has no router that patch() replaces"
    if function == "replay":
        tried = ((layer.name, _sessions.why_not_replayed(layer)) for layer in layers)
        reasons.update((name, why) for name, why in tried if why is not None)
    if reasons or not layers:
        what = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise ValueError(f"switchyard.transformers.{function}: model: "
                         f"{what or 'has no router that patch() replaces'}")
    return layers


def _enter_session(session, routers):
    for router in routers:
        _restore(router, _routed)
        _replace(router, _routed_in_session)
        _session[router] = session


def _leave_session(routers):
    for router in routers:
        _session.pop(router, None)
        if _is_replaced(router, _routed_in_session):
            _restore(router, _routed_in_session)
            _replace(router, _routed)


def _arguments_of_session(function, model):
    _require_module(function, model)
    root = _root_of(model)
    family = getattr(getattr(root, "config", None), "model_type", "")
    return root, family, _recordable(function, root), _enter_session, _leave_session


def record(model):
    """Returns a context manager that records the experts of each forward of a patched model:

        with switchyard.transformers.record(model) as recording:
            model(**batch)
        recording.record.ids  # uint8 or uint16 [tokens, layers, top_k]

    - `recording.records` has a Record for each forward. `recording.joined()` returns the records of
      generate() as one Record.
    - Results of the model stay the same. Padding tokens of a two-dimensional attention_mask get the
      mark 255 or 65535.
    - If a call may need gradients, transformers' own routers run, and their experts are recorded.
    - Inside the context, a model that torch.compile has compiled runs its routers uncompiled.

    Raises ValueError with the name of each layer whose router patch() does not replace.
    """
    return _sessions.Recording(*_arguments_of_session("record", model))


def replay(model, record):
    """Returns a context manager in which forwards of a patched model use the experts of a Record,
    with weights from their own logits:

        with switchyard.transformers.replay(model, record):
            model(**batch).loss.backward()

    - Each forward uses the same Record, or the next Record of a list. A Record has the tokens of
      the batch, sequence by sequence: Record.take(), .padded(mask) and .without_padding() arrange
      them.
    - Padding tokens of the record must be padding of attention_mask, and are routed as without a
      record.
    - Under torch.no_grad(), RouteTopK computes weights, with the same bits for the same logits. If
      a call may need gradients, transformers' own router computes the weights, because RouteTopK
      has no derivative. torch.topk then returns the recorded experts, and torch rounds the weights.
    - With gradient checkpointing, backward() also belongs in the `with` block.

    Raises ValueError with the first difference between record and model.
    """
    return _sessions.Replay(*_arguments_of_session("replay", model), record)


def save_record(record, path):
    """Writes a Record to a safetensors file, with a digest of its ids."""
    if not isinstance(record, _records.Record):
        raise TypeError("switchyard.transformers.save_record: record: not a Record: "
                        f"{type(record).__name__}")
    _records.save(record, path)


def load_record(path):
    """Reads a Record from a file that save_record() wrote. Raises ValueError if the file is
    damaged."""
    return _records.load(path)


def _parent_of(model, name):
    return model.get_submodule(name.rpartition(".")[0]) if name else None


def _container_of(model, name):
    """Returns the module that contains the named one, or None. Skips wrappers of the named one."""
    parent = _parent_of(model, name)
    while parent is not None and _routers.wrapped_by(parent) is not None:
        name = name.rpartition(".")[0]
        parent = _parent_of(model, name)
    return parent
