#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares our code around the products of a layer's experts with the usual code, in Markdown.

compare.py [MOE_LAYER] [--torch PYTHON] [--ggml PYTHON PLUGIN MODEL.gguf...] [--experts BENCH]
           [--repeat N] [--json FILE]
compare.py --load    prints only a warning, if the machine is loaded

The layer has Qwen3-30B-A3B's shape. The table has a row for each kind of code and type, and cells
for 1, 32 and 512 tokens. A cell has the code's time divided by ours, the spread of this ratio in
brackets, and our time in ms. Each program that measures runs the code and ours in turns in one
process. Each pair of runs gives a ratio, and the spread is the middle half of these ratios.

With --repeat, all programs run N times in new processes. A cell then has the median of the N
medians, and its spread is the middle half of the N medians. For N = 3 or 4, the spread is the range
of the N medians; for N = 2, it is the spread of the runs' own ratios. A cell with a wider spread
than its distance from 1 has a mark instead of a ratio. setup.sh compare builds all programs that
compare.py needs, and runs it.

--experts appends a table for experts with quantised weights: PlanExperts and RunExperts beside
ggml's graph, and a table for products with int8 weights beside oneDNN. BENCH is switchyard_bench,
built with ggml. It times both in one process, in random order, and checks that their results agree.

--json writes the same tables for bench/plots.py.
Exit codes: 0; 1 if a program fails; 2 for wrong arguments. Each failure prints a line on stderr.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import report
import spread

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS = {1: 61, 32: 31, 512: 15}  # rounds of plain loops, by tokens
# The number of rounds of each contender of `experts`, for each number of tokens.
EXPERT_TOKENS = {1: 101, 4: 51, 32: 25, 512: 9}
# The weight formats of `experts` to run, with their names in the table. ggml has no int8.
EXPERT_FORMATS = {"q4_0": "q4_0", "q4_K": "q4_K", "q8_0": "q8_0", "mxfp4": "mxfp4",
                  "int8": "int8 beside ggml's q8_0"}
# For a product with int8 weights: the number of rounds for each number of rows, and the shape of the
# weights.
PRODUCT_ROWS = {1: 101, 4: 51, 32: 25, 128: 15}
PRODUCT_SHAPE = "768x2048"


class Failed(Exception):
    """A program failed, so nothing was measured. The message is one line."""


def output(*command, **variables):
    print(*command, file=sys.stderr)
    try:
        return subprocess.run([str(word) for word in command], env={**os.environ, **variables},
                              stdout=subprocess.PIPE, text=True, check=True).stdout
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise Failed(f"{command[0]}: exit code {error.returncode}") from error


class Table:
    """A table of ratios by row and column, with one entry for each run."""

    def __init__(self, name, labels, count, columns):
        self.name, self.labels, self.count, self.columns = name, labels, count, list(columns)
        self.title, self.rows = "", {}

    def add(self, row, column, ratio, ms, half):
        self.rows.setdefault(row, {}).setdefault(column, []).append((ratio, ms, half))

    def cell(self, row, column):
        """Returns the ratio, our time in ms and the spread over all runs, or None."""
        runs = self.rows[row].get(column)
        if not runs:
            return None
        ratios = [ratio for ratio, _, _ in runs]
        # Uses the spread of the rounds for one or two runs, because two medians may agree by luck.
        half = (spread.middle_half(ratios) if len(runs) > 2 else
                (min(half[0] for _, _, half in runs), max(half[1] for _, _, half in runs)))
        return statistics.median(ratios), statistics.median(ms for _, ms, _ in runs), half

    def print(self):
        if self.title:
            print(f"\n{self.title}\n")
        heads = [*self.labels, *(f"{self.count} = {column}" for column in self.columns)]
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for row in self.rows:
            cells = [self.cell(row, column) for column in self.columns]
            print("|", " | ".join([*row, *map(self.text, cells)]), "|")

    @staticmethod
    def text(cell):
        if cell is None:
            return ""
        ratio, ms, half = cell
        return f"{spread.ratio_text(ratio, half)} ({report.number(ms)})"

    def figures(self):
        return {"name": self.name, "title": self.title, "labels": self.labels,
                "count": self.count, "columns": self.columns, "rows": [
                    {"labels": row, "cells": [
                        cell and {"ratio": cell[0], "ms": cell[1], "spread": cell[2],
                                  "is_noise": spread.is_noise(cell[0], cell[2])}
                        for cell in (self.cell(row, column) for column in self.columns)]}
                    for row in self.rows]}


def columns(table):
    """Returns the cells of a Markdown table's rows, without the head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def plain_loops(program, table):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        for dtype in ("bf16", "f32"):
            for tokens, rounds in TOKENS.items():
                output(program, "--compare", "--dtype", dtype, "--tokens", tokens,
                       "--repeat", rounds, "--json", path)
                run = json.loads(path.read_text())
                if not table.title:
                    context = run["context"]
                    table.title = (f"{context['cpu_model']}{cpu_class()} ({run['isa']}), "
                                   f"{run['threads']} threads, {context['compiler']}, "
                                   f"oneDNN {context['onednn']}: one layer, the usual code's time "
                                   "divided by ours")
                table.add(("plain loops", dtype), tokens,
                          run["plain_loops_seconds"] / run["seconds"], run["seconds"] * 1e3,
                          spread.middle_half(plain / ours for ours, plain in
                                             zip(run["round_seconds"],
                                                 run["plain_loops_round_seconds"])))


def cpu_class():
    """Returns the CPU's family and model numbers, which distinguish x86 CPUs of the same name."""
    with open("/proc/cpuinfo") as file:
        values = dict(reversed([[part.strip() for part in line.split(":", 1)]
                                for line in file if ":" in line]))
    return "".join(f", {name} {values[key]}" for name, key in
                   (("family", "cpu family"), ("model", "model")) if key in values)


def range_of(cell):
    """Returns the two numbers in a text such as "0.98 to 1.02"."""
    return tuple(float(word) for word in cell.split(" to "))


def torch(python, table):
    for dtype in ("bfloat16", "float32"):
        rows = columns(output(
            python, ROOT / "bindings/python/bench/moe_block.py", "--layers", 1, "--seconds", 10,
            "--dtype", dtype, "--tokens", *TOKENS))
        for tokens, cells in zip(TOKENS, rows):
            table.add(("transformers' experts", dtype.replace("loat", "")), tokens,
                      float(cells[-2]), float(cells[2]), range_of(cells[-1]))


def ggml(python, plugin, *models, table):
    for model in models:
        rows = columns(output(
            python, ROOT / "integrations/ggml/tests/measure.py", plugin, model,
            ",".join(map(str, TOKENS)), 10, 3, THREADS=str(os.cpu_count())))
        for tokens, cells in zip(TOKENS, rows):
            table.add(("llama.cpp, four layers", pathlib.Path(model).stem), tokens,
                      float(cells[3]), float(cells[2]), range_of(cells[-1]))


def contender_times(program, pattern, rounds):
    """Runs switchyard_bench. Returns its context, and the times in ns by contender and round."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.json")
        output(program, f"--benchmark_filter={pattern}", f"--benchmark_out={path}",
               f"--benchmark_repetitions={rounds}")
        run = json.loads(path.read_text())
    times = {}
    for entry in run["benchmarks"]:
        if entry["run_type"] == "iteration":
            contender = report.SUFFIX.sub("", entry["name"]).split("/")[-1]
            times.setdefault(contender, {})[entry["repetition_index"]] = entry["real_time"]
    return run["context"], times


def add_ratio(table, row, column, ours, theirs):
    """Adds a run to the table: the ratios of its rounds. Times are in ns."""
    ratios = [theirs[i] / ours[i] for i in ours]
    table.add(row, column, statistics.median(ratios), statistics.median(ours.values()) / 1e6,
              spread.middle_half(ratios))


def experts(program, table):
    for weights, name in EXPERT_FORMATS.items():
        for tokens, rounds in EXPERT_TOKENS.items():
            context, times = contender_times(program, f"^experts/{weights}/T={tokens}/", rounds)
            if "ggml" not in times:
                raise Failed(f"{program} was built without ggml")
            isa = next(isa for isa in context["isas"].split() if isa in times)
            table.title = table.title or (
                f"{context['cpu_model']}{cpu_class()} ({isa}), ggml {context['ggml']}: the experts "
                "of a layer, from ids to\nthe sum; ggml's time, with weights as llama.cpp loads "
                "them, divided by ours")
            for threads, suffix in ((1, ""), (2, ":2")):
                if isa + suffix in times:
                    add_ratio(table, (name, str(threads)), tokens, times[isa + suffix],
                              times["ggml" + suffix])


def products(program, table):
    for rows, rounds in PRODUCT_ROWS.items():
        context, times = contender_times(
            program, f"^multiply/int8/{PRODUCT_SHAPE}/rows={rows}/", rounds)
        isa = next(isa for isa in context["isas"].split() if isa in times)
        table.title = table.title or (
            f"{context['cpu_model']}{cpu_class()} ({isa}): a product with int8 weights of "
            f"{PRODUCT_SHAPE}, quantised\nrows; oneDNN {context['onednn']}'s time divided by ours, "
            "one thread")
        add_ratio(table, ("int8 beside oneDNN",), rows, times[isa], times["onednn"])


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"compare.py: {message}\n")


def count(text):
    """Returns the whole number above 0 that `text` has."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"not a whole number above 0: '{text}'")
    return int(text)


def measure(arguments):
    """Returns all tables, and the shares of the CPUs that other programs and the host used."""
    layer = Table("layer", ["usual code", "type"], "T", TOKENS)
    graph = Table("experts", ["experts' weights", "threads"], "T", EXPERT_TOKENS)
    product = Table("products", ["weights"], "rows", PRODUCT_ROWS)
    load = spread.Load()
    for _ in range(arguments.repeat):
        if arguments.moe_layer is not None:
            plain_loops(arguments.moe_layer, layer)
        if arguments.torch:
            torch(arguments.torch, layer)
        if arguments.ggml:
            ggml(*arguments.ggml, table=layer)
        if arguments.experts:
            experts(arguments.experts, graph)
            products(arguments.experts, product)
    return [table for table in (layer, graph, product) if table.rows], load.shares()


def run(arguments):
    load = spread.Load()
    time.sleep(0.4)
    at_start = spread.load_text("at the start", load.shares())
    if arguments.load:
        print(at_start, end="\n" * bool(at_start))
        return
    tables, shares = measure(arguments)
    others, stolen = shares
    runs = f"{arguments.repeat} runs" if arguments.repeat > 1 else "one run"
    load_line = (f"While this measured ({runs}), other programs used {others:.0%} of "
                 f"{os.cpu_count()} CPUs, and the host took {stolen:.0%}{spread.average_text()}.")
    for table in tables:
        table.print()
    print(f"\n{spread.NO_RESULT_TEXT}\n\n{load_line}")
    text = spread.load_text("while this measured", shares) or at_start
    if text:
        print(f"\n{text}")
    if arguments.json:
        spread.write_json(arguments.json, {
            "command": arguments.command, "runs": arguments.repeat, "load": load_line,
            "tables": [table.figures() for table in tables]})


def main():
    parser = _Parser(prog="compare.py", description=__doc__, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moe_layer", nargs="?")
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--torch")
    parser.add_argument("--ggml", nargs="+")
    parser.add_argument("--experts")
    parser.add_argument("--repeat", type=count, default=1)
    parser.add_argument("--json", help="the file to write for bench/plots.py")
    parser.add_argument("--command", default="bench/compare.py",
                        help="the command to name in a plot's caption")
    arguments = parser.parse_args()
    if not arguments.load and arguments.moe_layer is None and arguments.experts is None:
        parser.error("one of these is required: moe_layer, --experts")
    try:
        run(arguments)
    except Failed as error:
        sys.exit(f"compare.py: {error}")
    except OSError as error:
        sys.exit(f"compare.py: {error.filename or 'output'}: {error.strerror}")


if __name__ == "__main__":
    main()
