#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares presets with the routers of transformers, and prints a table.

Each family's own router, with random weights, routes random rows, in its default
configuration and in three odd ones, as f32 and as bf16. Its logits go to RouteTopK
with the family's preset. Rows where keys tie at the boundary are skipped and counted,
because torch.topk does not define which of them it selects.
Exit codes: 0; 1 if a preset differs; 2 for wrong input, in a line on stderr.
"""

import argparse
import dataclasses
import re
import sys
import zlib

sys.dont_write_bytecode = True  # to write nothing to the sources' folder

import torch

import families
import library
import routers

ROWS = 1000
# The largest relative error of a weight. In f32 its causes are another order of sums and other
# polynomials. In bf16 the error is one unit in the last place, because these causes can change a
# rounding, or three units if score, sum and quotient are all rounded.
BOUND = {torch.float32: 2.0 ** -20, torch.bfloat16: 2.0 ** -7}
# Each tuple has experts, top_k, groups and kept groups.
ODD = [(21, 13, 3, 2), (45, 9, 5, 3), (259, 11, 7, 2)]


class Differs(Exception):
    """The preset contradicts the family's code before a row is routed."""


class _Parser(argparse.ArgumentParser):
    """Prints errors as one line, without the usage."""

    def error(self, message):
        self.exit(2, f"parity.py: {message}\n")


def configuration(family, preset, odd):
    """The family's configuration, its number of experts (zero experts included), and top_k."""
    config = routers.Configuration(family)
    if odd is None:
        experts = family.experts or config.get("num_experts")
        top_k = family.top_k or config.get("num_experts_per_tok")
    else:
        experts, top_k, groups, kept = ODD[odd]
        config.vary("routed_scaling_factor", 1.75 + odd)
        config.vary("norm_topk_prob", odd % 2 == 0)
        config.vary("output_multiplier", 0.25 + 0.05 * odd)
        config.vary("zero_expert_num", 10 + odd)
        config.vary("moe_norm_min", 10.0 ** -odd)
        if getattr(config, "topk_method", "") != "greedy":
            config.vary("n_group", groups)
            config.vary("topk_group", kept)
    if family.how == "rounds":
        top_k = 2
    config.say("num_experts", experts)
    config.say("num_experts_per_tok", top_k)
    if preset["num_zero_experts"]:
        experts += getattr(config, "zero_expert_num", 1)
    return config, experts, top_k


@dataclasses.dataclass
class Figures:
    rows: int = 0
    skipped: int = 0
    wrong_ids: int = 0
    error: float = 0.0
    wrong_weights: int = 0

    def __add__(self, other):
        return Figures(self.rows + other.rows, self.skipped + other.skipped,
                       self.wrong_ids + other.wrong_ids, max(self.error, other.error),
                       self.wrong_weights + other.wrong_weights)


def by_id(ids, weights):
    order = ids.argsort(dim=1, stable=True)
    return ids.gather(1, order), weights.gather(1, order).double()


def compare(theirs, ours, zero_experts, bound):
    """`ours` has ids, weights, and the summed weights of the experts in the range `zero_experts`."""
    tied = torch.zeros(len(theirs.ids), dtype=torch.bool)
    for keys, taken in theirs.keys:
        if taken < keys.shape[1]:
            best = keys.topk(taken + 1, dim=1).values
            tied |= best[:, -1] == best[:, -2]

    zero = (theirs.ids >= zero_experts.start) & (theirs.ids < zero_experts.stop)
    identity = torch.where(zero, theirs.weights.double(), 0).sum(1, keepdim=True)
    want_ids, want = by_id(theirs.ids.masked_fill(zero, -1), theirs.weights.masked_fill(zero, 0))
    got_ids, got = by_id(*ours[:2])
    same = (want_ids == got_ids).all(1)
    want = torch.cat([want, identity], 1)[same & ~tied]
    got = torch.cat([got, ours[2][:, None].double()], 1)[same & ~tied]
    # The clamp is needed because RouteTopK makes denormal weights 0.
    error = (got - want).abs() / want.abs().clamp(min=2.0 ** -126)
    error[error.isnan()] = torch.inf
    return Figures(int((~tied).sum()), int(tied.sum()), int((~same & ~tied).sum()),
                   error.max().item() if error.numel() else 0.0, int((error > bound).sum()))


def check_default(name, preset, applied):
    """Raises unless the default configuration leaves the preset as it is."""
    # needs_config differs, because a configuration was applied to `applied` only. A preset's
    # num_experts or top_k is 0 if only a configuration has it.
    differ = {n: v for n, v in applied.items() if v != preset[n] and n != "needs_config"
              and not (n in ("num_experts", "top_k") and preset[n] == 0)}
    if differ:
        raise Differs(f"{name}: the configuration says {differ}, the preset "
                      f"{ {n: preset[n] for n in differ} }")


def run(lib, family, odd, dtype, seed):
    torch.manual_seed(seed)
    name = family.preset
    preset = lib.preset(name)
    config, experts, top_k = configuration(family, preset, odd)
    module = routers.make(family, config)
    if odd and hasattr(module, "global_scale"):
        module.global_scale.data.fill_(1.5)
    fields = config.fields()
    default, preset = preset, lib.preset(name, fields)
    if odd is None and not family.config_says:
        check_default(name, default, preset)
    options = {}
    if hasattr(module, "global_scale"):  # this is a parameter, not a field
        options["routed_scaling_factor"] = (preset["routed_scaling_factor"]
                                            * module.global_scale.item())

    # Scores of softmax are about 1 / experts.
    bias_std = 0.5 / experts if preset["score"] == 0 else 0.25
    theirs = routers.run(family, module, dtype, ROWS, bias_std)
    for what, there in (("correction_bias", theirs.bias), ("expert_scale", theirs.scale)):
        # The hash layers have no bias, because a bias would only change the selection.
        if theirs.given is None and bool(preset[what]) != (there is not None):
            raise Differs(f"{name}: {what}")

    bound = BOUND[theirs.weights.dtype]
    if family.logarithms and theirs.weights.dtype == torch.float32:
        bound *= 4
    if dtype != torch.float32 and preset["in_model_type"]:
        options["round_to"] = library.TYPES[dtype]
        # On the CPU torch rounds the constant of `sum + 1e-6`, too.
        options["eps"] = torch.tensor(preset["eps"], dtype=dtype).item()
        bound *= 3
    ours = lib.route(name, fields, options, theirs)
    if family.how == "skip":
        ours[2].zero_()  # the router has set its weight to 0
    zero = int(preset["num_zero_experts"])
    return f"{experts}/{top_k}", compare(theirs, ours, range(experts - zero, experts), bound)


HEAD = ("| family | preset | E/k | f32: rows | skipped | id mismatches | largest weight error "
        "| bf16: rows | skipped | id mismatches | largest weight error |")


def _arguments(argv):
    parser = _Parser(prog="parity.py", description=__doc__, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="the shared library made of parity.cc")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="families whose name has a match of this regular expression")
    parser.add_argument("--seed", type=int, default=1, help="of all random numbers (1)")
    return parser.parse_args(argv)


def line(lib, family, seed):
    """The family's line of the table, and whether its preset is right."""
    label = family.name
    total, cells = Figures(), []
    for dtype in (torch.float32, torch.bfloat16):
        of_type, shapes = Figures(), []
        for odd in (None, *range(len(ODD))):
            # Each router gets the same random numbers, even if other routers are left out.
            shape, figures = run(lib, family, odd, dtype,
                                 zlib.crc32(f"{seed} {label} {odd} {dtype}".encode()))
            shapes.append(shape)
            of_type += figures
        cells += [of_type.rows, of_type.skipped, of_type.wrong_ids, f"{of_type.error:.1e}"]
        total += of_type
    cells = [label, family.preset, ", ".join(shapes), *cells]
    right = total.rows and not total.wrong_ids and not total.wrong_weights
    return f"| {' | '.join(map(str, cells))} |", right


def main(argv):
    arguments = _arguments(argv)
    torch.set_num_threads(1)
    try:
        lib = library.Library(arguments.library)
    except OSError as error:
        print(f"parity.py: {error}", file=sys.stderr)
        return 2
    print(f"Seed {arguments.seed}; {ROWS} rows for each E/k and type.\n\n{HEAD}")
    print("|" + " --- |" * (HEAD.count("|") - 1))
    differ = []
    for family in families.routers_of(lib):
        label = family.name
        if not re.search(arguments.only, label):
            continue
        try:
            text, right = line(lib, family, arguments.seed)
            print(text, flush=True)
        except (Differs, ValueError) as error:
            print(f"parity.py: {error}", file=sys.stderr)
            right = False
        if not right:
            differ.append(label)
    if differ:
        print(f"parity.py: differ: {', '.join(differ)}", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
