#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes small Hugging Face checkpoints for the MoeLayer tests.

Usage: make_checkpoints.py OUT_DIR   (needs PyPI's safetensors and numpy)

Each checkpoint's folder also has the expected results of its MoE block, computed
in float64 by numpy alone. hidden.f32 [TOKENS, HIDDEN] is the block's input. For each
layer N with experts, expected_N.f64 has the hidden states after the block, and then
the hidden states after the next norm. C++ code that transposes a weight or confuses
two weights gives other results.
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True  # to write nothing to the sources' folder

import numpy as np
import safetensors
import safetensors.numpy

import checkpoint_families

TOKENS = 600  # so that one expert has more rows than the program handles at once
HIDDEN = 72
INTER = 40
SHARED = 56
EXPERTS = 12
TOP_K = 3
EPS = 1e-6

rng = np.random.default_rng(20260117)


def weight(out_size, in_size, scale=1.0):
    """Random weights [out_size, in_size]. If inputs are around 1, products are around `scale`."""
    shape = (out_size, in_size)
    return (rng.standard_normal(shape) * scale / np.sqrt(in_size)).astype(np.float32)


def norm_weight():
    return rng.uniform(0.5, 1.5, HIDDEN).astype(np.float32)


def to_bf16_bits(x):
    """Returns the bits of x, rounded to nearest even; numpy has no bfloat16."""
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def bf16_tensor(bits):
    """A tensor for the low-level interface, which also has dtypes that numpy lacks.
    That interface changed with safetensors 0.8."""
    if hasattr(safetensors, "TensorSpec"):
        return safetensors.TensorSpec(dtype="bfloat16", shape=bits.shape,
                                      data_ptr=bits.ctypes.data, data_len=bits.nbytes)
    return {"dtype": "bfloat16", "shape": bits.shape, "data": bits.tobytes()}


def rms_norm(x, w):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS) * w


def silu(x):
    return x / (1 + np.exp(-x))


def mlp(x, gate, up, down):
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def top_k_of(logits):
    return np.argsort(-logits, axis=-1, kind="stable")[:, :TOP_K]


def block(hidden, layer, renormalize):
    """The MoE block in float64. `layer` has the weights as they were stored."""
    layer = {k: v.astype(np.float64) for k, v in layer.items()}
    x = rms_norm(hidden.astype(np.float64), layer["norm"])
    logits = x @ layer["router"].T
    probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs /= probs.sum(axis=-1, keepdims=True)
    ids = top_k_of(logits)
    weights = np.take_along_axis(probs, ids, axis=-1)
    if renormalize:
        weights /= weights.sum(axis=-1, keepdims=True)
    out = hidden.astype(np.float64)
    for t in range(len(hidden)):
        for w, e in zip(weights[t], ids[t]):
            out[t] += w * mlp(x[t], *(layer[f"{m}{e}"] for m in ("gate", "up", "down")))
    if "shared_gate" in layer:
        logit = x @ layer["shared_logit"].T
        shared = mlp(x, layer["shared_gate"], layer["shared_up"], layer["shared_down"])
        out += shared / (1 + np.exp(-logit))
    return out, rms_norm(out, layer["next_norm"]), ids


def make_layer(shared):
    layer = {"norm": norm_weight(), "next_norm": norm_weight(),
             "router": weight(EXPERTS, HIDDEN, 2.0)}
    for e in range(EXPERTS):
        layer[f"gate{e}"] = weight(INTER, HIDDEN)
        layer[f"up{e}"] = weight(INTER, HIDDEN)
        layer[f"down{e}"] = weight(HIDDEN, INTER, 2.0)
    if shared:
        layer["shared_gate"] = weight(SHARED, HIDDEN)
        layer["shared_up"] = weight(SHARED, HIDDEN)
        layer["shared_down"] = weight(HIDDEN, SHARED, 2.0)
        layer["shared_logit"] = weight(1, HIDDEN)
    return layer


def make_hidden(layers):
    """Hidden states that are exact in bfloat16. Logits in bfloat16 select the same experts
    as logits in float64. A common direction makes some experts busy."""
    hidden = rng.standard_normal((4 * TOKENS, HIDDEN)) + 1.2 * rng.standard_normal(HIDDEN)
    hidden = from_bf16_bits(to_bf16_bits(hidden.astype(np.float32)))
    clear = np.ones(len(hidden), dtype=bool)
    for layer in layers:
        x = rms_norm(hidden.astype(np.float64), layer["norm"].astype(np.float64))
        logits = -np.sort(-(x @ layer["router"].astype(np.float64).T), axis=-1)
        # Logits are rounded by up to 2^-8, and so are the numbers from which they are computed.
        clear &= logits[:, TOP_K - 1] - logits[:, TOP_K] > 2.0**-6 * np.abs(logits).max(axis=-1)
    hidden = hidden[clear][:TOKENS]
    assert len(hidden) == TOKENS
    return hidden


def write_expected(folder, layers, renormalize):
    """Writes the inputs and expected results. `layers`: layer number -> weights as stored."""
    hidden = make_hidden(layers.values())
    hidden.tofile(folder / "hidden.f32")
    for number, layer in layers.items():
        out, normed, ids = block(hidden, layer, renormalize)
        assert np.bincount(ids.ravel()).max() > 256, "no expert is busy enough"
        np.concatenate([out, normed]).tofile(folder / f"expected_{number}.f64")


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def qwen_names(number, last, layer):
    """Weights under the names that Hugging Face's qwen2_moe and qwen3_moe use."""
    prefix = f"model.layers.{number}."
    next_norm = (f"model.layers.{number + 1}.input_layernorm.weight" if number < last
                 else "model.norm.weight")
    named = {
        prefix + "post_attention_layernorm.weight": layer["norm"],
        next_norm: layer["next_norm"],
        prefix + "mlp.gate.weight": layer["router"],
    }
    for e in range(EXPERTS):
        for matrix in ("gate", "up", "down"):
            name = f"{prefix}mlp.experts.{e}.{matrix}_proj.weight"
            named[name] = layer[f"{matrix}{e}"]
    if "shared_gate" in layer:
        for matrix in ("gate", "up", "down"):
            name = f"{prefix}mlp.shared_expert.{matrix}_proj.weight"
            named[name] = layer[f"shared_{matrix}"]
        named[prefix + "mlp.shared_expert_gate.weight"] = layer["shared_logit"]
    return named


def config(model_type, num_layers, **more):
    return {
        "architectures": ["ForCausalLM"], "model_type": model_type,
        "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": 128,
        "moe_intermediate_size": INTER, "num_experts": EXPERTS,
        "num_experts_per_tok": TOP_K, "num_hidden_layers": num_layers,
        "rms_norm_eps": EPS, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "torch_dtype": "bfloat16", **more,
    }


def make_qwen3(folder):
    """BF16 in two shards with an index; layer 0 is dense, layer 2 the last."""
    shards = {"model-00001-of-00002.safetensors": {}, "model-00002-of-00002.safetensors": {}}
    first, second = shards
    stored = {}
    for number in (1, 2):
        layer = {k: to_bf16_bits(v) for k, v in make_layer(shared=False).items()}
        stored[number] = {k: from_bf16_bits(v) for k, v in layer.items()}
        for name, bits in qwen_names(number, 2, layer).items():
            # Layer 1 is spread over both shards.
            shards[second if number == 2 or "experts.1" in name else first][name] = bits
    weight_map = {name: file for file, tensors in shards.items() for name in tensors}
    for file, tensors in shards.items():
        data = safetensors.serialize({k: bf16_tensor(v) for k, v in tensors.items()},
                                     {"format": "pt"})
        (folder / file).write_bytes(data)
    write_json(folder / "model.safetensors.index.json",
               {"metadata": {"total_size": 0}, "weight_map": weight_map})
    write_json(folder / "config.json",
               config("qwen3_moe", 3, norm_topk_prob=True, mlp_only_layers=[0]))
    write_expected(folder, stored, renormalize=True)


def make_qwen2(folder):
    """One file, F16 with norms and router in F32; no renormalisation; a shared
    expert. Two layers, both with experts."""
    tensors = {}
    stored = {}
    for number in (0, 1):
        layer = make_layer(shared=True)
        layer = {k: v if k in ("norm", "next_norm", "router") else v.astype(np.float16)
                 for k, v in layer.items()}
        stored[number] = layer
        tensors.update(qwen_names(number, 1, layer))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json",
               config("qwen2_moe", 2, norm_topk_prob=False,
                      shared_expert_intermediate_size=SHARED))
    write_expected(folder, stored, renormalize=False)


def make_renamed(folder):
    """F32. All tensors and all keys of the configuration have other names, as in a new
    family. Two files without an index; the floats in `odd` start on odd bytes."""
    layer = make_layer(shared=False)
    named = {"block.0.norm": layer["norm"], "end.norm": layer["next_norm"],
             "block.0.router": layer["router"]}
    for e in range(EXPERTS):
        for ours, theirs in (("gate", "w1"), ("down", "w2"), ("up", "w3")):
            named[f"block.0.{theirs}.{e}"] = layer[f"{ours}{e}"]
    even = {k: v for i, (k, v) in enumerate(named.items()) if i % 2 == 0}
    odd = {k: v for i, (k, v) in enumerate(named.items()) if i % 2 == 1}
    safetensors.numpy.save_file(even, folder / "even.safetensors")
    header = safetensors.numpy.save(odd)
    length = int.from_bytes(header[:8], "little")
    (folder / "odd.safetensors").write_bytes(
        (length + 1).to_bytes(8, "little") + header[8:8 + length] + b" " + header[8 + length:])
    write_json(folder / "config.json", {
        "model_type": "renamed", "n_layer": 1, "width": HIDDEN, "ffn": INTER,
        "num_experts": EXPERTS, "num_experts_per_tok": TOP_K, "rms_norm_eps": EPS})
    write_expected(folder, {0: layer}, renormalize=True)


def make_family(family, folder):
    safetensors.numpy.save_file(
        {k: np.ascontiguousarray(v) for k, v in family.tensors.items()},
        folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", family.config)
    hidden = rng.standard_normal((4 * checkpoint_families.TOKENS, checkpoint_families.HIDDEN))
    hidden = from_bf16_bits(to_bf16_bits(hidden.astype(np.float32))).astype(np.float64)
    hidden = hidden[checkpoint_families.clear(family, hidden)][:checkpoint_families.TOKENS]
    assert len(hidden) == checkpoint_families.TOKENS
    hidden.astype(np.float32).tofile(folder / "hidden.f32")
    out = family.block(hidden, family.select(family.logits(hidden)))
    expected = [out] if family.next_norm is None else [out, family.next_norm(out)]
    np.concatenate(expected).tofile(folder / f"expected_{family.layer}.f64")


def main():
    out = pathlib.Path(sys.argv[1])
    for make in checkpoint_families.FAMILIES:
        (out / make.__name__).mkdir(parents=True)
        make_family(make(), out / make.__name__)
    for name, make in (("qwen3_moe", make_qwen3), ("qwen2_moe", make_qwen2),
                       ("renamed", make_renamed)):
        (out / name).mkdir(parents=True)
        make(out / name)


if __name__ == "__main__":
    main()
