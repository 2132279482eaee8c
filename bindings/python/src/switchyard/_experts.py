# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the arguments of switchyard::experts for an experts module of transformers.

A family's name does not tell the activation. So this file runs the module's own gate on a grid of
values, and takes the library's activation that has the same results.
"""

import dataclasses
import functools
import weakref

import torch
from torch.autograd import forward_ad

import switchyard

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
# Names of the attributes that have a gate's parameters.
_LIMIT = ("limit", "swiglu_limit")
_ALPHA = ("alpha", "swiglu_alpha")
_SCALARS = (int, float, str, bool, type(None))


class Unsupported(Exception):
    """Error for a module that transformers must run. Its text is the reason."""


@dataclasses.dataclass(frozen=True)
class Weights:
    """A layer's tensors, as switchyard::experts expects them."""

    up: torch.Tensor
    down: torch.Tensor
    up_bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None
    gate: torch.Tensor | None = None  # None if up contains gate, or if there is no gate
    # None if the weights are floats. Otherwise the format of up and gate, the format of down, and
    # the intermediate size, as switchyard::quantized_experts expects them.
    formats: tuple | None = None


def state_of(module):
    """Returns everything on which a module's results depend, except the tensors' values, as a tuple.
    If a later call returns an equal tuple, the module has not changed.

    A call takes 5 us, while a layer takes 400 us and more.
    """
    found = []
    for m in module.modules():
        found.append(type(m))
        for name, value in m.__dict__.items():
            if name[0] == "_" or name == "forward":
                continue
            if isinstance(value, (list, tuple)):
                value = tuple(v for v in value if isinstance(v, _SCALARS))
            if isinstance(value, (*_SCALARS, tuple)) or callable(value):
                found.append((name, value))
        found += [p.dtype for p in m._parameters.values() if p is not None]
        found += [b.dtype for b in m._buffers.values() if b is not None]
    return tuple(found)


class Remembered:
    """Caches the result of `find(module, *more)`, or the Unsupported that it raised.

    Calls `find` again if the module's state has changed, so that a layer follows its user's
    settings, as transformers' own code does.
    """

    def __init__(self, find):
        self._find = find
        self._of = weakref.WeakKeyDictionary()  # so that copies of a module have no results

    def __call__(self, module, *more):
        """Returns (result, None), or (None, the reason of Unsupported)."""
        known = self._of.setdefault(module, {})
        state = (state_of(module), *more)
        found = known.get(state)
        if found is None:
            if len(known) >= 8:
                known.clear()
            try:
                found = (self._find(module, *more), None)
            except Unsupported as why:
                found = (None, str(why))
            known[state] = found
        return found


def _grid():
    """Returns values of gate and up, each [1, n], from far below any limit to far above."""
    line = torch.cat([torch.linspace(-30, 30, 41, dtype=torch.float32),
                      torch.linspace(-2, 2, 21, dtype=torch.float32)])
    gate, up = torch.meshgrid(line, line, indexing="ij")
    return gate.reshape(1, -1), up.reshape(1, -1)


def _first(module, names):
    for name in names:
        value = getattr(module, name, None)
        if isinstance(value, (int, float)) and value != float("inf"):
            return float(value)
    return None


def _softcaps(module):
    """Returns [beta, linear_beta], or None. A soft-capped gate contains two modules with "softcap" in
    their class name, and each has one of the numbers as an attribute."""
    caps = [m for m in module.modules()
            if "softcap" in type(m).__name__.lower() and next(m.children(), None) is None]
    values = [next((float(v) for v in vars(m).values()
                    if isinstance(v, (int, float)) and not isinstance(v, bool)), None)
              for m in caps]
    return values if len(values) == 2 and None not in values else None


def _candidates(module):
    """Yields options of activate() that may match a gated module with these attributes."""
    limit, alpha = _first(module, _LIMIT), _first(module, _ALPHA)
    for activation in ("silu", "gelu_tanh", "gelu", "relu2", "relu", "identity"):
        yield {"activation": activation}
        if limit:
            yield {"activation": activation, "limit": limit}
            yield {"activation": activation, "limit": limit, "limit_place": "after"}
    if alpha is not None:
        yield {"activation": "swiglu_oai", "alpha": alpha, "limit": limit or 0.0}
    caps = _softcaps(module)
    if caps:
        yield {"activation": "situ", "beta": caps[0], "linear_beta": caps[1]}


def _close(got, want):
    # The bound is above the error of torch's GELU, which is 1.6e-5 at a gate of -3 and an up of 30.
    # It is far below the difference between the two forms of GELU, 1e-2.
    return got.shape == want.shape and torch.allclose(got, want, rtol=1e-5, atol=5e-5)


def _gated_options(module, apply_gate):
    gate, up = _grid()
    rows = {"concatenated": torch.cat([gate, up], 1),
            "interleaved": torch.stack([gate, up], -1).reshape(1, -1)}
    for layout, row in rows.items():
        want = apply_gate(row).float()
        for options in _candidates(module):
            text = switchyard.options_text(layout=layout, **options)
            if _close(torch.ops.switchyard.activate(row, text), want):
                return text
    raise Unsupported("its gate is none of the library's activations")


def _ungated_options(module):
    row = _grid()[0]
    want = module.act_fn(row).float()
    for activation in ("silu", "gelu_tanh", "gelu", "relu2", "relu", "identity"):
        text = switchyard.options_text(layout="ungated", activation=activation)
        if _close(torch.ops.switchyard.activate(row, text), want):
            return text
    raise Unsupported("its activation is none of the library's")


def options_of(module, kind):
    """Returns `options` and `transposed` of switchyard::experts for this module. Raises
    Unsupported if transformers must run the module.
    """
    if getattr(module, "has_post_expert_norm", False):
        raise Unsupported("it normalises each expert's output")
    if (why := kind.why_not(module)) is not None:
        raise Unsupported(why)
    act_fn = kind.act_fn(module)
    if isinstance(act_fn, torch.nn.Module) and next(act_fn.parameters(), None) is not None:
        raise Unsupported("its activation has parameters")
    try:
        with torch.no_grad(), torch.device("cpu"):
            options = (_gated_options(module, functools.partial(kind.apply_gate, module))
                       if kind.has_gate(module) else _ungated_options(module))
    except Unsupported:
        raise
    except Exception as error:  # noqa: BLE001  (a gate may raise anything)
        raise Unsupported(f"its gate cannot be tried out: {error}") from error
    if kind.is_split:
        options += " layout=split"  # replaces an earlier layout
    return options, kind.is_transposed(module)


def _pack(weights, transposed):
    with torch.no_grad():
        return [torch.ops.mkldnn._reorder_linear_weight(
            (w.t() if transposed else w).contiguous(), None) for w in weights.detach()]


class Packed:
    """A copy of a layer's weights in oneDNN's layout, which lives as long as this object.

    `number` is the copy's handle for switchyard::experts. The constructor raises Unsupported if
    oneDNN does not multiply such weights on this CPU.
    """

    def __init__(self, weights, transposed):
        if weights.formats is not None:
            raise Unsupported("they are quantised")
        if weights.gate is not None:
            raise Unsupported("its gate is a matrix of its own")
        up, down = weights.up, weights.down
        if up.device.type != "cpu" or down.device.type != "cpu":
            raise Unsupported("its weights are not on the CPU")
        try:
            self.number = torch.ops.switchyard.keep_packed(_pack(up, transposed),
                                                           _pack(down, transposed))
        except (RuntimeError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            raise Unsupported(f"oneDNN does not pack its weights: {reason}") from error
        weakref.finalize(self, torch.ops.switchyard.drop_packed, self.number)
        self._of = self._state(up, down)
        self._values = self._sample(up, down)

    @staticmethod
    def _state(*weights):
        # -1 stands for the version of tensors that were made in inference mode. Such tensors have
        # no version counter, and are not parameters.
        return [(w.data_ptr(), -1 if w.is_inference() else w._version) for w in weights]

    @staticmethod
    def _sample(*weights):
        """Returns a value of each expert, to notice writes through .data, which torch does not
        count."""
        return [w.detach()[:, w.shape[1] // 2, w.shape[2] // 2].clone() for w in weights]

    def is_of(self, weights):
        """True if the weights seem unchanged since they were packed.

        It misses a write through .data, unless the write changes the value in the middle of an
        expert.
        """
        up, down = weights.up, weights.down
        return self._of == self._state(up, down) and all(
            torch.equal(a, b) for a, b in zip(self._values, self._sample(up, down)))


@functools.cache
def _has_gemm(dtype):
    """True if torch uses oneDNN for products of this dtype on this CPU."""
    name = {torch.bfloat16: "_is_mkldnn_bf16_supported", torch.float16: "_is_mkldnn_fp16_supported"}
    try:
        return dtype not in name or getattr(torch.ops.mkldnn, name[dtype])()
    except (AttributeError, RuntimeError):  # torch was built without oneDNN
        return False


def advice(weights, transposed):
    """Returns advice for a layer with weights that torch multiplies slowly, or None.

    If torch has no GEMM for the weights' dtype, it runs a scalar loop for transposed weights, at
    0.2 GB/s.
    """
    if weights.formats is not None or not transposed or _has_gemm(weights.up.dtype):
        return None
    dtype = str(weights.up.dtype)[6:]
    name = {"bfloat16": "bf16", "float16": "f16"}[dtype]
    return (f"torch has no fast product of transposed {dtype} weights on this CPU: "
            f'experts_dtype="{name}" takes the library\'s, with the same values')


def unusable(weights):
    """Returns the reason why transformers must multiply these weights in all calls, or None."""
    for tensor in (weights.up, weights.down):
        if tensor.device.type != "cpu":
            return f"its weights are on {tensor.device.type}, not on the CPU"
        if hasattr(tensor, "to_local"):
            return "its weights are distributed tensors"
        if tensor.dtype not in DTYPES and weights.formats is None:
            return f"no products of {tensor.dtype}"
    if weights.down.dtype != weights.up.dtype:
        return f"its weights are of {weights.up.dtype} and {weights.down.dtype}"
    return None


def obstacle(module, hidden, *more, autocast=False):
    """Returns the reason why transformers must run a call with these tensors, or None.

    Pass autocast=True if the caller accepts any dtype that torch's autocast may have chosen.
    """
    if torch.is_grad_enabled() and any(
            t.requires_grad for t in (hidden, *more, *module.parameters())):
        return ("gradients may be asked for, and there are none: "
                "call the model under torch.no_grad() or torch.inference_mode()")
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives may be asked for, and there are none"
    if hidden.device.type != "cpu":
        return "it is not on the CPU"
    if not autocast and torch.is_autocast_enabled("cpu"):
        return "autocast is on"
    if hidden.dtype not in DTYPES:
        return f"no products of {hidden.dtype}"
    return None
