#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Prints switchyard_bench's times as Markdown: for each kernel, a table with a line for each shape
and type, a column for each ISA, and columns for the fastest peer and the fastest probe.

One process wrote each FILE, by the option --benchmark_out=FILE. Several FILEs of one machine give one
report. From each process, the report takes a contender's median time, and the ratio of two
contenders' medians. It prints the median of all processes. Behind a time, "±2%" is half of the
time's spread. Brackets behind a ratio have the ratio's spread. bench/spread.py defines spreads. A
ratio with a wider spread than its distance from 1 is no result, so a mark replaces the ratio.
--json writes the same figures for bench/plots.py.
Exit codes: 0; 2 for wrong input, in a line on stderr.
"""

import argparse
import json
import os
import re
import statistics
import sys

import spread
from spread import InputError

# The first word of a peer's name. A peer is a rival of the library's kernels.
PEERS = ("plain", "engine", "onednn", "ggml")
# Fields of the context that must be equal in all files of one report.
MACHINE = ("cpu_model", "data_caches", "isas", "compiler", "highway", "tbb", "onednn", "ggml")
NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# Suffixes that Google Benchmark appends to a name.
SUFFIX = re.compile(r"/((iterations|repeats|threads|min_time|min_warmup_time):[^/]*|\w+_time)")

# Above this load average, other programs run, because the benchmarks alone give about 1.
MOST_LOAD_AVERAGE = 1.5


def load(path):
    """Reads a file. Returns the machine, its ISAs, the load average, and
    {(kernel, shape, contender): (sorted ns per unit, unit)}."""
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read().decode("utf-8"))
        context, entries = data["context"], data["benchmarks"]
        machine = tuple(str(context.get(key)) for key in MACHINE)
        isas = context["isas"].split()
        average = [float(value) for value in context.get("load_avg", [])[:1]]
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
    return machine, isas, average, {key: (sorted(ns for ns, _ in found), found[0][1])
                                    for key, found in samples.items()}


class Run:
    """Measurements of several processes: sorted ns by (kernel, shape), contender and process."""

    def __init__(self, paths):
        self.rows, self.units, self.machine, self.averages = {}, {}, None, []
        for process, path in enumerate(paths):
            machine, self.isas, average, samples = load(path)
            if machine != (self.machine or machine):
                raise InputError(f"{path}: not of the machine and build of {paths[0]}")
            self.machine = machine
            self.averages += average
            for (kernel, shape, contender), (ns, unit) in samples.items():
                row = self.rows.setdefault((kernel, shape), {})
                row.setdefault(contender, {})[process] = ns
                self.units.setdefault(kernel, {})[unit] = None

    def find(self, row, kind):
        """Returns the name of the best ISA, or of the fastest peer or probe, in `row`, or None."""
        if kind == "best":
            return next((isa for isa in self.isas if isa in row), None)
        # Peers are found by their whole name, because a peer with a ":" in its name does only a part
        # of the work, such as oneDNN's softmax.
        names = PEERS if kind == "peer" else [n for n in row if n.split(":")[0] == kind]
        there = [name for name in names if name in row]
        return min(there, key=lambda n: time_of(row[n])[0], default=None)


def repetitions(processes):
    """Returns the spread of the repetitions of one or two processes."""
    halves = [spread.middle_half(ns) for ns in processes.values()]
    return min(low for low, _ in halves), max(high for _, high in halves)


def time_of(processes):
    """Returns the median of the processes' medians, and their spread. For one or two processes,
    returns the spread of their repetitions, because two medians may agree by luck."""
    medians = [statistics.median(ns) for ns in processes.values()]
    half = spread.middle_half(medians) if len(medians) > 2 else repetitions(processes)
    return statistics.median(medians), half


def ratio_of(one, other):
    """Returns the ratio of the times of `one` and `other` and its spread, or None if no process has
    both."""
    both = one.keys() & other.keys()
    ratios = [statistics.median(one[p]) / statistics.median(other[p]) for p in both]
    if len(ratios) > 2:
        return statistics.median(ratios), spread.middle_half(ratios)
    if not ratios:
        return None
    # Divides spreads, because repetitions of two contenders do not alternate and so form no pairs.
    halves = [(spread.middle_half(one[p]), spread.middle_half(other[p])) for p in both]
    return statistics.median(ratios), (min(low / other_high for (low, _), (_, other_high) in halves),
                                       max(high / other_low for (_, high), (other_low, _) in halves))


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def time_text(processes):
    time, (low, high) = time_of(processes)
    return f"{number(time)} ±{(high - low) / 2 / time:.0%}"


def print_matrix(run):
    for kernel in dict.fromkeys(kernel for kernel, _ in run.rows):
        rows = {shape: row for (k, shape), row in run.rows.items() if k == kernel}
        isas = [i for i in run.isas if any(i in row for row in rows.values())]
        # The contenders of the device layer's kernels are not ISAs, so all contenders get a column.
        ours = isas or list(dict.fromkeys(n for row in rows.values() for n in row))
        print(f"\n## {kernel}: ns a {' or a '.join(run.units[kernel])}\n")
        print("| shape | " + " | ".join(ours) + " | fastest peer | ours / peer | fastest probe |"
              " ours / probe |\n" + "|---" * (len(ours) + 5) + "|")
        for shape, row in rows.items():
            cells = [time_text(row[i]) if i in row else "" for i in ours]
            best = run.find(row, "best")
            for kind in ("peer", "probe"):
                name = run.find(row, kind)
                cells.append(f"{name}, {time_text(row[name])}" if name else "")
                ratio = ratio_of(row[best], row[name]) if best and name else None
                cells.append(spread.ratio_text(*ratio, number) if ratio else "")
            print(f"| {shape} | " + " | ".join(cells) + " |")


def load_lines(averages):
    """Returns a line with the load averages at the processes' starts, and a warning if the machine
    is loaded."""
    if not averages:
        return []
    middle = statistics.median(averages)
    lines = [f"load average {middle:.1f} [{min(averages):.1f}, {max(averages):.1f}]"]
    if middle > MOST_LOAD_AVERAGE:
        lines.append("This machine is loaded: the benchmarks keep one CPU busy, and other programs "
                     "did the rest. Measure again when nothing else runs.")
    return lines


def figures(run, command):
    """Returns the figures for bench/plots.py: by row and contender, each process's median or null."""
    rows = []
    for (kernel, shape), row in run.rows.items():
        processes = sorted(set().union(*row.values()))
        rows.append({"kernel": kernel, "shape": shape, "ns": {
            name: [statistics.median(times[p]) if p in times else None for p in processes]
            for name, times in row.items()}})
    return {"command": command, "machine": dict(zip(MACHINE, run.machine)), "isas": run.isas,
            "load_averages": run.averages, "rows": rows}


def write(path, data):
    try:
        spread.write_json(path, data)
    except OSError as error:
        raise InputError(f"--json: {path}: {error.strerror}") from error


def main(argv):
    parser = spread.Parser(prog="report.py", description=__doc__, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="Google Benchmark's JSON")
    parser.add_argument("--json", help="the file to write for bench/plots.py")
    parser.add_argument("--command", default="bench/report.py",
                        help="the command to name in a plot's caption")
    try:
        arguments = parser.parse_args(argv)
        run = Run(arguments.files)
        if arguments.json:
            write(arguments.json, figures(run, arguments.command))
        machine = dict(zip(MACHINE, run.machine))
        print(f"# {machine.pop('cpu_model')}, {machine.pop('data_caches')}\n\n"
              + ", ".join(f"{key} {value}" for key, value in machine.items()))
        for line in load_lines(run.averages):
            print(f"\n{line}")
        print_matrix(run)
        print(f"\n{spread.NO_RESULT_TEXT}")
        sys.stdout.flush()
    except InputError as error:
        print("report.py: " + " ".join(str(error).split()), file=sys.stderr)
        return 2
    except OSError as error:
        # Replaces stdout, because the interpreter flushes it once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"report.py: standard output: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
