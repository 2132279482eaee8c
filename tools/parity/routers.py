# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a family's router, runs it on random rows, and records its logits and keys.

Does not repeat a router's code: its own forward() runs, and the calls of linear() and
topk() are observed.
"""

import dataclasses
import inspect

import torch

BIAS = ("e_score_correction_bias", "balancing_biases", "expert_bias")
WIDTH = 64


class Configuration:
    """A family's default configuration, with some fields changed."""

    def __init__(self, family):
        self._default = family.config_class()
        self._names = family.names
        self._says = dict(family.config_says, hidden_size=WIDTH)

    def __getattr__(self, name):
        return self._says[name] if name in self._says else getattr(self._default, name)

    def fields(self):
        """The fields of a config.json, which has one name for each value."""
        names = self._default.attribute_map
        said = {names.get(name, name) for name in self._says}
        return {**{name: value for name, value in self._default.to_dict().items()
                   if names.get(name, name) not in said}, **self._says}

    def say(self, field, value):
        """Sets all names of the field."""
        self._says.update(dict.fromkeys(self._names.get(field, [field]), value))

    def vary(self, field, value):
        """Sets the names of the field that the family's configuration has."""
        self._says.update((name, value) for name in self._names.get(field, [field])
                          if hasattr(self._default, name))

    def get(self, field):
        values = (getattr(self, name, None) for name in self._names[field])
        return next((value for value in values if value is not None), None)


class Watch(torch.overrides.TorchFunctionMode):
    """Keeps the results of linear(), and the arguments and results of topk()."""

    def __init__(self):
        super().__init__()
        self.linear, self.topk = [], []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func is torch.nn.functional.linear:
            self.linear.append(out.clone())
        elif func in (torch.topk, torch.Tensor.topk):
            self.topk.append((args[0].clone(), out.indices.clone()))
        return out

    def keys(self, rows):
        """Returns (keys, k) of each topk over whole rows."""
        # Leaves out a topk of [rows, groups, experts of a group], because only its values are
        # used.
        return [(k.reshape(rows, -1), i.shape[-1]) for k, i in self.topk
                if k.dim() == 2 or k.shape[0] == 1]


@dataclasses.dataclass
class Routed:
    logits: torch.Tensor
    ids: torch.Tensor
    weights: torch.Tensor
    keys: list  # a list of (keys, k); rows in which these tie are skipped
    bias: torch.Tensor | None = None
    scale: torch.Tensor | None = None
    given: torch.Tensor | None = None


def _as_tuple(module, hidden, watch, *more):
    _, weights, ids, *_ = module(hidden, *more)
    return ids, weights


def _batch(module, hidden, watch, *more):
    return _as_tuple(module, hidden[None], watch, *more)


def _dbrx(module, hidden, watch):
    weights, ids = module.route_tokens_to_experts(module.router(hidden))
    return ids, weights


def _hash(module, hidden, watch):
    vocabulary, top_k = module.tid2eid.shape
    module.tid2eid.copy_(torch.rand(vocabulary, module.num_experts).topk(top_k).indices)
    watch.topk.clear()
    return _as_tuple(module, hidden, watch, torch.randint(vocabulary, (len(hidden),)))


def _shared(module, hidden, watch):
    _, weights, ids, shared = module(hidden)
    behind = module.num_experts + torch.arange(shared.shape[1]).expand(len(ids), -1)
    return torch.cat([ids, behind], 1), torch.cat([weights, shared], 1)


def _sorted_pairs(module, hidden, watch):
    order, _, sorted_weights, _, _ = module(hidden)
    weights = torch.empty_like(sorted_weights)
    weights[order] = sorted_weights
    ids = watch.topk[-1][1]
    return ids, weights.reshape(ids.shape)


def _all_experts(module, hidden, watch):
    scores, _ = module(hidden)
    ids = watch.topk[-1][1]
    return ids, scores.gather(1, ids)


def _rounds(module, hidden, watch):
    ids, weights = _as_tuple(module, hidden, watch)
    # The router selects the maximum, and then the maximum of the rest. So the order matters, too.
    logits = watch.linear[-1]
    watch.topk += [(logits, ids[:, :n]) for n in range(1, ids.shape[1] + 1)]
    return ids, weights


def _skip(module, hidden, watch):
    _, weights = _batch(module, hidden, watch)
    return watch.topk[-1][1], weights  # it returns 0 for the skip expert


_HOW = {"tuple": _as_tuple, "batch": _batch, "dbrx": _dbrx, "hash": _hash, "shared": _shared,
        "sorted_pairs": _sorted_pairs, "all_experts": _all_experts, "rounds": _rounds,
        "skip": _skip}


def _construct(cls, how, config):
    if how == "sorted_pairs":
        return cls(config.hidden_size, config.get("num_experts"),
                   config.get("num_experts_per_tok"))
    if how == "skip":
        return cls(config, layer_idx=0)
    if how == "dbrx":
        config.say("ffn_config", config)
        config.say("ffn_hidden_size", 1)
    if how == "hash":
        config.say("vocab_size", 997)
    return cls(config)


def make(family, config):
    """The router with random parameters, f32."""
    module = _construct(family.router_class, family.how, config).eval()
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() > 1:
                p.normal_(std=family.gain / p.shape[-1] ** 0.5)
                p[:, 0] = family.gain  # the first column shifts all logits by the same amount
            elif name.endswith("bias"):
                p.normal_(std=0.5)
            elif name != "global_scale":
                p.uniform_(0.5, 1.5)
    return module


def _biases(module):
    """The parameters or buffers that are added to keys. At most one."""
    named = dict(module.named_parameters()) | dict(module.named_buffers())
    return [t for name, t in named.items() if name.rsplit(".", 1)[-1] in BIAS]


class _Replace(Watch):
    """Replaces the result of the linear() call with this number by the logits."""

    def __init__(self, number, logits):
        super().__init__()
        self._number, self._logits = number, logits

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs)
        if func is torch.nn.functional.linear and len(self.linear) == self._number:
            out = self._logits.reshape(out.shape).to(out.dtype)
            self.linear[-1] = out.clone()
        return out


def route(family, module, logits, bias=None, scale=None):
    """Runs the router as f32 on these logits, instead of the logits that its last linear() computes.
    Returns ids and weights. Raises ValueError unless the router has just the inputs that are given.
    """
    arguments = inspect.signature(module.forward).parameters
    biases, more = _biases(module), []
    is_argument = any(name in BIAS for name in arguments)
    if (bias is not None) != bool(biases or is_argument):
        raise ValueError("has no bias" if bias is not None else "always has a bias")
    if (scale is not None) != hasattr(module, "per_expert_scale"):
        raise ValueError("has no expert_scale" if scale is not None
                         else "always has an expert_scale")
    hidden = torch.ones(len(logits), WIDTH)
    with torch.no_grad():
        if biases:
            biases[0].data = bias.reshape(biases[0].shape)
        elif bias is not None:
            more = [bias]
        if scale is not None:
            module.per_expert_scale.data = scale.reshape(module.per_expert_scale.shape)
        with Watch() as watch:
            _HOW[family.how](module, hidden, watch, *more)
        with _Replace(len(watch.linear), logits) as watch:
            ids, weights = _HOW[family.how](module, hidden, watch, *more)
    return ids.reshape(len(logits), -1), weights.reshape(len(logits), -1)


def run(family, module, dtype, rows, bias_std):
    """Runs the router on `rows` random rows, in a model of the type `dtype`."""
    arguments = inspect.signature(module.forward).parameters
    if not family.keeps_f32:
        module.to(dtype)
    biases = _biases(module)
    # Rows differ: some give nearly uniform scores, and some saturated sigmoids.
    hidden = torch.randn(rows, WIDTH) * 2.0 ** torch.empty(rows, 1).uniform_(-3, 3)
    # In some rows all sigmoids are as small as the eps that is added to their sums. No sigmoid is
    # below 2^-126, because RouteTopK's sigmoids are 0 there.
    hidden[:, 0] = 0
    hidden[::8, 0] = torch.empty(len(hidden[::8])).uniform_(-45, 0)

    bias, more = None, []
    with torch.no_grad(), Watch() as watch:
        if biases:
            # A correction bias is f32 in a model of any type, but its values fit bf16.
            # Most are negative, so that the value of a dropped key matters.
            (bias,) = biases
            bias.data = ((torch.randn(bias.shape) - 2) * bias_std).bfloat16().float()
        elif any(name in BIAS for name in arguments):
            bias = ((torch.randn(module.num_experts) - 2) * bias_std).bfloat16().float()
            more = [bias]
        ids, weights = _HOW[family.how](module, hidden.to(dtype), watch, *more)
    scale = getattr(module, "per_expert_scale", None)
    return Routed(
        logits=watch.linear[-1].reshape(rows, -1), ids=ids.reshape(rows, -1),
        weights=weights.reshape(rows, -1), keys=watch.keys(rows),
        bias=None if bias is None else bias.detach().reshape(1, -1),
        scale=None if scale is None else scale.detach().float().reshape(1, -1),
        given=ids if family.how == "hash" else None)
