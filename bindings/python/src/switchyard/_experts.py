# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""What an experts module of transformers computes, as options of switchyard::experts.

No family is named: a module's own gate is run on a grid of values, and it is whatever
activation of the library gives the same.
"""

import weakref

import torch

import switchyard  # noqa: F401  (registers the operators)

_GATES = ("concatenated", "interleaved")
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
# By which names modules have the parameters of their gates.
_LIMIT = ("limit", "swiglu_limit")
_ALPHA = ("alpha", "swiglu_alpha")


class Unsupported(Exception):
    """Why a module is left to transformers."""


def _grid():
    """Gates and ups from far below any limit to far above, each [1, n]."""
    line = torch.cat([torch.linspace(-30, 30, 41), torch.linspace(-2, 2, 21)])
    gate, up = torch.meshgrid(line, line, indexing="ij")
    return gate.reshape(1, -1), up.reshape(1, -1)


def _first(module, names):
    for name in names:
        value = getattr(module, name, None)
        if isinstance(value, (int, float)):
            return float(value)
    return None


def _softcaps(module):
    """beta and linear_beta of a gate that caps both of its halves."""
    caps = [m for m in module.modules()
            if "softcap" in type(m).__name__.lower() and next(m.children(), None) is None]
    values = [next((float(v) for v in vars(m).values()
                    if isinstance(v, (int, float)) and not isinstance(v, bool)), None)
              for m in caps]
    return values if len(values) == 2 and None not in values else None


def _candidates(module):
    """Options of activate() that a gated module with these attributes may mean."""
    limit, alpha = _first(module, _LIMIT), _first(module, _ALPHA)
    for activation in ("silu", "gelu_tanh", "gelu", "relu2", "relu", "identity"):
        yield {"activation": activation}
        if limit:
            yield {"activation": activation, "limit": limit}
            yield {"activation": activation, "limit": limit, "limit_after": True}
    if alpha is not None:
        yield {"activation": "swiglu_oai", "alpha": alpha, "limit": limit or 0.0}
    caps = _softcaps(module)
    if caps:
        yield {"activation": "situ", "beta": caps[0], "linear_beta": caps[1]}


def _close(got, want):
    return got.shape == want.shape and torch.allclose(got, want, rtol=1e-5, atol=1e-5)


def _gated_options(module):
    gate, up = _grid()
    rows = {"concatenated": torch.cat([gate, up], 1),
            "interleaved": torch.stack([gate, up], -1).reshape(1, -1)}
    for layout in _GATES:
        want = module._apply_gate(rows[layout]).float()
        for options in _candidates(module):
            got = torch.ops.switchyard.activate(rows[layout], layout=layout, **options)
            if _close(got, want):
                return {"layout": layout, **options}
    raise Unsupported("its gate is none of the library's activations")


def _ungated_options(module):
    row = _grid()[0]
    want = module.act_fn(row).float()
    for activation in ("silu", "gelu_tanh", "gelu", "relu2", "relu", "identity"):
        options = {"activation": activation, "layout": "ungated"}
        if _close(torch.ops.switchyard.activate(row, **options), want):
            return options
    raise Unsupported("its activation is none of the library's")


# As switchyard::experts has them behind its tensors.
_DEFAULTS = {"activation": "silu", "layout": "concatenated", "transposed": False, "alpha": 1.702,
             "beta": 4.0, "linear_beta": 25.0, "limit": 0.0, "limit_after": False}


def options_of(module):
    """The arguments of switchyard::experts behind its tensors, but for the last, as this
    module has them; raises Unsupported.
    """
    if module.has_post_expert_norm:
        raise Unsupported("it normalises each expert's output")
    act_fn = getattr(module, "act_fn", None)
    if isinstance(act_fn, torch.nn.Module) and next(act_fn.parameters(), None) is not None:
        raise Unsupported("its activation has parameters")
    try:
        with torch.no_grad(), torch.device("cpu"):
            options = (_gated_options if module.has_gate else _ungated_options)(module)
    except Unsupported:
        raise
    except Exception as error:  # noqa: BLE001  (a gate may do whatever it likes)
        raise Unsupported(f"its gate cannot be tried out: {error}") from error
    options["transposed"] = bool(module.is_transposed)
    return tuple((_DEFAULTS | options).values())


def _pack(weights, transposed):
    with torch.no_grad():
        return [torch.ops.mkldnn._reorder_linear_weight(
            (w.t() if transposed else w).contiguous(), None) for w in weights.detach()]


class Packed:
    """A copy of a layer's weights in oneDNN's own layout, as long as this lives.

    `number` is what switchyard::experts knows it by. Raises Unsupported where oneDNN does
    not multiply such weights on this CPU.
    """

    def __init__(self, up, down, transposed):
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

    @staticmethod
    def _state(*weights):
        # Tensors made in inference mode count no versions; nor are they parameters.
        return [(w.data_ptr(), -1 if w.is_inference() else w._version) for w in weights]

    def __reduce__(self):
        return type(None), ()  # copies of a module have weights of their own

    def is_of(self, up, down):
        """Whether the weights are still those, and not written to since."""
        return self._of == self._state(up, down)


def obstacle(module, hidden, ids, weights, up, down):
    """Why this call is left to transformers, or None."""
    if torch.is_grad_enabled() and (hidden.requires_grad or weights.requires_grad or
                                    up.requires_grad or down.requires_grad):
        return ("gradients may be asked for, and there are none: "
                "call the model under torch.no_grad() or torch.inference_mode()")
    if hidden.device.type != "cpu" or up.device.type != "cpu":
        return "it is not on the CPU"
    if torch.is_autocast_enabled("cpu"):
        return "autocast is on"
    if hidden.dtype not in DTYPES or up.dtype not in DTYPES or down.dtype != up.dtype:
        return f"no product of {hidden.dtype} and {up.dtype}"
    if hidden.dim() != 2 or ids.dim() != 2:
        return f"hidden states of {hidden.dim()} dimensions"
    return None
