#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the norms of presets with transformers' classes, and prints a table.

The class that opens a family's layers, and the class behind its MoE block where the preset
has a norm there, get random weights and rows, in f32 and in bf16. Combine computes the norm
with the family's preset and round_like_unfused, and has to refuse LayerNorms and gated norms.
Every preset that follows a file of transformers has a line.
Exit codes: 0; 1 if a preset differs; 2 for wrong input, in a line on stderr.
"""

import argparse
import inspect
import os
import re
import sys
import zlib

sys.dont_write_bytecode = True  # to write nothing to the sources' folder

import torch

import families
import library

ROWS, WIDTH, EPS = 200, 512, 1e-5
# The largest relative error of an element. In f32 another order of the sum causes it. In bf16
# the error is one unit in the last place, or two units if the product with the weight is also
# rounded.
BOUND = {torch.float32: 2.0 ** -20, torch.bfloat16: 2.0 ** -6}
# The percentage of elements that may differ in bf16, because the scale's last bit moves a rounding.
# A rounding in another place would move one element in four.
DIFFERENT = 1.0


# The norm that opens a layer is the first of these names that is in the file.
ATTRIBUTES = ("input_layernorm", "operator_norm", "norm_1", "hc_norm", "post_feedforward_layernorm",
              "norm")
# Cohere2 has an RMSNorm if its configuration has rms_norm_eps.
VARIANTS = {"cohere2_moe": ("rms_norm_eps", "Cohere2MoeRMSNorm", {
    "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": 1, "rms_norm_eps": EPS})}
# The class of the norm after the MoE block, if it differs from the class of the other norm.
BLOCKS = {"muse_spark": "MuseSparkTextInputScaledRMSNorm"}
# The class adds 1 to its weight and rounds the sum to bf16, so an engine passes Combine the f32
# weight bf16(1 + w) - 1.
ROUND_PLUS_ONE = ("muse_spark",)


class Differs(Exception):
    """The preset contradicts the family's code before a row is computed."""


def find(family):
    """Returns the class name of the norm that opens the layers. If the file has several, returns
    the name that is most like the router's name."""
    text = inspect.getsource(family.code)
    for attribute in ATTRIBUTES:
        made = re.findall(rf"self\.{attribute} = (.*?)\n        (?:self\.|\n)", text, re.S)
        names = sorted({name for m in made for name in re.findall(r"([\w.]*Norm)\(", m)})
        if names:
            router = family.router_class.__name__
            return max(names, key=lambda name: len(os.path.commonprefix([name, router])))
    raise Differs(f"{family.preset}: no norm opens its layers")


def make(made):
    """A module of the class. A random number is added to each element of its initial weight."""
    first = next(iter(inspect.signature(made).parameters))
    module = made(**{first: WIDTH}, eps=EPS)
    module.weight.data.add_(torch.empty(WIDTH).uniform_(-0.5, 0.5))
    return module


def figures(lib, family, config, name, block, dtype):
    """The largest error, and the percentage of elements that differ."""
    rows = (torch.randn(ROWS, WIDTH) * 2.0 ** torch.empty(ROWS, 1).uniform_(-3, 3)).to(dtype)
    module = make(getattr(family.code, name)).to(dtype)
    weight = module.weight.data[None].contiguous()
    if family.folder in ROUND_PLUS_ONE:
        weight = (1 + weight).float() - 1
    with torch.no_grad():
        want = module(rows).double()
    got = lib.norm(family.preset, config, block, EPS, rows, weight).double()
    error = (got - want).abs() / want.abs().clamp(min=2.0 ** -20)
    return error.max().item(), 100 * (got != want).double().mean().item()


HEAD = ("| preset | class | f32: largest error | bf16: largest error | elements in 100 "
        "that differ |")


def lines(lib, label, family, name, config):
    """Yields the preset's lines of the table, and with each line whether the preset is right."""
    options = lib.preset(family.preset, config)
    if not name.endswith("RMSNorm") or "Gated" in name:  # Combine does not have this norm
        rows = torch.randn(1, WIDTH)
        try:
            lib.norm(family.preset, config, False, EPS, rows, rows)
            yield f"| {label} | {name} | not refused | | |", False
        except ValueError:
            yield f"| {label} | {name} | refused | | |", True
        return
    names = [(False, name)]
    if options["form.has_block_norm"]:
        names.append((True, BLOCKS.get(family.folder, name)))
    elif family.folder in BLOCKS:
        raise Differs(f"{family.preset}: has no norm behind the block")
    for block, of in names:
        torch.manual_seed(zlib.crc32(f"{label} {block} {lib.seed}".encode()))
        f32 = figures(lib, family, config, of, block, torch.float32)
        bf16 = figures(lib, family, config, of, block, torch.bfloat16)
        right = (f32[0] <= BOUND[torch.float32] and bf16[0] <= BOUND[torch.bfloat16]
                 and bf16[1] <= DIFFERENT)
        yield (f"| {label}{', behind the block' if block else ''} | {of} | {f32[0]:.1e} "
               f"| {bf16[0]:.1e} | {bf16[1]:.2f} |"), right


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="norms.py", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: parser.exit(2, f"norms.py: {message}\n")
    parser.add_argument("library", help="the shared library made of parity.cc")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="presets whose name has a match of this regular expression")
    parser.add_argument("--seed", type=int, default=1, help="of all random numbers (1)")
    return parser.parse_args(argv)


def main(argv):
    arguments = _arguments(argv)
    torch.set_num_threads(1)
    try:
        lib = library.Library(arguments.library)
    except OSError as error:
        print(f"norms.py: {error}", file=sys.stderr)
        return 2
    lib.seed = arguments.seed
    print(f"Seed {arguments.seed}; {ROWS} rows of {WIDTH}, eps {EPS}.\n\n{HEAD}")
    print("|" + " --- |" * (HEAD.count("|") - 1))
    differ = []
    for family in families.all_of(lib):
        ways = [(family.preset, None, None)]
        if family.preset in VARIANTS:
            label, name, config = VARIANTS[family.preset]
            ways.append((f"{family.preset}, {label}", name, config))
        for label, name, config in ways:
            if not re.search(arguments.only, label):
                continue
            try:
                for text, right in lines(lib, label, family, name or find(family), config):
                    print(text, flush=True)
                    if not right:
                        differ.append(label)
            except (Differs, ValueError) as error:
                print(f"norms.py: {error}", file=sys.stderr)
                differ.append(label)
    if differ:
        print(f"norms.py: differ: {', '.join(dict.fromkeys(differ))}", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
