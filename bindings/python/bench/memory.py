#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the memory that quantising experts takes, in a model in memory and in a checkpoint.

The models have Qwen3-30B-A3B's shape, with random weights in bf16. Each step runs in a process of its
own. The program prints the anonymous memory (RssAnon in /proc/self/status) before the step, at its
peak and after it. It reads this memory every 5 ms. The checkpoints are in a temporary folder.

Exits with 0, or for wrong input with 2 and a line on stderr.
"""

import concurrent.futures
import multiprocessing
import pathlib
import sys
import tempfile
import threading

import torch
from arguments import Parser, count
from model import make
from transformers import AutoModelForCausalLM

import switchyard.transformers


def anonymous():
    """Returns the process's anonymous memory in GB."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024 / 1e9


def measured(step):
    """Runs step(). Returns the memory before the step, the largest memory, and the memory afterwards."""
    ended, found = threading.Event(), [anonymous()]

    def watch():
        while not ended.wait(0.005):
            found.append(anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        kept = step()  # a loaded model stays until its memory is read
        after = anonymous()
    finally:
        ended.set()
        watcher.join()
    del kept
    return found[0], max(*found, after), after


def quantise(layers, name):
    model = make(layers, torch.bfloat16)
    return measured(lambda: switchyard.transformers.patch(model, experts_dtype=name))


def save(layers, name, floats, quantised):
    model = make(layers, torch.bfloat16)
    model.save_pretrained(floats)
    switchyard.transformers.patch(model, experts_dtype=name)
    model.save_pretrained(quantised)


def load(folder, name=None):
    config = {} if name is None else {
        "quantization_config": switchyard.transformers.ExpertsConfig(name)}
    return measured(lambda: AutoModelForCausalLM.from_pretrained(folder, **config))


def main(argv):
    parser = Parser(__doc__)
    parser.add_argument("--layers", type=count, default=4, help="of the model in memory (4)")
    parser.add_argument("--loaded-layers", type=count, default=2, help="of the checkpoint (2)")
    parser.add_argument("--experts-dtype", choices=switchyard.weight_formats(), default="q4_0")
    arguments = parser.parse_args(argv)
    name = arguments.experts_dtype
    with tempfile.TemporaryDirectory() as folder:
        floats, quantised = (str(pathlib.Path(folder, f)) for f in ("floats", "quantised"))
        steps = {f"quantise {arguments.layers} layers to {name}": (quantise, arguments.layers, name),
                 None: (save, arguments.loaded_layers, name, floats, quantised),
                 f"load {arguments.loaded_layers} layers": (load, floats),
                 f"load them as {name}": (load, floats, name),
                 f"load the saved {name}": (load, quantised)}
        print("| | before, GB | peak | after |\n|" + " --- |" * 4)
        for label, (run, *inputs) in steps.items():
            with concurrent.futures.ProcessPoolExecutor(
                    1, multiprocessing.get_context("spawn")) as process:
                memory = process.submit(run, *inputs).result()
            if label is not None:
                print(f"| {label} | " + " | ".join(f"{m:.2f}" for m in memory) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
