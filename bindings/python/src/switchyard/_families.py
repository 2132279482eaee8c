# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of transformers' classes of experts: where a class has its weights, and how its forward()
is called.

DECORATED is one entry for all classes with @use_experts_implementation, that is, for most classes. The
decorator fixes the names of the weights, and transformers calls these classes through
ALL_EXPERTS_FUNCTIONS. ADOPTED has the other classes of transformers 5.23.
"""

import dataclasses
from collections.abc import Callable

import torch

from switchyard._experts import Weights


@dataclasses.dataclass(frozen=True)
class Kind:
    weights: Callable  # weights(module): Weights
    # forward(module, experts, *arguments) replaces the module's forward(). It calls experts(hidden,
    # ids, weights, allow_dropped=False), which is switchyard::experts.
    forward: Callable
    # sources(module) returns the names of the parameters that become up, down and gate of Weights.
    sources: Callable = lambda module: {"up": "gate_up_proj", "down": "down_proj"}
    biases: Callable = lambda module: (None, None)  # returns the biases of up and of down
    why_not: Callable = lambda module: None  # returns why the module's weights are not supported
    is_transposed: Callable = lambda module: False
    has_gate: Callable = lambda module: True
    is_split: bool = False
    act_fn: Callable = lambda module: getattr(module, "act_fn", None)
    # apply_gate(module, rows) computes the step between the two products, on rows [gate | up].
    apply_gate: Callable = None


def _silently_gated(act_fn):
    """Computes act_fn(gate) * up, for classes without a method for this step."""
    def apply_gate(module, rows):
        gate, up = rows.chunk(2, dim=-1)
        return act_fn(module)(gate) * up
    return {"act_fn": act_fn, "apply_gate": apply_gate}


def _decorated_weights(module):
    if module.has_gate:
        names = "gate_up_proj", "down_proj", "gate_up_proj_bias", "down_proj_bias"
    else:
        names = "up_proj", "down_proj", "up_proj_bias", "down_proj_bias"
    return Weights(*(getattr(module, name) for name in names[:4 if module.has_bias else 2]))


def _decorated_sources(module):
    return {"up": "gate_up_proj" if module.has_gate else "up_proj", "down": "down_proj"}


def _decorated_biases(module):
    if not module.has_bias:
        return None, None
    up = "gate_up_proj_bias" if module.has_gate else "up_proj_bias"
    return getattr(module, up), module.down_proj_bias


def _as_it_is(module, experts, hidden, ids, weights):
    return experts(hidden, ids, weights)


DECORATED = Kind(
    weights=_decorated_weights, sources=_decorated_sources, biases=_decorated_biases,
    has_gate=lambda module: module.has_gate,
    is_transposed=lambda module: bool(module.is_transposed),
    apply_gate=lambda module, rows: module._apply_gate(rows),
    forward=lambda module, experts, hidden, ids, weights: experts(
        hidden, ids, weights, module._is_expert_parallel))


def _dbrx_weights(module):
    shape = module.num_experts, module.ffn_hidden_size, module.hidden_size
    mlp = module.mlp
    return Weights(up=mlp.v1.view(shape), down=mlp.w2.view(shape).transpose(1, 2),
                   gate=mlp.w1.view(shape))


def _dbrx(module, experts, hidden, ids, weights):
    out = experts(hidden.reshape(-1, module.hidden_size), ids, weights)
    return out.view(hidden.shape[0], -1, module.hidden_size)


def _jetmoe(module, experts, hidden):
    rows = hidden.reshape(-1, module.input_size)
    order, _, sorted_weights, sizes, _ = module.router(rows)
    # The router returns the pairs of tokens and experts in the order of experts.
    sizes = torch.as_tensor(sizes, device=rows.device)
    ids = torch.empty_like(order)
    ids[order] = torch.repeat_interleave(sizes, output_size=order.numel())
    weights = torch.empty_like(sorted_weights)
    weights[order] = sorted_weights
    shape = rows.shape[0], module.router.top_k
    return experts(rows, ids.view(shape), weights.view(shape)).view(hidden.shape) + module.bias


def _llama4(module, experts, hidden):
    rows = hidden.reshape(-1, module.hidden_dim)
    scores, logits = module.router(rows)
    # A score multiplies its expert's input, so each pair of a token and an expert has its own row.
    weights, ids = scores.topk(module.top_k, dim=1)
    pairs = (rows[:, None] * weights[..., None]).view(-1, module.hidden_dim)
    out = experts(pairs, ids.reshape(-1, 1), torch.ones_like(weights).view(-1, 1))
    shared = module.shared_expert(rows)
    return shared.add_(out.view(*ids.shape, module.hidden_dim).sum(1)), logits


def _longcat_weights(module):
    # gate_up_proj also has weights of the identity experts, which nothing reads.
    return Weights(module.gate_up_proj[:module.num_routed_experts], module.down_proj)


def _longcat(module, experts, hidden, ids, weights):
    is_identity = ids >= module.num_routed_experts
    factor = (weights * is_identity).sum(1, keepdim=True)
    out = experts(hidden, ids, weights, True)
    return torch.addcmul(out.float(), hidden.float(), factor.float()).to(hidden.dtype)


# The types of blocks that transformers keeps and the library multiplies, by the type's number in
# GGML.
GGML_TYPES = {2: "q4_0", 8: "q8_0", 12: "q4_K", 14: "q6_K"}


def _gguf_weights(module):
    names = (GGML_TYPES[t] for t in (module.gate_up_type, module.down_type))
    return Weights(module.gate_up_proj, module.down_proj, formats=(*names, module.intermediate_dim))


def _gguf_why_not(module):
    types = module.gate_up_type, module.down_type
    if not GGML_TYPES.keys() >= set(types):
        return f"no products of GGML's types {types[0]} and {types[1]}"
    return None


ADOPTED = {
    "GgufExperts": Kind(_gguf_weights, _as_it_is, why_not=_gguf_why_not,
                        **_silently_gated(lambda module: module.act_fn)),
    "DbrxExperts": Kind(_dbrx_weights, _dbrx, is_split=True,
                        sources=lambda module: {"up": "mlp.v1", "down": "mlp.w2", "gate": "mlp.w1"},
                        **_silently_gated(lambda module: module.mlp.activation_fn)),
    "JetMoeMoE": Kind(
        lambda module: Weights(module.input_linear.weight, module.output_linear.weight), _jetmoe,
        sources=lambda module: {"up": "input_linear.weight", "down": "output_linear.weight"},
        **_silently_gated(lambda module: module.activation)),
    "Llama4TextMoe": Kind(
        lambda module: Weights(module.experts.gate_up_proj, module.experts.down_proj), _llama4,
        is_transposed=lambda module: True,
        sources=lambda module: {"up": "experts.gate_up_proj", "down": "experts.down_proj"},
        **_silently_gated(lambda module: module.experts.act_fn)),
    "LongcatFlashExperts": Kind(_longcat_weights, _longcat,
                                **_silently_gated(lambda module: module.act_fn)),
    "Step3p7Experts": Kind(
        lambda module: Weights(module.gate_up_proj, module.down_proj), _as_it_is,
        apply_gate=lambda module, rows: module._apply_gate(rows)),
}

_OTHERS = {
    "JetMoeMoA": "its experts are projections of attention",
    "DogeCDMoE": "its experts are rows of embeddings",
    "NllbMoeSparseMLP": "its experts are modules of their own, with a capacity",
    "SwitchTransformersSparseMLP": "its experts are modules of their own, with a capacity",
}


def _of_class(module, table):
    # The search includes base classes, because torch's parametrisation derives a class with another
    # name.
    return next((table[cls.__name__] for cls in type(module).__mro__
                 if cls.__name__ in table and cls.__module__.startswith("transformers.")), None)


def kind_of(module):
    """Returns the Kind of an experts module, or None for other modules."""
    # hasattr(module) would also be true for the result of torch.compile(experts). This wrapper
    # forwards attributes, but the parameters belong to the module inside.
    decorated = "_is_expert_parallel" in vars(module) or hasattr(type(module), "_is_expert_parallel")
    return DECORATED if decorated else _of_class(module, ADOPTED)


def why_not(module):
    """Returns the reason why a module with experts has no Kind, or None if it has no experts."""
    return _of_class(module, _OTHERS)
