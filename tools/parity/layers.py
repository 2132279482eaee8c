#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the MoE blocks of moe_layer with those of transformers.

For each family, saves a small model with random weights as a checkpoint with the hub's
names and keys. moe_layer runs the checkpoint in f32 and checks it against double
precision. Its output is compared with the output of transformers' own layer. Rows where the
router's keys nearly tie are skipped and counted.
Exit codes: 0; 1 if a family differs; 2 for wrong input, in a line on stderr.
"""

import argparse
import logging
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True  # to write nothing to the sources' folder

import numpy as np
import torch
import transformers

import blocks
import families
import library
import routers

ROWS = 300
# The largest error of an element, in units of the root mean square of the block's output.
BOUND = 2.0 ** -16
# Two keys count as a tie if their difference is smaller than this.
NEAR = 1e-5


def clear_rows(watch):
    """The rows where the last selected key and the first other key do not tie."""
    clear = torch.ones(ROWS, dtype=torch.bool)
    for keys, taken in watch.keys(ROWS):
        if taken < keys.shape[1]:
            best = keys.topk(taken + 1, dim=1).values
            clear &= best[:, -2] - best[:, -1] > NEAR * best[:, -2].abs().clamp(min=1e-3)
    return clear


def line(program, family, seed):
    """The family's line of the table, and whether the block is right."""
    torch.manual_seed(zlib.crc32(f"{seed} {family.folder}".encode()))
    model = blocks.make(family)
    hidden = torch.randn(ROWS, blocks.HIDDEN) * 2.0 ** torch.empty(ROWS, 1).uniform_(-1, 1)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        states, result = (pathlib.Path(folder) / name for name in ("in.f32", "out.f32"))
        states.write_bytes(hidden.numpy().tobytes())
        ran = subprocess.run(
            [program, folder, "--layer", "1", "--dtype", "f32", "--input", str(states),
             "--output", str(result), "--repeat", "1", "--threads", "1"],
            capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise ValueError(f"{family.preset}: {ran.stderr.splitlines()[-1]}")
        ours = torch.from_numpy(np.fromfile(result, dtype=np.float32)).reshape(hidden.shape)
        with routers.Watch() as watch:
            theirs = blocks.run(family, model, 1, hidden)
    clear = clear_rows(watch)
    size = (theirs if family.folder in blocks.NORMS else theirs - hidden)[clear].double().square().mean().sqrt()
    error = ((ours - theirs)[clear].abs().max() / size).item()
    cells = [family.preset, type(model).__name__, int(clear.sum()), ROWS - int(clear.sum()), f"{error:.1e}"]
    return f"| {' | '.join(map(str, cells))} |", error <= BOUND


HEAD = "| family | model | rows | skipped | largest error |"


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="layers.py", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: parser.exit(2, f"layers.py: {message}\n")
    parser.add_argument("library", help="the shared library made of parity.cc")
    parser.add_argument("program", help="moe_layer")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="families whose name has a match of this regular expression")
    parser.add_argument("--seed", type=int, default=1, help="of all random numbers (1)")
    return parser.parse_args(argv)


def main(argv):
    arguments = _arguments(argv)
    torch.set_num_threads(1)
    try:
        lib = library.Library(arguments.library)
    except OSError as error:
        print(f"layers.py: {error}", file=sys.stderr)
        return 2
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    print(f"Seed {arguments.seed}; {ROWS} rows.\n\n{HEAD}\n" + "|" + " --- |" * (HEAD.count("|") - 1))
    differ = []
    for family in families.all_of(lib):
        if not family.has_layer or not re.search(arguments.only, family.preset):
            continue
        try:
            text, right = line(arguments.program, family, arguments.seed)
            print(text, flush=True)
        except ValueError as error:
            print(f"layers.py: {error}", file=sys.stderr)
            right = False
        if not right:
            differ.append(family.preset)
    if differ:
        print(f"layers.py: differ: {', '.join(differ)}", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
