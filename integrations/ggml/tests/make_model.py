# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes GGUF models of random weights: make_model.py FAMILY TYPE OUT.gguf

FAMILY is one of FAMILIES. TYPE is the experts' type: one of TYPES, or one of MIXED, which have
several types in a layer. With " as f32" after the type, the weights are rounded to the type and
stored as f32, so that nothing rounds them again. With " of any bytes" after the type, the stored
bytes are random, so that weights may have any scale, or be NaN or infinite.
"""

import ctypes
import sys

import gguf
import numpy as np

TYPES = {
    "f32": gguf.GGMLQuantizationType.F32,
    "bf16": gguf.GGMLQuantizationType.BF16,
    "f16": gguf.GGMLQuantizationType.F16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
    "mxfp4": gguf.GGMLQuantizationType.MXFP4,
    "q4_K": gguf.GGMLQuantizationType.Q4_K,
    "q5_K": gguf.GGMLQuantizationType.Q5_K,
    "q6_K": gguf.GGMLQuantizationType.Q6_K,
}
# For each layer, the types of gate, up and down.
MIXED = {
    "q4_K_M": (("q4_K", "q4_K", "q6_K"), ("q4_K", "q4_K", "q4_K")),
    # Gate and up of the last layer read rows of two formats.
    "mixed": (("q4_K", "q6_K", "q8_0"), ("q8_0", "q4_0", "q6_K"), ("q4_0", "q6_K", "q4_0")),
    # The plug-in does not multiply q5_K.
    "q5_K down": (("q4_K", "q4_K", "q5_K"),),
}
AS_F32 = " as f32"
ANY_BYTES = " of any bytes"
# The sizes of the small models. Models for measurements have the sizes of real models.
SMALL = dict(vocab=256, hidden=128, layers=3, heads=4, kv_heads=2, head=32,
             experts=16, used=4, intermediate=96)
# Sizes for formats with blocks of 256 columns.
SMALL_K = dict(SMALL, hidden=256, intermediate=256)
QWEN3_30B = dict(vocab=32768, hidden=2048, layers=4, heads=32, kv_heads=4,
                 head=128, experts=128, used=8, intermediate=768, timed=True)
GPT_OSS_20B = dict(vocab=32768, hidden=2880, layers=4, heads=64, kv_heads=8,
                   head=64, experts=32, used=4, intermediate=2880, timed=True)


def base(kind):
    return kind.removesuffix(AS_F32).removesuffix(ANY_BYTES)


def kinds(kind, layer):
    """Returns the types of a layer's gate, up and down weights."""
    suffix = kind[len(base(kind)):]
    row = MIXED.get(base(kind), ((base(kind),) * 3,))
    return [name + suffix for name in row[layer % len(row)]]


def sizes_for(kind):
    return SMALL_K if any("_K" in k for layer in range(3) for k in kinds(kind, layer)) else SMALL


def quantize(values, kind):
    """Quantises with ggml, which supports more types than Python's gguf."""
    if kind in (TYPES["f32"], TYPES["bf16"], TYPES["f16"]):
        return gguf.quants.quantize(values, kind)
    import llama_cpp

    values = np.ascontiguousarray(values, dtype=np.float32)
    cols = values.shape[-1]
    rows = values.size // cols
    raw = np.empty(gguf.quant_shape_to_byte_shape(values.shape, kind), dtype=np.uint8)
    function = llama_cpp.llama_cpp._lib.ggml_quantize_chunk
    function.restype = ctypes.c_size_t
    written = function(
        ctypes.c_int(int(kind)), values.ctypes.data_as(ctypes.c_void_p),
        raw.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0), ctypes.c_int64(rows),
        ctypes.c_int64(cols), None)
    assert written == raw.size
    return raw


class Model:
    """A GGUF file that is being written."""

    def __init__(self, path, arch, experts_type, sizes, split=0):
        self.writer = gguf.GGUFWriter(path, arch, split_max_tensors=split)
        self.random = np.random.default_rng(7)
        self.type = experts_type
        w, s = self.writer, sizes
        w.add_tokenizer_model("no_vocab")
        w.add_vocab_size(s["vocab"])
        w.add_context_length(4096)
        w.add_embedding_length(s["hidden"])
        w.add_block_count(s["layers"])
        w.add_feed_forward_length(s["intermediate"])
        w.add_head_count(s["heads"])
        w.add_layer_norm_rms_eps(0.01)  # not the default, so that tests fail if code ignores it
        w.add_rope_freq_base(10000.0)
        w.add_expert_count(s["experts"])
        w.add_expert_used_count(s["used"])
        w.add_expert_feed_forward_length(s["intermediate"])
        # In a model for measurements with quantised experts, the embeddings and the output are q8_0, as in
        # real files with about as many bits per weight.
        table = "q8_0" if s.get("timed") and experts_type not in ("bf16", "f16") else "bf16"
        self.weight("token_embd", s["vocab"], s["hidden"], kind=table)
        self.matrix("output", s["vocab"], s["hidden"], s, kind=table)
        self.vector("output_norm", s["hidden"], around=1.0)

    def add(self, name, values, kind, copies=None):
        if kind.endswith(AS_F32):
            rounded = TYPES[base(kind)]
            values = gguf.quants.dequantize(quantize(values, rounded), rounded)
            kind = "f32"
        is_random = kind.endswith(ANY_BYTES)
        kind = TYPES[base(kind)]
        raw = quantize(values, kind)
        if is_random:
            raw = self.random.integers(0, 256, raw.shape, dtype=np.uint8)
        if copies is not None:
            raw = np.repeat(raw[None], copies, axis=0)
        self.writer.add_tensor(name, raw, raw_dtype=kind)

    def weight(self, name, *shape, kind="f32", scale=None):
        # With this scale, outputs are as large as inputs, as in a layer before training.
        scale = scale or shape[-1] ** -0.5
        values = self.random.standard_normal(shape, dtype=np.float32)
        self.add(name + ".weight", values * np.float32(scale), kind)

    def matrix(self, name, rows, cols, s, kind="f32"):
        """Writes a matrix that is no expert. With s["dense"], it has the type of the first experts, or
        q8_0 if its columns are no multiple of the type's block."""
        if s.get("dense"):
            kind = kinds(self.type, 0)[0]
            if "_K" in kind and cols % 256 != 0:
                kind = "q8_0" + kind[len(base(kind)):]
        self.weight(name, rows, cols, kind=kind)

    def vector(self, name, *shape, around=0.0, spread=0.1, suffix="weight"):
        values = self.random.standard_normal(shape, dtype=np.float32)
        self.add(f"{name}.{suffix}", around + values * np.float32(spread), "f32")

    def attention(self, at, s, kind):
        rows = {"q": s["heads"], "k": s["kv_heads"], "v": s["kv_heads"]}
        for name, heads in rows.items():
            self.matrix(f"{at}.attn_{name}", heads * s["head"], s["hidden"], s, kind)
        self.matrix(f"{at}.attn_output", s["hidden"], s["heads"] * s["head"], s, kind)

    def experts(self, at, s, bias=False, merged=False, scale=1.0):
        self.weight(f"{at}.ffn_gate_inp", s["experts"], s["hidden"], scale=0.3)
        shapes = {"gate": (s["intermediate"], s["hidden"]),
                  "up": (s["intermediate"], s["hidden"]),
                  "down": (s["hidden"], s["intermediate"])}
        if merged:
            shapes = {"gate_up": (2 * s["intermediate"], s["hidden"]), "down": shapes["down"]}
        gate, up, down = kinds(self.type, int(at.split(".")[1]))
        of = {"gate": gate, "up": up, "gate_up": gate, "down": down}
        for name, (rows, cols) in shapes.items():
            if not s.get("timed"):
                self.weight(f"{at}.ffn_{name}_exps", s["experts"], rows, cols, kind=of[name],
                            scale=scale * cols**-0.5)
            else:  # all experts are equal, because random ones take seconds to write
                one = self.random.standard_normal((rows, cols), dtype=np.float32)
                self.add(f"{at}.ffn_{name}_exps.weight", one * np.float32(cols**-0.5), of[name],
                         s["experts"])
            if bias:
                # Biases are as large as the products, so that a misplaced bias is found.
                self.vector(f"{at}.ffn_{name}_exps", s["experts"], rows, spread=scale,
                            suffix="bias")
        if bias:
            self.vector(f"{at}.ffn_gate_inp", s["experts"], suffix="bias")

    def close(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def heads(model, s):
    model.writer.add_head_count_kv(s["kv_heads"])
    model.writer.add_key_length(s["head"])
    model.writer.add_value_length(s["head"])
    model.writer.add_rope_dimension_count(s["head"])


def dense_kind(kind, s):
    """Returns attention's type. In models for measurements it is the experts' type, as in real
    files."""
    if not s.get("timed"):
        return "f32"
    return "q8_0" if kind == "mxfp4" else kinds(kind, 0)[0]


def qwen3moe(path, kind, s=None, split=0):
    s = s or sizes_for(kind)
    model = Model(path, "qwen3moe", kind, s, split)
    heads(model, s)
    dense = dense_kind(kind, s)
    for i in range(s["layers"]):
        at = f"blk.{i}"
        model.attention(at, s, dense)
        for norm, size in (("attn_norm", s["hidden"]), ("ffn_norm", s["hidden"]),
                           ("attn_q_norm", s["head"]), ("attn_k_norm", s["head"])):
            model.vector(f"{at}.{norm}", size, around=1.0)
        model.experts(at, s)
    model.close()


def gpt_oss(path, kind, s=None):
    s = s or sizes_for(kind)
    model = Model(path, "gpt-oss", kind, s)
    heads(model, s)
    model.writer.add_sliding_window(64)
    for i in range(s["layers"]):
        at = f"blk.{i}"
        model.attention(at, s, dense_kind(kind, s))
        for name, size in (("q", s["heads"] * s["head"]), ("k", s["kv_heads"] * s["head"]),
                           ("v", s["kv_heads"] * s["head"]), ("output", s["hidden"])):
            model.vector(f"{at}.attn_{name}", size, suffix="bias")
        model.vector(f"{at}.attn_sinks", s["heads"])
        for norm in ("attn_norm", "post_attention_norm"):
            model.vector(f"{at}.{norm}", s["hidden"], around=1.0)
        # With this scale, values exceed the activation's limit, 7.
        model.experts(at, s, bias=True, scale=4.0)
    model.close()


def deepseek2(path, kind, s=None, merged=False, groups=0):
    """Writes a model with DeepSeek-V3's recipe (sigmoid, selection bias, scale, a shared expert)
    after a dense layer. Its experts are in `groups` groups, or in none if `groups` is 0."""
    s = s or sizes_for(kind)
    model = Model(path, "deepseek2", kind, s)
    rank, rope, nope, value = 64, 16, 32, 32
    w = model.writer
    w.add_head_count_kv(s["heads"])
    w.add_q_lora_rank(rank)
    w.add_kv_lora_rank(rank)
    w.add_key_length(nope + rope)
    w.add_value_length(value)
    w.add_rope_dimension_count(rope)
    w.add_leading_dense_block_count(1)
    w.add_expert_shared_count(1)
    w.add_expert_weights_scale(2.5)
    w.add_expert_weights_norm(True)
    if groups > 0:
        w.add_expert_group_count(groups)
        w.add_expert_group_used_count(groups // 2)
    w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    for i in range(s["layers"]):
        at = f"blk.{i}"
        model.matrix(f"{at}.attn_q_a", rank, s["hidden"], s)
        model.matrix(f"{at}.attn_q_b", s["heads"] * (nope + rope), rank, s)
        model.matrix(f"{at}.attn_kv_a_mqa", rank + rope, s["hidden"], s)
        model.matrix(f"{at}.attn_kv_b", s["heads"] * (nope + value), rank, s)
        model.matrix(f"{at}.attn_output", s["hidden"], s["heads"] * value, s)
        for norm, size in (("attn_norm", s["hidden"]), ("ffn_norm", s["hidden"]),
                           ("attn_q_a_norm", rank), ("attn_kv_a_norm", rank)):
            model.vector(f"{at}.{norm}", size, around=1.0)
        dense = {"gate": (s["intermediate"], s["hidden"]), "up": (s["intermediate"], s["hidden"]),
                 "down": (s["hidden"], s["intermediate"])}
        for name, shape in dense.items():
            model.matrix(f"{at}.ffn_{name}" + ("" if i == 0 else "_shexp"), *shape, s)
        if i > 0:
            model.experts(at, s, merged=merged)
            model.vector(f"{at}.exp_probs_b", s["experts"], suffix="bias")
    model.close()


def deepseek2_merged(path, kind):
    """Writes the family deepseek2 with gate and up in one tensor."""
    deepseek2(path, kind, merged=True)


def deepseek2_groups(path, kind):
    """Writes the family deepseek2 with four groups of experts, two of which are kept."""
    deepseek2(path, kind, groups=4)


def all_in(family):
    """Returns a function that writes a family with all matrices, except the embeddings and the router,
    in the type of the experts. The heads are larger, so that no product has fewer than 256 columns."""
    return lambda path, kind: family(path, kind, dict(sizes_for(kind), head=64, dense=True))


def llama(path, kind, s=SMALL):
    """Writes a model without experts."""
    model = Model(path, "llama", kind, dict(s, experts=0, used=0))
    heads(model, s)
    for i in range(s["layers"]):
        at = f"blk.{i}"
        model.attention(at, s, kind)
        for norm in ("attn_norm", "ffn_norm"):
            model.vector(f"{at}.{norm}", s["hidden"], around=1.0)
        model.matrix(f"{at}.ffn_gate", s["intermediate"], s["hidden"], s, kind)
        model.matrix(f"{at}.ffn_up", s["intermediate"], s["hidden"], s, kind)
        model.matrix(f"{at}.ffn_down", s["hidden"], s["intermediate"], s, kind)
    model.close()


def many_experts(path, kind):
    """Writes the family qwen3moe with 64 experts instead of 16, so that each has fewer tokens."""
    qwen3moe(path, kind, dict(SMALL, experts=64))


def one_expert(path, kind):
    """Writes the family qwen3moe with one selected expert for each token."""
    qwen3moe(path, kind, dict(SMALL, used=1))


def qwen3moe_lora(path, kind, dense=False):
    """Writes a LoRA adapter for qwen3moe: for the gate and down products of the experts or, if `dense`
    is True, for attention's q and output in all_in(qwen3moe)."""
    s, random = sizes_for(kind), np.random.default_rng(5)
    adapted = (("ffn_gate_exps", s["intermediate"], s["hidden"], (s["experts"],)),
               ("ffn_down_exps", s["hidden"], s["intermediate"], (s["experts"],)))
    if dense:
        adapted = (("attn_q", s["heads"] * 64, s["hidden"], ()),
                   ("attn_output", s["hidden"], s["heads"] * 64, ()))
    writer = gguf.GGUFWriter(path, "qwen3moe")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 4.0)
    for i in range(s["layers"]):
        for name, rows, cols, experts in adapted:
            for part, shape in (("a", (4, cols)), ("b", (rows, 4))):
                values = random.standard_normal((*experts, *shape), dtype=np.float32)
                writer.add_tensor(f"blk.{i}.{name}.weight.lora_{part}",
                                  values * np.float32(0.3 * shape[-1]**-0.5))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def qwen3moe_split(path, kind):
    """Writes a model in several files of ten tensors each. The first is split_path(path)."""
    qwen3moe(path, kind, split=10)


def split_path(path):
    """Returns the name of the first file of qwen3moe_split."""
    folder, name = path.parent, path.stem
    return next(folder.glob(f"{name}-00001-of-*.gguf"))


def qwen3_30b(path, kind):
    """Writes four layers of Qwen3-30B-A3B's shapes."""
    qwen3moe(path, kind, QWEN3_30B)


def gpt_oss_20b(path, kind):
    """Writes four layers of gpt-oss-20b's shapes."""
    gpt_oss(path, kind, GPT_OSS_20B)


FAMILIES = {f.__name__: f for f in (qwen3moe, gpt_oss, deepseek2, deepseek2_merged,
                                   deepseek2_groups, llama, many_experts, one_expert,
                                   qwen3moe_lora, qwen3moe_split, qwen3_30b, gpt_oss_20b)}
FAMILIES.update({
    f"{f.__name__}_all": all_in(f) for f in (qwen3moe, gpt_oss, deepseek2, llama)})
FAMILIES["qwen3moe_lora_dense"] = lambda path, kind: qwen3moe_lora(path, kind, dense=True)

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in FAMILIES or (
            base(sys.argv[2]) not in {**TYPES, **MIXED}):
        sys.exit(__doc__)
    FAMILIES[sys.argv[1]](sys.argv[3], sys.argv[2])
