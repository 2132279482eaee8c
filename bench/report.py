#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Prints what switchyard_bench measured as Markdown: a line for each kernel,
shape and type, a column for each ISA, and beside them the fastest peer and the
fastest probe.

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

# The first word of a peer's name. Every other contender is one of Switchyard's own ISAs.
PEERS = ("plain", "engine", "onednn", "ggml")
# The files of one report have to agree in these fields.
MACHINE = ("cpu_model", "data_caches", "isas", "compiler", "highway", "tbb", "onednn", "ggml")
NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Google Benchmark appends these to a name.
SUFFIX = re.compile(r"/((iterations|repeats|threads|min_time|min_warmup_time):[^/]*|\w+_time)")

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

    def find(self, row, kind):
        """The name of the best ISA, or of the fastest peer or probe, in `row`, or None."""
        if kind == "best":
            return next((isa for isa in self.isas if isa in row), None)
        # After a ":" comes the part that a peer does, such as oneDNN's softmax.
        names = PEERS if kind == "peer" else [n for n in row if n.split(":")[0] == kind]
        there = [name for name in names if name in row]
        return min(there, key=lambda n: statistics.median(row[n].values()), default=None)

    def ratios(self, row, one, other):
        """The time of one over the other's, by process."""
        both = row[one].keys() & row[other].keys()
        return sorted(row[one][p] / row[other][p] for p in both)


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
        # A kernel of the device layer has contenders with names of its own.
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
                both = run.ratios(row, best, name) if best and name else []
                cells.append(spread(both) if both else "")
            print(f"| {shape} | " + " | ".join(cells) + " |")


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
