#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Answers conformance cases with llama.cpp's graph of a small model.

    swy grade tools/grades/llama_routers.py LIBRARY

LIBRARY is a shared library with llama.cpp and ggml, such as xllamacpp.abi3.so of the package xllamacpp.
The package llama-cpp-py-sync has the declarations, and must be of about the same date. Also needs the
packages cffi, gguf and numpy. For each case, writes a model of one layer (architecture bailingmoe2, which has softmax and sigmoid, groups and a bias), and runs
it. A callback replaces the logits of the graph by those of the case, and reads the ids and weights.
"""

import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # to write nothing to the sources' folder

import gguf
import numpy as np
from llama_cpp_py_sync import _cffi_bindings as bindings

import answers
from answers import Unsupported, need, option

WIDTH = 32
FFI = bindings.get_ffi()
# The fields of ggml_tensor in front of `op`, which are the same in all versions since 2023.
TENSOR = FFI.__class__()
TENSOR.cdef("""struct tensor { int type; void * buffer; int64_t ne[4]; size_t nb[4]; };
               void * ggml_get_data(void * tensor); const char * ggml_get_name(void * tensor);""")
ARCH = "bailingmoe2"


def write_model(case, path):
    groups = option(case, "num_expert_group", 0)
    writer = gguf.GGUFWriter(path, ARCH)
    score = case["options"].get("score", "softmax")
    of_selected = case["options"].get("weight_of") == "softmax_of_selected"
    for name, value in {
            "vocab_size": 32, "context_length": 64, "embedding_length": WIDTH, "block_count": 1,
            "feed_forward_length": WIDTH, "expert_feed_forward_length": WIDTH,
            "attention.head_count": 1, "attention.head_count_kv": 1, "attention.key_length": WIDTH,
            "attention.value_length": WIDTH, "rope.dimension_count": WIDTH,
            "expert_count": case["num_experts"], "expert_used_count": case["top_k"],
            "expert_shared_count": 1, "leading_dense_block_count": 0,
            "expert_gating_func": 3 if of_selected else {"softmax": 1, "sigmoid": 2}[score],
            **({"expert_group_count": groups, "expert_group_used_count": option(
                case, "topk_group", 0)} if groups > 1 else {})}.items():
        writer.add_uint32(f"{ARCH}.{name}", value)
    writer.add_float32(f"{ARCH}.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_float32(f"{ARCH}.expert_weights_scale", option(case, "routed_scaling_factor", 1.0))
    writer.add_bool(f"{ARCH}.expert_weights_norm",
                    bool(option(case, "renormalize", 1)) and not of_selected)
    writer.add_string("tokenizer.ggml.model", "no_vocab")
    shapes = {"token_embd.weight": (32, WIDTH), "output_norm.weight": (WIDTH,),
              "output.weight": (32, WIDTH)}
    experts = case["num_experts"]
    for name, shape in {
            "attn_norm.weight": (WIDTH,), "attn_qkv.weight": (3 * WIDTH, WIDTH),
            "attn_output.weight": (WIDTH, WIDTH), "attn_q_norm.weight": (WIDTH,),
            "attn_k_norm.weight": (WIDTH,), "ffn_norm.weight": (WIDTH,),
            "ffn_gate_inp.weight": (experts, WIDTH), "ffn_gate_exps.weight": (experts, WIDTH, WIDTH),
            "ffn_up_exps.weight": (experts, WIDTH, WIDTH),
            "ffn_down_exps.weight": (experts, WIDTH, WIDTH), "ffn_gate_shexp.weight": (WIDTH, WIDTH),
            "ffn_up_shexp.weight": (WIDTH, WIDTH),
            "ffn_down_shexp.weight": (WIDTH, WIDTH)}.items():
        shapes["blk.0." + name] = shape
    for name, shape in shapes.items():
        writer.add_tensor(name, np.full(shape, 0.125, dtype=np.float32))
    if "correction_bias" in case:
        writer.add_tensor("blk.0.exp_probs_b.bias",
                          np.array(case["correction_bias"][0], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Llama:
    def __init__(self, library):
        self._lib = FFI.dlopen(library, TENSOR.RTLD_GLOBAL)
        self._ggml = TENSOR.dlopen(library)
        self._quiet = FFI.callback("void(enum ggml_log_level, const char *, void *)",
                                   lambda *_: None)
        self._lib.llama_log_set(self._quiet, FFI.NULL)
        self._lib.llama_backend_init()

    def _read(self, tensor, dtype):
        """A copy of a tensor of two or three dimensions, as [tokens, slots]."""
        at = TENSOR.cast("struct tensor *", int(FFI.cast("uintptr_t", tensor)))
        sizes = [int(n) for n in at.ne][::-1]
        steps = [int(n) for n in at.nb][::-1]
        data = int(TENSOR.cast("uintptr_t", self._ggml.ggml_get_data(at)))
        count = 1 + sum((n - 1) * step for n, step in zip(sizes, steps)) // 4
        flat = np.frombuffer(TENSOR.buffer(TENSOR.cast("char *", data), 4 * count), dtype=dtype)
        return np.lib.stride_tricks.as_strided(flat, sizes, steps).copy()

    def route(self, case):
        scores = ("raw", "sigmoid") if "weight_of" in case["options"] else ("sigmoid",)
        need(case, ["correction_bias"], score=scores, weight_of=("softmax_of_selected",),
             routed_scaling_factor=None, dropped_key_is_zero=None,
             select_on_rounded_score=None, renormalize=None, divisor=None, eps=None,
             clamp=("0", "6.1035156e-05"), num_expert_group=None, topk_group=None)
        if option(case, "dropped_key_is_zero", 0) and "correction_bias" in case:
            raise Unsupported("option dropped_key_is_zero 1")
        # Runs the model in a child, because llama.cpp ends its process if it refuses sizes.
        sys.stdout.flush()
        with tempfile.TemporaryFile() as results:
            child = os.fork()
            if child == 0:
                os.environ["GGML_NO_BACKTRACE"] = "1"
                try:
                    results.write(json.dumps(self._run(case)).encode())
                    results.flush()
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            results.seek(0)
            text = results.read()
        if status or not text:
            raise Unsupported(f"llama.cpp ends with signal {status & 127}" if status else "error")
        return answers.in_order_of(case["ids"], *json.loads(text))

    def _run(self, case):
        logits = np.array(case["logits"], dtype=np.float32)
        tokens = len(logits)
        seen = {}
        # If llama.cpp computes no score, the tensor of logits gets a second name.
        scores = "probs" if "weight_of" in case["options"] else "logits"
        replaced = f"ffn_moe_{scores}-0"

        def watch(tensor, ask, _):
            at = TENSOR.cast("void *", int(FFI.cast("uintptr_t", tensor)))
            name = TENSOR.string(self._ggml.ggml_get_name(at)).decode()
            if not name.startswith("ffn_moe_"):
                return not ask
            if ask:
                return name in (replaced, "ffn_moe_topk-0") or "weights" in name
            if name == replaced:
                data = TENSOR.cast("char *", self._ggml.ggml_get_data(at))
                TENSOR.memmove(data, logits.tobytes(), logits.nbytes)
            elif name == "ffn_moe_topk-0":
                seen["ids"] = self._read(tensor, np.int32).reshape(tokens, -1)
            elif not name.startswith("ffn_moe_weights_sum"):
                seen["weights"] = self._read(tensor, np.float32).reshape(tokens, -1)
            return True

        callback = FFI.callback("bool(struct ggml_tensor *, bool, void *)", watch)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            write_model(case, path)
            model = self._lib.llama_model_load_from_file(
                path.encode(), self._lib.llama_model_default_params())
            if model == FFI.NULL:
                raise RuntimeError("llama.cpp cannot load the model")
            parameters = self._lib.llama_context_default_params()
            parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = 64
            parameters.n_threads = parameters.n_threads_batch = 1
            parameters.cb_eval = callback
            context = self._lib.llama_init_from_model(model, parameters)
            batch = self._lib.llama_batch_init(tokens, 0, 1)
            batch.n_tokens = tokens
            for t in range(tokens):
                batch.token[t], batch.pos[t], batch.n_seq_id[t] = t, t, 1
                batch.seq_id[t][0], batch.logits[t] = 0, 1
            status = self._lib.llama_decode(context, batch)
            self._lib.llama_batch_free(batch)
            self._lib.llama_free(context)
            self._lib.llama_model_free(model)
        if status != 0 or len(seen) != 2:
            raise RuntimeError(f"llama_decode: {status}, {sorted(seen)}")
        return seen["ids"].tolist(), seen["weights"].tolist()


def main(argv):
    parser = answers.Parser(__doc__)
    parser.add_argument("library", help="a shared library with llama.cpp and ggml")
    try:
        llama = Llama(parser.parse_args(argv).library)
    except OSError as error:
        parser.error(str(error))
    answers.serve(llama.route)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
