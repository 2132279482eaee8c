#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""README's table: usual code around the products of a layer's experts, beside ours.

compare.py MOE_LAYER [--torch PYTHON] [--ggml PYTHON PLUGIN MODEL.gguf...]

One layer of Qwen3-30B-A3B's shape; for each kind of code and type, its time over ours and, in
brackets, ours in ms, at 1, 32 and 512 tokens. The programs that measure alternate in one process.
setup.sh compare builds all that it needs, and runs it.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS = {1: 61, 32: 31, 512: 15}  # and rounds of plain loops


def output(*command, **variables):
    print(*command, file=sys.stderr)
    return subprocess.run([str(word) for word in command], env={**os.environ, **variables},
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def row(name, dtype, cells):
    """cells: (theirs over ours, our ms) for each number of tokens."""
    cells = [f"{ratio:.2f} ({ms:.1f})" for ratio, ms in cells]
    print("|", " | ".join([name, dtype, *cells]), "|", flush=True)


def columns(table):
    """The cells of a table's rows, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def plain_loops(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        for dtype in ("bf16", "f32"):
            runs = []
            for tokens, rounds in TOKENS.items():
                output(program, "--compare", "--dtype", dtype, "--tokens", tokens,
                       "--repeat", rounds, "--json", path)
                runs.append(json.loads(path.read_text()))
            if dtype == "bf16":
                head(runs[0])
            row("plain loops", dtype,
                [(run["plain_loops_seconds"] / run["seconds"], run["seconds"] * 1e3)
                 for run in runs])


def cpu_class():
    """The family and model that tell CPUs of one name apart, on x86."""
    with open("/proc/cpuinfo") as file:
        values = dict(reversed([[part.strip() for part in line.split(":", 1)]
                                for line in file if ":" in line]))
    return "".join(f", {name} {values[key]}" for name, key in
                   (("family", "cpu family"), ("model", "model")) if key in values)


def head(run):
    context = run["context"]
    print(f"{context['cpu_model']}{cpu_class()} ({run['isa']}), {run['threads']} threads, "
          f"{context['compiler']}, oneDNN {context['onednn']}\n")
    print("| usual code | type |", " | ".join(f"T = {tokens}" for tokens in TOKENS), "|")
    print("|---|---|" + "---|" * len(TOKENS))


def torch(python):
    for dtype in ("bfloat16", "float32"):
        table = columns(output(
            python, ROOT / "bindings/python/bench/moe_block.py", "--layers", 1, "--seconds", 10,
            "--dtype", dtype, "--tokens", *TOKENS))
        row("transformers' experts", dtype.replace("loat", ""),
            [(float(cells[-1]), float(cells[2])) for cells in table])


def ggml(python, plugin, *models):
    for model in models:
        table = columns(output(
            python, ROOT / "integrations/ggml/tests/measure.py", plugin, model,
            ",".join(map(str, TOKENS)), 10, 3, THREADS=str(os.cpu_count())))
        row("llama.cpp, four layers", pathlib.Path(model).stem,
            [(float(cells[3]), float(cells[2])) for cells in table])


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moe_layer")
    parser.add_argument("--torch")
    parser.add_argument("--ggml", nargs="+")
    arguments = parser.parse_args()
    plain_loops(arguments.moe_layer)
    if arguments.torch:
        torch(arguments.torch)
    if arguments.ggml:
        ggml(*arguments.ggml)


if __name__ == "__main__":
    main()
