# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a model through llama.cpp in a separate process.

run_model.py MODEL logits OUT.npy [BATCH...]   writes the logits of all tokens of each batch
run_model.py MODEL save OUT.gguf               saves the model with llama.cpp
run_model.py MODEL bench PLUGIN SECONDS TOKENS...   prints times in ms without and with PLUGIN,
                                                    as JSON

In the environment:
  THREADS     the number of threads
  EVERY_NODE  makes a callback ask for the result of each node of the graph
  LORA        the file of an adapter
  AS_STORED   makes neither ggml nor the plug-in pack weights
  NO_MMAP     makes llama.cpp read files instead of mapping them
"""

import ctypes
import json
import os
import sys
import time

import llama_cpp
import numpy as np


def start():
    if os.environ.get("AS_STORED"):
        os.environ["SWITCHYARD_GGML_PACK"] = "0"
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: (
        sys.stderr.write(text.decode()) if level == 4 else None))
    start.keep = quiet  # the library keeps the pointer
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    # Loads backends as llama.cpp's programs do. The call reads GGML_BACKEND_PATH.
    llama_cpp.llama_cpp._lib.ggml_backend_load_all()
    llama_cpp.llama_backend_init()


def load(path):
    """Loads a model. llama.cpp offers its weights to all devices that are loaded by now."""
    params = llama_cpp.llama_model_default_params()
    if os.environ.get("AS_STORED"):
        params.use_extra_bufts = False
    if os.environ.get("NO_MMAP"):
        params.load_mode = llama_cpp.LLAMA_LOAD_MODE_NONE
    model = llama_cpp.llama_model_load_from_file(path.encode(), params)
    if not model:
        sys.exit(f"run_model.py: cannot load {path}")
    return model


def new_context(model, batch):
    """Makes a context, which uses all backends that are loaded by now."""
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = batch
    params.n_threads = params.n_threads_batch = int(os.environ.get("THREADS", "2"))
    params.no_perf = True
    if os.environ.get("EVERY_NODE"):
        new_context.callback = llama_cpp.ggml_backend_sched_eval_callback(lambda *_: True)
        params.cb_eval = new_context.callback
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        sys.exit("run_model.py: no context")
    return context


def vocabulary(model):
    return llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))


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
    model = load(path)
    context, vocab = new_context(model, 1024), vocabulary(model)
    if os.environ.get("LORA"):
        adapter = llama_cpp.llama_adapter_lora_init(model, os.environ["LORA"].encode())
        adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
        if not adapter or llama_cpp.llama_set_adapters_lora(
                context, adapters, 1, (ctypes.c_float * 1)(1.0)) != 0:
            sys.exit("run_model.py: no adapter")
    random = np.random.default_rng(3)
    rows, at = [], 0
    for size in sizes:
        decode(context, random.integers(0, vocab, size), at, True)
        values = llama_cpp.llama_get_logits(context)
        rows.append(np.ctypeslib.as_array(values, shape=(size, vocab)).copy())
        at += size
    np.save(out, np.concatenate(rows))


def bench(path, plugin, seconds, sizes):
    """Prints as JSON, for each number of tokens, the (wall, CPU) ms without the plug-in and with it.
    Both run in turns in this process, each with its own model and context: a model stays in the
    memory into which it was loaded, and a context keeps the backends that it was made with."""
    model = load(path)
    vocab = vocabulary(model)
    largest = max(512, *sizes)
    stock = new_context(model, largest)
    if not llama_cpp.llama_cpp._lib.ggml_backend_load(os.path.abspath(plugin).encode()):
        sys.exit(f"run_model.py: cannot load {plugin}")
    ours = new_context(load(path), largest)
    random = np.random.default_rng(3)

    def one(context, tokens):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        wall, cpu = time.perf_counter(), time.process_time()
        decode(context, tokens, 0, False)
        return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3

    # Runs enough tokens first to page in the weights of all experts.
    for context in (stock, ours):
        one(context, random.integers(0, vocab, largest))
    pairs = {size: [] for size in sizes}
    for size in sizes:
        for context in (stock, ours):
            one(context, random.integers(0, vocab, size))
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(pairs[size]) < 4:
            tokens = random.integers(0, vocab, size)
            order = [(0, stock), (1, ours)]
            if len(pairs[size]) % 2 == 1:
                order.reverse()
            pair = [None, None]
            for i, context in order:
                pair[i] = one(context, tokens)
            pairs[size].append(pair)
    print(json.dumps(pairs))


if __name__ == "__main__":
    start()
    if sys.argv[2] == "save":
        llama_cpp.llama_model_save_to_file(load(sys.argv[1]), sys.argv[3].encode())
    elif sys.argv[2] == "logits":
        logits(sys.argv[1], sys.argv[3], [int(n) for n in sys.argv[4:]])
    else:
        bench(sys.argv[1], sys.argv[3], float(sys.argv[4]), [int(n) for n in sys.argv[5:]])
    sys.stdout.flush()
