# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Fast Mixture-of-Experts layers on CPUs, as operators of torch.

To run models of transformers, `import switchyard.transformers`. The module `switchyard` has the
operators torch.ops.switchyard.experts and .route, and functions that help to call them.
"""

import functools
import json
import math
import os
import pathlib
import pkgutil
import re
import typing

import torch
from torch.autograd import forward_ad
from torch.utils.flop_counter import register_flop_formula

# Lets Python find switchyard.metal, which is a separate distribution and may be installed in
# another folder.
__path__ = pkgutil.extend_path(__path__, __name__)

torch.ops.load_library(str(pathlib.Path(__file__).with_name("switchyard_torch.so")))

route = torch.ops.switchyard.route
record_route = torch.ops.switchyard.record_route
pack_weights = torch.ops.switchyard.pack_weights


def options_text(**named):
    """Returns options as the text that operators take: "activation=silu layout=ungated"."""
    if "limit_after" in named:
        named["limit_place"] = "after" if named.pop("limit_after") else "before"
    return " ".join(f"{name}={int(value) if isinstance(value, bool) else value}"
                    for name, value in named.items())


def _option(text, name, default):
    """Returns the value of one option in `text`, a text as options_text() returns it."""
    words = (word.partition("=") for word in text.split())
    return ([value for key, _, value in words if key == name] or [default])[-1]


def _halves(options):
    """Returns the number of columns that the activation reads for each output column: 2, for gate and
    up, or 1 in an ungated layer."""
    return 1 if _option(options, "layout", "concatenated") == "ungated" else 2


def experts(hidden, topk_ids, topk_weights, up, down, up_bias=None, down_bias=None,
            activation="silu", layout="concatenated", transposed=False, *, allow_dropped=False,
            packed=0, gate=None, **options):
    """Runs a layer's experts. `options` are the fields of ActivateOptions (activate.h)."""
    return torch.ops.switchyard.experts(
        hidden, topk_ids, topk_weights, up, down, up_bias, down_bias, gate,
        options=options_text(activation=activation, layout=layout, **options),
        transposed=transposed, allow_dropped=allow_dropped, packed=packed)


def quantized_experts(hidden, topk_ids, topk_weights, up, down, up_format, down_format,
                      intermediate, up_bias=None, down_bias=None, activation="silu",
                      layout="concatenated", *, allow_dropped=False, gate=None, **options):
    """Runs a layer's experts like experts(), with weights in one of weight_formats()."""
    return torch.ops.switchyard.quantized_experts(
        hidden, topk_ids, topk_weights, up, down, up_format, down_format, intermediate, up_bias,
        down_bias, gate, options=options_text(activation=activation, layout=layout, **options),
        allow_dropped=allow_dropped)


class WeightFormat(typing.NamedTuple):
    """A format of weights. A row consists of blocks, and a block has these columns and bytes."""

    columns: int  # columns of a block; the columns of weights must be a multiple of this number
    bytes: int  # bytes of a block, as GGML and checkpoints store blocks


@functools.cache
def weight_formats():
    """Returns a dict of the formats that quantized_experts and pack_weights accept, by name."""
    lines = (line.split() for line in torch.ops.switchyard.weight_formats().splitlines())
    return {name: WeightFormat(int(columns), int(size)) for name, columns, size in lines}


@functools.cache
def presets():
    """Returns the options of all presets: {family's name: {option's name: number}}."""
    lines = (line.split() for line in torch.ops.switchyard.presets().splitlines())
    return {name: {key: float(value) for key, value in (word.split("=") for word in words)}
            for name, *words in lines}


class Preset(typing.NamedTuple):
    """The routing options of a checkpoint, and a method that routes with them."""

    family: str
    num_experts: int
    top_k: int
    options: str  # all options of RouteTopK, as switchyard.route takes them

    def route(self, logits, correction_bias=None, expert_scale=None, dtype=None):
        """Routes logits [tokens, num_experts]. Returns ids, weights and identity experts'
        weights."""
        return route(logits, self.family, self.top_k, correction_bias, expert_scale,
                     options=self.options, dtype=dtype)


# Names of the objects in a config.json that may have the text model's fields, and names of the
# field with the number of experts.
_TEXT = ("text_config", "language_config", "llm_config", "thinker_config")
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")


def _text_part(config):
    """Returns the innermost object in a config.json that has the text model's fields."""
    for name in _TEXT:
        if isinstance(inside := config.get(name), dict):
            part = _text_part(inside)
            if any(key in part for key in _EXPERTS):
                return part
    return config


def _lines(config, outer=""):
    """Returns a line for each scalar of a config.json, as torch.ops.switchyard.preset reads it:
    key=8, or key="silu without a second quote, or the key alone for null. A list with one value for
    all layers becomes this value. Any other list becomes NaN, which no field accepts."""
    lines = []
    for key, value in config.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{outer}{key}.")
            continue
        if isinstance(value, (list, tuple)):
            if not value:
                continue
            value = value[0] if all(v == value[0] for v in value) else math.nan
        if value is None:
            lines.append(outer + key)
        elif isinstance(value, (bool, int, float)):
            lines.append(f"{outer}{key}={float(value)!r}")
        elif isinstance(value, str) and value and value.isprintable():
            lines.append(f'{outer}{key}="{value}')
    return lines


def preset(family, config):
    """Returns the Preset of a family with a model's configuration applied.

    `config` is a configuration of transformers, the path of a config.json, or a dict with its
    content. Raises RuntimeError, which names a missing field or a field with a value that the
    family does not allow.
    """
    if not isinstance(family, str):
        raise TypeError(f"switchyard.preset: family: not a name: {family!r}")
    if isinstance(config, (str, os.PathLike)):
        config = json.loads(pathlib.Path(config).read_text())
    elif hasattr(config, "to_dict"):
        config = config.to_dict()
    if not isinstance(config, dict):
        raise TypeError("switchyard.preset: config: not a configuration of transformers, "
                        f"the path of a config.json or a dict of one: {type(config).__name__}")
    # Drops keys with a line break or an equals sign, because no field has such a name.
    lines = [line for line in _lines(_text_part(config)) if re.fullmatch(r"[^\n=]+(=.+)?", line)]
    num_experts, top_k, options = torch.ops.switchyard.preset(family, "\n".join(lines)).split(" ", 2)
    return Preset(family, int(num_experts), int(top_k), options)


def workspace_limit(bytes=None):
    """Sets the limit of scratch to `bytes`, if given. Returns the limit in bytes.

    A call uses two pieces of scratch, which its thread keeps for the next call. A piece with more
    bytes than the limit is freed when the call ends.
    """
    return torch.ops.switchyard.workspace_limit(bytes)


def _check_devices(op, first, **others):
    """Refuses tensors on several devices, because an operator reads tensors of only one device."""
    for name, tensor in others.items():
        if tensor is not None and tensor.device != first.device:
            raise RuntimeError(f"switchyard::{op}: {name}: on {tensor.device}, where the first "
                               f"argument is on {first.device}")


@torch.library.register_fake("switchyard::experts")
def _(hidden, topk_ids, topk_weights, up, down, up_bias=None, down_bias=None, gate=None, **more):
    _check_devices("experts", hidden, topk_ids=topk_ids, topk_weights=topk_weights, up=up,
                   down=down, up_bias=up_bias, down_bias=down_bias, gate=gate)
    torch._check(hidden.dim() == 2 and topk_ids.dim() == 2 and down.dim() == 3,
                 lambda: "switchyard::experts: hidden, topk_ids, down: not of 2, 2 and 3 dimensions")
    return torch.empty_like(hidden, memory_format=torch.contiguous_format)


@torch.library.register_fake("switchyard::quantized_experts")
def _(hidden, topk_ids, topk_weights, up, down, up_format, down_format, intermediate, up_bias=None,
      down_bias=None, gate=None, **more):
    _check_devices("quantized_experts", hidden, topk_ids=topk_ids, topk_weights=topk_weights, up=up,
                   down=down, up_bias=up_bias, down_bias=down_bias, gate=gate)
    torch._check(hidden.dim() == 2 and topk_ids.dim() == 2,
                 lambda: "switchyard::quantized_experts: hidden, topk_ids: not of two dimensions")
    return torch.empty_like(hidden, memory_format=torch.contiguous_format)


@torch.library.register_fake("switchyard::pack_weights")
def _(source, format, *, scales=None):
    _check_devices("pack_weights", source, scales=scales)
    torch._check(source.dim() == 3,
                 lambda: "switchyard::pack_weights: source: not a tensor of three dimensions")
    experts, rows, cols = source.shape
    if source.dtype == torch.uint8:
        block = weight_formats()[format]
        cols = cols // block.bytes * block.columns
    size = torch.ops.switchyard.packed_weights_size(format, rows, cols)
    return source.new_empty((experts, size), dtype=torch.uint8)


@torch.library.register_fake("switchyard::activate")
def _(up, options=""):
    torch._check(up.dim() == 2, lambda: "switchyard::activate: up: not of two dimensions")
    return up.new_empty((up.shape[0], up.shape[1] // _halves(options)))


def _routed_like(op, logits, preset, top_k, *, options="", dtype=None, **others):
    _check_devices(op, logits, **others)
    torch._check(logits.dim() == 2,
                 lambda: f"switchyard::{op}: logits: not a tensor of two dimensions")
    zero = presets().get(preset, {}).get("num_zero_experts", 0)
    zero = float(_option(options, "num_zero_experts", zero))
    shape = (logits.shape[0], top_k)
    weights = logits.new_empty(shape, dtype=dtype or logits.dtype)
    return (logits.new_empty(shape, dtype=torch.int64), weights,
            weights.new_empty((logits.shape[0] if zero else 0, 1)))


@torch.library.register_fake("switchyard::route")
def _(logits, preset, top_k, correction_bias=None, expert_scale=None, **named):
    return _routed_like("route", logits, preset, top_k, correction_bias=correction_bias,
                        expert_scale=expert_scale, **named)


@torch.library.register_fake("switchyard::record_route")
def _(logits, preset, top_k, record, correction_bias=None, expert_scale=None, **named):
    return _routed_like("record_route", logits, preset, top_k, record=record,
                        correction_bias=correction_bias, expert_scale=expert_scale, **named)


@register_flop_formula(torch.ops.switchyard.experts)
def _(hidden, topk_ids, topk_weights, up, down, up_bias=None, down_bias=None, gate=None, **more):
    """Returns the number of floating-point operations in the products: 2 for each multiply-add. The
    arguments are shapes."""
    pairs = topk_ids[0] * topk_ids[1]
    return 2 * pairs * sum(shape[1] * shape[2] for shape in (up, down, gate) if shape is not None)


@register_flop_formula(torch.ops.switchyard.quantized_experts)
def _(hidden, topk_ids, topk_weights, up, down, up_format, down_format, intermediate, *biases,
      options="", **more):
    """Returns the number of floating-point operations in quantised products. The option `layout` tells
    if the experts have a gate."""
    return 2 * topk_ids[0] * topk_ids[1] * hidden[1] * intermediate * (1 + _halves(options))


@register_flop_formula([route, record_route, torch.ops.switchyard.activate, pack_weights])
def _(*arguments, **named):
    return 0


_library = torch.library.Library("switchyard", "FRAGMENT")


def _refuse_derivatives(op):
    """Makes the operator raise an error if a call asks for a derivative.

    torch.library.register_autograd is not enough: with it, torch.func.jvp would return zeros.
    """
    def below_autograd(keyset, *arguments, **named):
        tensors = [t for t in (*arguments, *named.values()) if isinstance(t, torch.Tensor)]
        if (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)) or (
                forward_ad._current_level >= 0
                and any(forward_ad.unpack_dual(t).tangent is not None for t in tensors)):
            raise RuntimeError(
                f"switchyard::{op.__name__}: autograd: has no derivative, and an input requires one: "
                "call it under torch.no_grad() or torch.inference_mode()")
        with torch._C._AutoDispatchBelowAutograd():
            return op.default.redispatch(keyset & torch._C._after_autograd_keyset,
                                         *arguments, **named)

    _library.impl(op.__name__, below_autograd, "Autograd", with_keyset=True)


for _name in ("experts", "quantized_experts", "route", "record_route", "activate"):
    _refuse_derivatives(getattr(torch.ops.switchyard, _name))
