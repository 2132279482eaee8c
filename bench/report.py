#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Prints what switchyard_bench measured as Markdown: a line for each kernel,
shape and type, a column for each ISA, the fastest peer and the fastest probe
beside them, and then the targets that matter.

Each FILE is what one process wrote with --benchmark_out=FILE; several of one
machine are one report. A figure is the median over the processes of each one's
median, a ratio the median of the ratios within each process, with the smallest
and the largest behind it where these are more than 5 % apart.
Exit codes: 0; 2 for wrong input, in a line on stderr.
"""

import argparse
import json
import os
import re
import statistics
import sys

# The first word of a contender's name; every other one is Switchyard's own ISA.
PEERS = ("plain", "engine", "onednn", "ggml")
# The files of a report agree in these.
MACHINE = ("cpu_model", "data_caches", "isas", "compiler", "highway", "tbb", "onednn", "ggml")
NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Google Benchmark appends these to a name.
SUFFIX = re.compile(r"/((iterations|repeats|threads|min_time|min_warmup_time):[^/]*|\w+_time)")

# kernel, pattern of shapes (and "@types"), contender, the other one, bound, text. The
# figure is the largest ratio of their times over all shapes that match; without another
# contender it is ns a unit. AVX-512 is the best of these ISAs, "best" the best of all,
# "peer" and "probe" the fastest of theirs.
TARGETS = (
    ("route", r"T=(512|4096)", "best", "peer", 1.03, "first, or within 3 %"),
    ("route_unnormalised", r"T=(512|4096)", "best", "peer", 1.03, "first, or within 3 %"),
    ("bucket_packed", r"T=(512|4096)", "best", "peer", 1.03, "first, or within 3 %"),
    ("bucket_strided", r"T=(512|4096)", "best", "peer", 1.03, "first, or within 3 %"),
    ("gather", r"T=(1|64|512)/", "best", "peer", 1.03, "first, or within 3 %"),
    ("activate", r".", "best", "peer", 1.03, "first, or within 3 %"),
    ("combine", r"T=", "best", "peer", 1.03, "first, or within 3 %"),
    ("combine_indexed", r"T=", "best", "peer", 1.03, "first, or within 3 %"),
    ("route", r"E=(8|64)/k=\d/T=(512|4096)$", "AVX-512", "onednn:softmax", 1.0, "the softmax alone"),
    ("route", r"E=128/k=8/T=(512|4096)$", "AVX-512", "onednn:softmax", 0.8, "the softmax alone"),
    ("route", r"E=256/k=8/T=(512|4096)$", "AVX-512", "onednn:softmax", 0.65, "the softmax alone"),
    ("route", r"E=512/k=10/T=(512|4096)$", "AVX-512", "onednn:softmax", 0.7, "the softmax alone"),
    ("route", r"E=128/k=8/T=1$", "AVX-512", "onednn:softmax", 0.5, "one token, rows rotating"),
    ("route", r"E=(64|128|256)/k=8/T=512$", "AVX2", "AVX-512", 1.5, "half the vector"),
    ("route", r"E=(64|128|256)/k=8/T=512@bf16$", "AVX-512", "AVX-512@f32", 1.0, "bf16 logits"),
    ("route_sigmoid", r"T=512", "AVX-512", "AVX-512:softmax", 1.3, "sigmoid"),
    ("route_sigmoid_bias", r"T=512", "AVX-512", "AVX-512:softmax", 1.3, "sigmoid with a bias"),
    ("route_sigmoid_bias", r"T=1$", "AVX-512", "AVX-512:softmax", 2.0, "one token, with a bias"),
    ("route_softmax_bias", r"T=512", "AVX-512", "AVX-512:softmax", 1.3, "softmax with a bias"),
    ("route_sqrt_softplus", r"T=512", "AVX-512", "AVX-512:softmax", 2.5, "sqrt(softplus), bias"),
    ("route_grouped", r"T=512", "AVX-512", "AVX-512:softmax", 1.6, "4 of 8 groups"),
    ("route_selected", r"T=512", "AVX-512", "AVX-512:softmax", 1.0, "softmax of the selected"),
    ("bucket_packed", r"E=(8|16)/k=2/T=(512|4096)", "best", None, 1.0, "ns a pair"),
    ("bucket_packed", r"E=(64|128|256)/k=8/T=(512|4096)", "best", None, 1.25, "ns a pair"),
    ("bucket_strided", r"E=(64|128|256)/k=8/T=(512|4096)", "best", None, 1.25, "ns a pair"),
    ("bucket_strided_natural", r"T=(512|4096)", "best", None, 1.5, "ns a pair, stride T * k"),
    ("bucket_strided_natural", r"T=(512|4096)", "best", "plain", 1.0, "an append loop"),
    ("bucket_packed", r"T=(512|4096)", "best", "plain", 0.9, "a textbook counting sort"),
    ("bucket_aligned", r"T=(512|4096)", "best", "plain", 1.0, "blocks of 64"),
    ("map_pairs", r"T=(512|4096)", "best", "plain", 1.1, "to 8 ranks"),
    ("map_tokens", r"T=(512|4096)", "best", "plain", 1.5, "to 8 ranks, each token once"),
    ("activate", r"^(8x768|64x2048)$", "AVX-512", "probe", 1.3, "in cache"),
    ("activate", r"^(8x768|64x2048)$", "AVX-512", "ggml", 0.97, "in cache"),
    ("activate", r"^(8x768|64x2048)$", "AVX2", "AVX-512", 1.5, "in cache"),
    ("activate", r"^4096x(768|1536)$", "best", "probe", 1.05, "beyond the caches"),
    ("activate", r"^4096x1536@bf16$", "AVX-512", "AVX-512@f32", 0.55, "beyond the caches"),
    ("activate", r"^(8x768|64x2048)@bf16-i8$", "AVX-512", "AVX-512@f32", 1.25, "bf16 to int8"),
    ("activate_gelu_tanh", r"^(8x768|64x2048)$", "AVX-512", "AVX-512:silu", 1.5, "in cache"),
    ("activate_swiglu_oai", r"^(8x768|64x2048)$", "AVX-512", "AVX-512:silu", 1.5, "in cache"),
    ("activate_gelu", r"^(8x768|64x2048)$", "AVX-512", "AVX-512:silu", 1.5, "in cache"),
    ("activate_situ", r"^(8x768|64x2048)$", "AVX-512", "AVX-512:silu", 1.5, "in cache"),
    ("combine", r"T=(1|64|512)/H=\d+$", "best", "probe", 1.05, "moves the bytes only"),
    ("combine_indexed", r"T=(1|64|512)/H=\d+$", "best", "probe", 1.05, "moves the bytes only"),
    ("combine_form", r"T=", "best", "probe", 1.05, "moves the bytes only"),
    ("combine", r"T=512/H=(4096|7168)@bf16$", "AVX-512", "AVX-512@f32", 0.55, "beyond the caches"),
    ("hyper", r"T=", "best", "probe", 1.05, "moves the bytes only"),
    ("gather", r"T=512/H=\d+@bf16$", "AVX-512", "AVX-512@f32", 0.55, "half the bytes"),
    ("gather", r"T=512/H=2048@bf16-", "best", "probe", 1.1, "quantised once, packed"),
    ("multiply", r"rows=1$", "best", "probe", 1.15, "reads the weights only"),
    ("multiply", r"^int8/", "best", "onednn", 1.0, "rows quantised already"),
    ("multiply_f32", r".", "best", "ggml", 1.0, "rows quantised in the call"),
    ("experts", r".", "best", "ggml", 1.0, "a layer's experts"),
    ("threads", r"30us", "best:2", "best", 0.625, "two threads, 30 us of work"),
    ("threads", r"100us", "best:2", "best", 0.54, "two threads, 100 us of work"),
    ("threads_idle", r".", "best:2", "best", 1.15, "two threads after 1 ms idle"),
    ("device", r"^empty$", "device", None, 60.0, "ns a dispatch of 1000 empty ones"),
    ("kernel", r".", "checked", "unchecked", 20.0, "checked mode"),
    ("kernel", r".", "metal", "unchecked", 30.0, ".metal text, kernel.h"),
    # A reduction is cut unchecked, and not checked: there is no bound for that.
    ("kernel", r"^(streaming|weighted)", "metal_checked", "metal", 20.0, ".metal text, checked"),
)


class InputError(Exception):
    """One line about a file that is not a report's."""


def load(path):
    """The context, and {(kernel, shape, contender): (median ns a unit, unit)}."""
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read().decode("utf-8"))
        context, entries = data["context"], data["benchmarks"]
        machine = tuple(str(context.get(key)) for key in MACHINE)
        isas = context["isas"].split()
        samples = {}
        for entry in entries:
            if entry.get("run_type") == "aggregate":
                continue
            name = SUFFIX.sub("", entry["name"])
            if entry.get("error_occurred"):
                raise InputError(f"{path}: {name}: {entry.get('error_message', 'failed')}")
            kernel, shape, contender = re.fullmatch(r"([^/]+)/(.+)/([^/]+)", name).groups()
            types = re.search(r"@([^:]*)", contender)
            if types:
                shape, contender = f"{shape}@{types[1]}", contender.replace(types[0], "")
            ns = entry["real_time"] * NS[entry["time_unit"]] / entry["units"]
            unit = entry["label"].split(";")[0].strip()
            samples.setdefault((kernel, shape, contender), []).append((ns, unit))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise InputError(f"{path}: not what switchyard_bench wrote") from error
    if not samples or not isas:
        raise InputError(f"{path}: nothing was timed, or only aggregates were kept")
    return machine, isas, {key: (statistics.median(ns for ns, _ in found), found[0][1])
                           for key, found in samples.items()}


class Run:
    """What several processes measured: ns by kernel and shape, contender, process."""

    def __init__(self, paths):
        self.rows, self.units, self.machine = {}, {}, None
        for process, path in enumerate(paths):
            machine, self.isas, medians = load(path)
            if machine != (self.machine or machine):
                raise InputError(f"{path}: not of the machine and build of {paths[0]}")
            self.machine = machine
            for (kernel, shape, contender), (ns, unit) in medians.items():
                row = self.rows.setdefault((kernel, shape), {})
                row.setdefault(contender, {})[process] = ns
                self.units.setdefault(kernel, {})[unit] = None

    def find(self, row, contender):
        """The name in `row` of a contender as TARGETS have them, or None."""
        first, colon, rest = contender.partition(":")
        isas = self.isas if first == "best" else [i for i in self.isas if i.startswith("AVX3")]
        if first in ("best", "AVX-512"):
            return next((i + colon + rest for i in isas if i + colon + rest in row), None)
        if first in ("peer", "probe"):
            # A ":" says that a peer does only a part, such as oneDNN's softmax.
            names = PEERS if first == "peer" else [n for n in row if n.split(":")[0] == first]
            there = [name for name in names if name in row]
            return min(there, key=lambda n: statistics.median(row[n].values()), default=None)
        return contender if contender in row else None

    def ratios(self, row, one, other_row, other):
        """The time of one over the other's, by process."""
        both = row[one].keys() & other_row[other].keys()
        return sorted(row[one][p] / other_row[other][p] for p in both)


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def spread(values):
    text = number(statistics.median(values))
    if values[-1] - values[0] > 0.05 * statistics.median(values):
        text += f" [{number(values[0])}, {number(values[-1])}]"
    return text


def print_matrix(run):
    for kernel in dict.fromkeys(kernel for kernel, _ in run.rows):
        rows = {shape: row for (k, shape), row in run.rows.items() if k == kernel}
        isas = [i for i in run.isas if any(i in row for row in rows.values())]
        # A kernel of the device layer has contenders of its own names.
        ours = isas or list(dict.fromkeys(n for row in rows.values() for n in row))
        print(f"\n## {kernel}: ns a {' or a '.join(run.units[kernel])}\n")
        print("| shape | " + " | ".join(ours) + " | fastest peer | ours / peer | fastest probe |"
              " ours / probe |\n" + "|---" * (len(ours) + 5) + "|")
        for shape, row in rows.items():
            cells = [number(statistics.median(row[i].values())) if i in row else "" for i in ours]
            best = run.find(row, "best")
            for kind in ("peer", "probe"):
                name = run.find(row, kind)
                cells.append(f"{name}, {number(statistics.median(row[name].values()))}" if name else "")
                both = run.ratios(row, best, row, name) if best and name else []
                cells.append(spread(both) if both else "")
            print(f"| {shape} | " + " | ".join(cells) + " |")


def reached(run, kernel, shapes, one, other):
    """The worst figure of a target: (median, values, shape), or None if nothing was run."""
    found = []
    for (k, shape), row in run.rows.items():
        if k != kernel or not re.search(shapes, shape):
            continue
        ours, theirs, other_row = run.find(row, one), None, row
        if other and other.endswith("@f32"):
            other_row = run.rows.get((kernel, shape.split("@")[0]), {})
            theirs = run.find(other_row, other[:-4])
        elif other:
            theirs = run.find(row, other)
        if ours is None or (other and theirs is None):
            continue
        values = (run.ratios(row, ours, other_row, theirs) if other
                  else sorted(row[ours].values()))
        if values:
            found.append((statistics.median(values), values, shape))
    return max(found, default=None)


def print_targets(run):
    print("\n## Targets\n\nThe worst shape of each.\n\n| kernel | figure | bound | reached | at | |\n|---|---|---|---|---|---|")
    for kernel, shapes, one, other, bound, text in TARGETS:
        worst = reached(run, kernel, shapes, one, other)
        figure = f"{one} / {other}, {text}" if other else f"{one}, {text}"
        state = ("not run" if worst is None else "met" if worst[0] <= bound else "**not met**")
        print(f"| {kernel} | {figure} | {bound} | {spread(worst[1]) if worst else ''} | "
              f"{worst[2] if worst else ''} | {state} |")


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise InputError(message)


def main(argv):
    parser = _Parser(prog="report.py", description=__doc__, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="Google Benchmark's JSON")
    try:
        run = Run(parser.parse_args(argv).files)
        machine = dict(zip(MACHINE, run.machine))
        print(f"# {machine.pop('cpu_model')}, {machine.pop('data_caches')}\n\n"
              + ", ".join(f"{key} {value}" for key, value in machine.items()))
        print_matrix(run)
        print_targets(run)
        sys.stdout.flush()
    except InputError as error:
        print("report.py: " + " ".join(str(error).split()), file=sys.stderr)
        return 2
    except OSError as error:
        # The interpreter flushes stdout once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"report.py: standard output: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
