# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Small checkpoints of more families, for make_checkpoints.py. They cover each way to store
experts, to route and to combine; numpy computes the expected results in float64. The docstring of
each family's function lists the ways that the family covers.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

TOKENS = 200
HIDDEN = 64
INTER = 40
EXPERTS = 12
TOP_K = 3
EPS = 1e-6

rng = np.random.default_rng(20260118)


@dataclasses.dataclass
class Family:
    config: dict
    tensors: dict  # name -> float32 or float16, as stored
    logits: Callable  # of hidden states
    select: Callable  # of logits: ids
    block: Callable  # of hidden states and ids: the hidden states after the block
    next_norm: Callable | None = None
    layer: int = 1


def weight(*shape, scale=1.0, dtype=np.float32):
    """Random weights [.., in]. If inputs are around 1, products are around `scale`."""
    return (rng.standard_normal(shape) * scale / np.sqrt(shape[-1])).astype(dtype)


def around(centre, *shape):
    return (centre + rng.uniform(-0.5, 0.5, shape)).astype(np.float32)


def rms_norm(x, w=1.0):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS) * w


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def top_k(keys):
    return np.argsort(-keys, axis=-1, kind="stable")[:, :TOP_K]


def of(x, ids):
    return np.take_along_axis(x, ids, axis=-1)


def share(x):
    return x / x.sum(axis=-1, keepdims=True)


def swiglu(gate, up):
    return gate * sigmoid(gate) * up


class Mlps:
    """`count` gated MLPs: gate and up [count, inter, HIDDEN], down [count, HIDDEN, inter]."""

    def __init__(self, inter=INTER, count=EXPERTS, dtype=np.float32):
        self.gate = weight(count, inter, HIDDEN, dtype=dtype)
        self.up = weight(count, inter, HIDDEN, dtype=dtype)
        self.down = weight(count, HIDDEN, inter, scale=2.0, dtype=dtype)
        self.biases = None  # of gate, up and down, [count, ..] each

    def run(self, x, e=0, act=swiglu, scale=1.0):
        gate, up, down = (m[e].astype(np.float64) for m in (self.gate, self.up, self.down))
        bias = [b[e] for b in self.biases] if self.biases else [0.0, 0.0, 0.0]
        hidden = act(scale * (x @ gate.T) + bias[0], scale * (x @ up.T) + bias[1])
        return hidden @ down.T + bias[2]

    def sum(self, x, ids, weights, act=swiglu, weighs_input=False):
        """Returns the weighted sum of the experts `ids`. Experts past the last one return their input."""
        out = np.zeros(x.shape)
        for t, (row_ids, row_weights) in enumerate(zip(ids, weights)):
            for e, w in zip(row_ids, row_weights):
                if e >= len(self.gate):
                    out[t] += w * x[t]
                elif weighs_input:
                    out[t] += self.run(x[t], e, act, w)
                else:
                    out[t] += w * self.run(x[t], e, act)
        return out

    def named(self, pattern, names=("gate_proj", "up_proj", "down_proj")):
        """One tensor per matrix and expert. `pattern` has {m} for the matrix, {e} for the expert."""
        return {pattern.format(e=e, m=name): m[e]
                for name, m in zip(names, (self.gate, self.up, self.down))
                for e in range(len(self.gate))}

    def fused(self):
        return np.concatenate([self.gate, self.up], axis=1)


def turned(m):
    return np.ascontiguousarray(m.swapaxes(1, 2))


def config(model_type, **more):
    return {"model_type": model_type, "hidden_act": "silu", "hidden_size": HIDDEN,
            "num_hidden_layers": 2, "num_experts_per_tok": TOP_K, "rms_norm_eps": EPS, **more}


def model(tensors, last_norm=None, root="model.", number=1):
    named = {f"{root}layers.{number}.{name}": t for name, t in tensors.items()}
    if last_norm is not None:
        named[f"{root}norm.weight"] = last_norm
    return named


def layer(said, tensors, norm, router, experts, weigh, select=top_k, act=swiglu, bias=0.0,
          shared=lambda x: 0.0, residual=1.0, scale=1.0, weighs_input=False, **more):
    """A family whose block is residual * hidden + scale * (routed + shared). Router, routed experts
    and shared expert read `hidden` after one norm. `weigh` computes the experts' weights from logits
    and ids.
    """
    def logits(hidden):
        return rms_norm(hidden, norm) @ router.T + bias

    def block(hidden, ids):
        x = rms_norm(hidden, norm)
        routed = experts.sum(x, ids, weigh(logits(hidden), ids), act, weighs_input)
        return residual * hidden + scale * (routed + shared(x))

    return Family(said, tensors, logits, select, block, **more)


def deepseek_v3():
    """Separate tensors per expert; sigmoid, bias, groups, factor; a plain shared expert."""
    norm, last = around(1, HIDDEN), around(1, HIDDEN)
    router, bias = weight(EXPERTS, HIDDEN, scale=2), around(0, EXPERTS)
    experts, shared = Mlps(), Mlps(2 * INTER, 1)

    def select(logits):
        keys = (sigmoid(logits) + bias).reshape(-1, 4, 3)
        groups = np.sort(keys, axis=-1)[:, :, 1:].sum(axis=-1)
        dropped = np.argsort(-groups, axis=-1, kind="stable")[:, 2:]
        np.put_along_axis(keys, dropped[:, :, None], -np.inf, axis=1)
        return top_k(keys.reshape(-1, EXPERTS))

    return layer(
        config("deepseek_v3", moe_intermediate_size=INTER, n_routed_experts=EXPERTS,
               n_shared_experts=2, n_group=4, topk_group=2, routed_scaling_factor=1.75,
               norm_topk_prob=True, first_k_dense_replace=1),
        model({"post_attention_layernorm.weight": norm, "mlp.gate.weight": router,
               "mlp.gate.e_score_correction_bias": bias,
               **experts.named("mlp.experts.{e}.{m}.weight"),
               **shared.named("mlp.shared_experts.{m}.weight")}, last),
        norm, router, experts, lambda logits, ids: 1.75 * share(of(sigmoid(logits), ids)), select,
        shared=shared.run, next_norm=lambda out: rms_norm(out, last))


def deepseek_v4():
    """No "model." prefix; sqrt(softplus); clamps; the block returns no residual."""
    norm, router = around(1, HIDDEN), weight(EXPERTS, HIDDEN, scale=2)
    bias, experts, shared = around(0, EXPERTS), Mlps(), Mlps(INTER, 1)
    w = ("w1", "w3", "w2")

    def score(logits):
        return np.sqrt(np.log1p(np.exp(logits)))

    def act(gate, up):
        return swiglu(np.minimum(gate, 0.75), np.clip(up, -0.75, 0.75))

    return layer(
        config("deepseek_v4", moe_intermediate_size=INTER, n_routed_experts=EXPERTS,
               n_shared_experts=1, routed_scaling_factor=1.5, swiglu_limit=0.75,
               num_hash_layers=1),
        model({"ffn_norm.weight": norm, "ffn.gate.weight": router, "ffn.gate.bias": bias,
               **experts.named("ffn.experts.{e}.{m}.weight", w),
               **shared.named("ffn.shared_experts.{m}.weight", w)}, root=""),
        norm, router, experts, lambda logits, ids: 1.5 * share(of(score(logits), ids)),
        lambda logits: top_k(score(logits) + bias), act, residual=0.0,
        shared=lambda x: shared.run(x, act=act))


def gpt_oss():
    """One transposed tensor for all experts, gate and up interleaved; biases everywhere."""
    norm, last = around(1, HIDDEN), around(1, HIDDEN)
    router, router_bias = weight(EXPERTS, HIDDEN, scale=2), around(0, EXPERTS)
    experts = Mlps(dtype=np.float16)
    experts.biases = [around(0, EXPERTS, n) for n in (INTER, INTER, HIDDEN)]
    gate_up = np.stack([experts.gate, experts.up], axis=2).reshape(EXPERTS, -1, HIDDEN)
    gate_up_bias = np.stack(experts.biases[:2], axis=2).reshape(EXPERTS, -1)

    def act(gate, up):
        gate, up = np.minimum(gate, 1.5), np.clip(up, -1.5, 1.5)
        return (up + 1) * gate * sigmoid(1.702 * gate)

    return layer(
        config("gpt_oss", intermediate_size=INTER, num_local_experts=EXPERTS, swiglu_limit=1.5),
        model({"post_attention_layernorm.weight": norm, "mlp.router.weight": router,
               "mlp.router.bias": router_bias,
               "mlp.experts.gate_up_proj": turned(gate_up),
               "mlp.experts.gate_up_proj_bias": gate_up_bias,
               "mlp.experts.down_proj": turned(experts.down),
               "mlp.experts.down_proj_bias": experts.biases[2]}, last),
        norm, router, experts, lambda logits, ids: softmax(of(logits, ids)), act=act,
        bias=router_bias, next_norm=lambda out: rms_norm(out, last))


def llama4():
    """Inside another model; transposed, gate then up; each selected expert's input is multiplied by
    the sigmoid of its logit."""
    norm, following = around(1, HIDDEN), around(1, HIDDEN)
    router, experts, shared = weight(EXPERTS, HIDDEN, scale=2), Mlps(), Mlps(INTER, 1)
    text = config("llama4_text", intermediate_size=INTER, num_local_experts=EXPERTS,
                  moe_layers=[0])
    root = "language_model.model."
    return layer(
        {"model_type": "llama4", "hidden_size": 1, "text_config": text},
        model({"post_attention_layernorm.weight": norm, "feed_forward.router.weight": router,
               "feed_forward.experts.gate_up_proj": turned(experts.fused()),
               "feed_forward.experts.down_proj": turned(experts.down),
               **shared.named("feed_forward.shared_expert.{m}.weight")}, root=root, number=0)
        | model({"input_layernorm.weight": following}, root=root),
        norm, router, experts, lambda logits, ids: sigmoid(of(logits, ids)), weighs_input=True,
        shared=shared.run, next_norm=lambda out: rms_norm(out, following), layer=0)


def gemma4():
    """One tensor for all experts, gate then up; norms before and after the experts, before and after
    the dense MLP, and after their sum; the tanh form of GELU; scales of the experts and of the
    layer."""
    names = ("pre_feedforward_layernorm_2", "pre_feedforward_layernorm",
             "post_feedforward_layernorm_2", "post_feedforward_layernorm_1",
             "post_feedforward_layernorm")
    norms = [around(1, HIDDEN) for _ in names]
    scale, expert_scale, layer_scalar = around(1, HIDDEN), around(1, EXPERTS), around(1, 1)
    router = weight(EXPERTS, HIDDEN, scale=2 * HIDDEN ** 0.5)
    last, experts, dense = around(1, HIDDEN), Mlps(), Mlps(56, 1)

    def act(gate, up):
        return gate * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate ** 3))) / 2 * up

    def logits(hidden):
        return (rms_norm(hidden, scale) * HIDDEN ** -0.5) @ router.T

    def block(hidden, ids):
        weights = share(of(softmax(logits(hidden)), ids)) * expert_scale[ids]
        routed = experts.sum(rms_norm(hidden, norms[0]), ids, weights, act)
        shared = dense.run(rms_norm(hidden, norms[1]), act=act)
        both = rms_norm(routed, norms[2]) + rms_norm(shared, norms[3])
        return (hidden + rms_norm(both, norms[4])) * layer_scalar

    return Family(
        config("gemma4_text", moe_intermediate_size=INTER, intermediate_size=56,
               num_experts=EXPERTS, top_k_experts=TOP_K, enable_moe_block=True,
               hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh"),
        model({f"{name}.weight": norm for name, norm in zip(names, norms)}
              | {"router.proj.weight": router, "router.scale": scale,
                 "router.per_expert_scale": expert_scale, "layer_scalar": layer_scalar,
                 "experts.gate_up_proj": experts.fused(), "experts.down_proj": experts.down,
                 **dense.named("mlp.{m}.weight")}, last),
        logits, top_k, block, lambda out: rms_norm(out, last))


def longcat_flash():
    """Experts that return their input; softmax over all, with a bias, not renormalised."""
    zero = 5
    norm, router = around(1, HIDDEN), weight(EXPERTS + zero, HIDDEN, scale=2)
    bias, experts = around(0, EXPERTS + zero) / 8, Mlps()
    return layer(
        config("longcat_flash", expert_ffn_hidden_size=INTER, n_routed_experts=EXPERTS,
               zero_expert_num=zero, moe_topk=TOP_K, num_layers=2, routed_scaling_factor=6),
        model({"post_attention_layernorm.0.weight": norm, "mlp.router.classifier.weight": router,
               "mlp.router.e_score_correction_bias": bias[None],
               **experts.named("mlp.experts.{e}.{m}.weight")}),
        norm, router, experts, lambda logits, ids: 6 * of(softmax(logits), ids),
        lambda logits: top_k(softmax(logits) + bias), residual=0.0)


def granitemoe():
    """A factor for the block's output; softmax of the selected logits."""
    norm, last = around(1, HIDDEN), around(1, HIDDEN)
    router, experts = weight(EXPERTS, HIDDEN, scale=2), Mlps(dtype=np.float16)
    return layer(
        config("granitemoe", intermediate_size=INTER, num_local_experts=EXPERTS,
               residual_multiplier=0.22),
        model({"post_attention_layernorm.weight": norm,
               "block_sparse_moe.router.layer.weight": router,
               "block_sparse_moe.input_linear.weight": experts.fused(),
               "block_sparse_moe.output_linear.weight": experts.down}, last),
        norm, router, experts, lambda logits, ids: softmax(of(logits, ids)), scale=0.22,
        next_norm=lambda out: rms_norm(out, last))


def qwen3_next():
    """Norms with 1 + weight; a shared expert, multiplied by the sigmoid of its logit."""
    norm, last = around(0, HIDDEN), around(0, HIDDEN)
    router, gate = weight(EXPERTS, HIDDEN, scale=2), weight(1, HIDDEN)
    experts, shared = Mlps(), Mlps(56, 1)
    return layer(
        config("qwen3_next", moe_intermediate_size=INTER, num_experts=EXPERTS,
               shared_expert_intermediate_size=56, norm_topk_prob=True),
        model({"post_attention_layernorm.weight": norm, "mlp.gate.weight": router,
               **experts.named("mlp.experts.{e}.{m}.weight"),
               **shared.named("mlp.shared_expert.{m}.weight"),
               "mlp.shared_expert_gate.weight": gate}, last),
        1 + norm, router, experts, lambda logits, ids: share(of(softmax(logits), ids)),
        shared=lambda x: sigmoid(x @ gate.T) * shared.run(x),
        next_norm=lambda out: rms_norm(out, 1 + last))


FAMILIES = (deepseek_v3, deepseek_v4, gemma4, gpt_oss, granitemoe, llama4, longcat_flash,
            qwen3_next)


def clear(family, hidden):
    """True for each token that keeps its selected experts if logits are rounded to bfloat16."""
    logits = family.logits(hidden)
    want = np.sort(family.select(logits), axis=-1)
    same = np.ones(len(hidden), dtype=bool)
    for _ in range(24):
        moved = logits + 2.0 ** -6 * rng.uniform(-1, 1, logits.shape) * np.abs(logits).max()
        same &= (np.sort(family.select(moved), axis=-1) == want).all(axis=-1)
    return same
