# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the arguments of switchyard::route for a router of transformers.

A router is replaced only if its own forward() and switchyard::route give the same logits,
ids and weights for random rows and random parameters.
"""

import copy
import functools
import re
import typing

import torch
import torch.nn.functional as F

import switchyard
from switchyard import _families
from switchyard._experts import DTYPES, Unsupported

_CLASS = re.compile(r"(Router|Gate|Gating)$")
_MODULE = re.compile(r"transformers\.models\.(\w+)\.modeling_")
_BIAS = ("e_score_correction_bias", "expert_bias")
_ROWS = 256
# For each option of the library: the names that routers give to the attribute with its value.
_ATTRIBUTES = {
    "renormalize": ("norm_topk_prob",),
    "routed_scaling_factor": ("routed_scaling_factor", "route_scale", "router_scaling_factor"),
    "num_expert_group": ("num_group",),
    "topk_group": ("topk_group",),
    "logit_scale": ("output_multiplier",),
    "eps": ("norm_min",),
    "logit_softcap": ("router_logit_softcapping",),
}


def _family_of(module):
    """Returns the name of transformers' folder with the module's class, such as qwen3_moe, or None."""
    # The search includes base classes, because torch's parametrisation derives a class in a module of
    # its own.
    found = (_MODULE.match(cls.__module__) for cls in type(module).__mro__)
    return next((match.group(1) for match in found if match is not None), None)


def is_router(module, parent):
    """True if the module is a router: its class has a router's name, and `parent` is or contains an
    experts module. Attention's gates have no such parent."""
    return (_family_of(module) is not None
            and any(_CLASS.search(cls.__name__) for cls in type(module).__mro__)
            and parent is not None
            and (_families.kind_of(parent) is not None
                 or any(_families.kind_of(_unwrapped(m)) for m in parent.children())))


def wrapped_by(module):
    """Returns the module inside a wrapper of peft or of torch.compile, or None for other modules."""
    inside = (getattr(module, name, None) for name in ("base_layer", "_orig_mod"))
    return next((m for m in inside if isinstance(m, torch.nn.Module)), None)


def _unwrapped(module):
    while (inside := wrapped_by(module)) is not None:
        module = inside
    return module


def _attribute(module, names):
    return next((getattr(module, n) for n in names if getattr(module, n, None) is not None), None)


def _options(module, preset, top_k, dtype):
    """Returns the options in which the module differs from its preset, as text for
    switchyard::route."""
    # The options need no config.json, because the module has the configuration's values. The
    # comparison with the module's own results would notice a wrong value.
    options = {"needs_config": 0.0, "needs_groups": 0.0}
    grouped = getattr(module, "topk_method", "") != "greedy"
    for option, names in _ATTRIBUTES.items():
        value = _attribute(module, names)
        if value is None or (option == "renormalize" and not preset["norm_topk_prob"]):
            continue
        if option in ("num_expert_group", "topk_group") and not grouped:
            continue
        options[option] = float(value)
    if preset["in_model_type"] and dtype != torch.float32:
        options["round_to"] = {torch.bfloat16: 1, torch.float16: 2}[dtype]
        # In `sum + eps`, torch on the CPU also rounds eps to the type of the sum.
        options["eps"] = torch.tensor(options.get("eps", preset["eps"]), dtype=dtype).item()
    if preset["num_zero_experts"]:
        options["num_zero_experts"] = 0  # a router of transformers counts them as experts
    # openai_privacy_filter divides scores by top_k.
    if "routed_scaling_factor" not in options and "PrivacyFilter" in type(module).__name__:
        options["routed_scaling_factor"] = 1 / top_k
    return " ".join(f"{name}={value!r}" for name, value in options.items())


def _bias(module, given):
    return given if given is not None else _attribute(module, _BIAS)


class Plan(typing.NamedTuple):
    """The arguments with which switchyard::route does the work of a router."""

    owner: str  # the name of the submodule with the matrix; "" for the module itself
    f32: str  # "product" if the product is in f32, "result" if only the logits are f32, else ""
    preset: str
    options: str
    top_k: int
    dtype: torch.dtype  # the dtype of the weights that the router returns
    has_bias: bool

    def logits(self, module, hidden):
        linear = module.get_submodule(self.owner)
        weight, bias = linear.weight, getattr(linear, "bias", None)
        if self.f32 == "product":
            return F.linear(hidden.float(), weight.float(), None if bias is None else bias.float())
        logits = F.linear(hidden.to(weight.dtype), weight, bias)
        return logits.float() if self.f32 else logits

    def route(self, module, hidden, given_bias=None, *, given_ids=None, record=None):
        """Returns logits, weights and ids. If given_ids are given, uses them instead of a
        selection. Also writes the ids to `record`, if it is given.
        """
        hidden = hidden.reshape(-1, hidden.shape[-1])
        logits = self.logits(module, hidden)
        bias = _bias(module, given_bias) if self.has_bias else None
        named = {"options": self.options, "dtype": self.dtype, "given_ids": given_ids}
        if record is None:
            ids, weights, _ = torch.ops.switchyard.route(
                logits, self.preset, self.top_k, bias, None, **named)
        else:
            ids, weights, _ = torch.ops.switchyard.record_route(
                logits, self.preset, self.top_k, record, bias, None, **named)
        return logits, weights, ids


def _owner(module):
    matrices = [name for name, p in module.named_parameters() if p.dim() == 2]
    if len(matrices) != 1 or not (matrices[0] + ".").endswith("weight."):
        raise Unsupported("its logits are not one matrix product")
    return matrices[0][:-len("weight")].rstrip(".")


def _twin(module):
    """Returns a copy of the module that has its class's own forward()."""
    memo = {id(c): c for c in (getattr(module, "config", None),)}  # does not copy the config
    twin = copy.deepcopy(module, memo)
    twin.__dict__.pop("forward", None)
    return twin


def _example(twin, hidden_size, dtype):
    """Gives the copied router random parameters and runs it on random rows. Returns the router, the
    rows, a tuple of further arguments (a bias, or none), and the results."""
    generator = torch.Generator().manual_seed(1)
    for name, t in [*twin.named_parameters(), *twin.named_buffers()]:
        if t.dim() == 2 and t.is_floating_point():
            t.data.normal_(std=hidden_size ** -0.5, generator=generator)
        elif t.is_floating_point():
            t.data.normal_(std=0.05, generator=generator)
    random = functools.partial(torch.randn, generator=generator, dtype=torch.float32)
    rows = random(_ROWS, hidden_size).mul_(2).to(dtype)
    more = ()
    try:
        out = twin(rows)
    except TypeError:  # forward() needs a bias as its second argument
        experts = next(p.shape[0] for p in twin.parameters() if p.dim() == 2)
        more = (random(experts).mul_(0.05),)
        out = twin(rows, *more)
    if not (isinstance(out, tuple) and len(out) == 3 and all(t.dim() == 2 for t in out)
            and not out[2].is_floating_point()):
        raise Unsupported("it does not return logits, weights and ids")
    return twin, rows, more, out


def _agrees(plan, twin, rows, more, out):
    try:
        logits, weights, ids = plan.route(twin, rows, *more)
    except RuntimeError:  # the preset's options do not suit this number of experts
        return False
    if logits.dtype != out[0].dtype or not torch.equal(logits, out[0]):
        return False
    if weights.dtype != out[1].dtype or weights.shape != out[1].shape:
        return False
    # Ids are compared in ascending order, because topk(sorted=False) returns any order.
    want_ids, order = out[2].sort(1)
    got_ids, our_order = ids.sort(1)
    same = (want_ids == got_ids).all(1)
    want, got = out[1].gather(1, order).double(), weights.gather(1, our_order).double()
    coarse = torch.finfo(out[0].dtype).eps > 1e-4
    close = ((got - want).abs() <= (2 ** -5 if coarse else 1e-5) * want.abs() + 1e-9).all(1)
    # Keys with few bits often tie, and torch.topk does not specify which of the tied experts it
    # takes.
    needed = 0.8 if coarse else 0.99
    return same.float().mean() >= needed and bool(close[same].all())


def plan_of(module, dtype):
    """Returns the Plan for a router and hidden states of a dtype. Raises Unsupported if
    transformers must run the router."""
    family = _family_of(module)
    names = [name for name in switchyard.presets()
             if name == family or name.startswith(family + "_")]
    if not names:
        raise Unsupported(f"there is no preset for {family}")
    owner = _owner(module)
    matrix = module.get_submodule(owner).weight
    if dtype not in DTYPES or matrix.dtype not in DTYPES:
        raise Unsupported(f"no products of {dtype} and {matrix.dtype}")
    # The module's results are compared with each plan's, in the module's own dtype, and also in
    # f32, where keys hardly ever tie.
    examples = [(matrix.dtype, _twin(module), dtype)]
    if {dtype, matrix.dtype} != {torch.float32}:
        examples.append((torch.float32, _twin(module).to(torch.float32), torch.float32))
    with torch.no_grad(), torch.device("cpu"):
        try:
            examples = [(of, _example(twin, matrix.shape[1], rows)) for of, twin, rows in examples]
        except Unsupported:
            raise
        except Exception as error:  # noqa: BLE001  (a module may raise anything)
            raise Unsupported(f"it cannot be tried out: {error}") from error
        for name in names:
            preset = switchyard.presets()[name]
            for f32 in ("", "product", "result"):
                plans = [(Plan(owner, f32, name,
                               _options(module, preset, e[3][2].shape[1], of),
                               e[3][2].shape[1], e[3][1].dtype, bool(preset["correction_bias"])), e)
                         for of, e in examples]
                if all(_agrees(plan, *e) for plan, e in plans):
                    return plans[0][0]
    raise Unsupported(f"its own results are not those of the preset {names[0]}")
