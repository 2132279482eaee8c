# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a model through llama.cpp in a process of its own.

run_model.py MODEL logits OUT.npy [BATCH...]   logits of all tokens of each batch
run_model.py MODEL bench PROMPT GENERATE ROUNDS   ms of each round, as JSON

THREADS in the environment is their number; with EVERY_NODE a callback asks for
the result of each node of the graph.
"""

import ctypes
import json
import os
import sys
import time

import llama_cpp
import numpy as np


def load(path, batch, threads):
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: (
        sys.stderr.write(text.decode()) if level == 4 else None))
    load.keep = quiet  # the library keeps the pointer
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    # As llama.cpp's own programs do; it looks at GGML_BACKEND_PATH.
    llama_cpp.llama_cpp._lib.ggml_backend_load_all()
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(
        path.encode(), llama_cpp.llama_model_default_params())
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = batch
    params.n_threads = params.n_threads_batch = threads
    params.no_perf = True
    if os.environ.get("EVERY_NODE"):
        load.callback = llama_cpp.ggml_backend_sched_eval_callback(lambda *_: True)
        params.cb_eval = load.callback
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        sys.exit("run_model.py: no context")
    vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    return context, vocab


def decode(context, tokens, first, all_logits):
    batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i] = int(token)
        batch.pos[i] = first + i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = 0
        batch.logits[i] = all_logits or i + 1 == len(tokens)
    status = llama_cpp.llama_decode(context, batch)
    llama_cpp.llama_batch_free(batch)
    if status != 0:
        sys.exit(f"run_model.py: llama_decode: {status}")


def logits(path, out, sizes):
    context, vocab = load(path, 1024, int(os.environ.get("THREADS", "2")))
    random = np.random.default_rng(3)
    rows, at = [], 0
    for size in sizes:
        decode(context, random.integers(0, vocab, size), at, True)
        values = llama_cpp.llama_get_logits(context)
        rows.append(np.ctypeslib.as_array(values, shape=(size, vocab)).copy())
        at += size
    np.save(out, np.concatenate(rows))


def bench(path, prompt, generate, rounds):
    context, vocab = load(path, max(1024, prompt + generate), 2)
    memory = llama_cpp.llama_get_memory(context)
    random = np.random.default_rng(3)
    times = {"pp": [], "tg": []}
    for i in range(rounds + 1):  # the first warms up
        llama_cpp.llama_memory_clear(memory, True)
        start = time.perf_counter()
        decode(context, random.integers(0, vocab, prompt), 0, False)
        middle = time.perf_counter()
        for j in range(generate):
            decode(context, random.integers(0, vocab, 1), prompt + j, False)
        if i > 0:
            times["pp"].append((middle - start) * 1e3)
            if generate:
                times["tg"].append((time.perf_counter() - middle) * 1e3 / generate)
    print(json.dumps(times))


if __name__ == "__main__":
    if sys.argv[2] == "logits":
        logits(sys.argv[1], sys.argv[3], [int(n) for n in sys.argv[4:]])
    else:
        bench(sys.argv[1], *(int(n) for n in sys.argv[3:6]))
    sys.stdout.flush()
