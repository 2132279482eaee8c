#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of docs/speed.md as SVG, from files that other programs wrote.

plots.py FOLDER [--bench FILE] [--compare FILE] [--swy PROGRAM]

--bench     report.py's JSON: FOLDER/kernels.svg, kernels by ISA beside a plain read or write
--compare   compare.py's JSON: FOLDER/experts.svg, experts' products beside ggml and oneDNN
--swy       the program swy: FOLDER/plan.svg, its simulation of a layer's schedule

The machine and the command are in each caption. With one version of matplotlib, equal figures give
equal files, because the files have no date and no random names. The background is white, so that a
plot can be read on light and dark pages. If FILE lacks a plot's figures, plots.py prints a line
instead of drawing the plot.
Exit codes: 0; 1 if a program or matplotlib is missing; 2 for wrong input, in a line on stderr.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import textwrap

import spread
from spread import InputError

# The rows of report.py's tables to draw, with their labels: first kernels that are limited by memory
# bandwidth, then products of one row with weights from memory, then kernels that are limited by
# arithmetic. A call takes at most a few milliseconds, because a busy machine interrupts longer calls.
KERNELS = {
    ("gather", "T=64/H=2048"): "GatherRows, 64 x 2048",
    ("combine", "T=64/H=2048"): "Combine, 64 x 2048",
    ("hyper", "both/T=64/H=4096"): "HyperConnect, 64 x 4096",
    ("multiply", "f32/768x2048/rows=1"): "1 row by f32 weights",
    ("multiply", "bf16/768x2048/rows=1"): "1 row by bf16",
    ("multiply", "int8/768x2048/rows=1"): "1 row by int8",
    ("multiply", "q8_0/768x2048/rows=1"): "1 row by q8_0",
    ("multiply", "q4_0/768x2048/rows=1"): "1 row by q4_0",
    ("multiply", "mxfp4/768x2048/rows=1"): "1 row by mxfp4",
    ("multiply", "q4_K/768x2048/rows=1"): "1 row by q4_K",
    ("multiply", "q6_K/768x2048/rows=1"): "1 row by q6_K",
    ("activate", "64x2048"): "Activate (SiLU), 64 x 2048",
    ("route", "E=128/k=8/T=512"): "RouteTopK, 512 x 128",
    ("bucket_packed", "E=128/k=8/T=512/uniform"): "BucketPacked, 4096 pairs",
}
# The batches of `swy plan`, which are also rows of a table in docs/speed.md.
WORKERS = (2, 4, 8, 16, 32, 64, 128)
BATCHES = {"1 token": ("--tokens", "1"), "64 tokens, Zipf": ("--tokens", "64", "--skew", "zipf"),
           "512, one hot": ("--tokens", "512", "--skew", "hot"),
           "4096, Zipf": ("--tokens", "4096", "--skew", "zipf")}

# Colours that people with any colour blindness can distinguish, and a marker for each colour.
STYLES = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#a0527f", "D"), ("#8a6d00", "v"),
          ("#444444", "P"))
GRAY = "#595959"
WIDTH = 400 / 72  # inches: text of 9 points is 9 pixels high if the plot is 400 pixels wide


class Missing(Exception):
    """A program or package is missing. The message is one line."""


def load_pyplot():
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Missing("Python has no matplotlib: scripts/setup.sh packages installs it in "
                      "build/venv") from error
    matplotlib.use("svg")
    import matplotlib.pyplot as pyplot  # pylint: disable=import-outside-toplevel
    pyplot.rcdefaults()  # A user's own settings would change the file.
    pyplot.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "switchyard", "text.parse_math": False,
        # A viewer without the first font uses the next font that it has.
        "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
        "font.size": 9, "axes.edgecolor": GRAY, "axes.spines.top": False,
        "axes.spines.right": False, "grid.color": "#d9d9d9",
        "figure.facecolor": "white", "lines.linewidth": 1.6, "lines.markersize": 5,
        "legend.fontsize": 8.5, "legend.frameon": False})
    return pyplot


def read(path, *keys):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        return data, [data[key] for key in keys]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def new_figure(pyplot, heights, caption, left=0.1):
    """Returns a figure that has a caption, and its axes from top to bottom. Heights are in inches."""
    lines = [line for text in caption for line in textwrap.wrap(text, 80)]
    # Inches above the axes for the title and legend, and below for the x axis and caption.
    above, below = 0.5, 0.55 + 0.16 * len(lines)
    height = sum(heights) + (above + 0.5) * (len(heights) - 1) + above + below
    figure = pyplot.figure(figsize=(WIDTH, height))
    figure.text(0.02, 0.06 / height, "\n".join(lines), fontsize=8, color=GRAY, va="bottom",
                linespacing=1.35)
    top, axes = height - above, []
    for each in heights:
        axes.append(figure.add_axes([left, (top - each) / height, 0.97 - left, each / height]))
        top -= each + above + 0.5
    return figure, axes


def finish(figure, axes, title, columns):
    """Adds the title, and a legend below it, at the left edge of the figure."""
    left = (0.02 - axes.get_position().x0) / axes.get_position().width
    height = axes.get_position().height * figure.get_figheight()
    axes.legend(loc="lower left", bbox_to_anchor=(left - 0.01, 1.0), ncol=columns,
                borderaxespad=0.1, handletextpad=0.3, columnspacing=1.2)
    axes.text(left, 1 + 0.3 / height, title, transform=axes.transAxes, weight="bold", fontsize=9.5)
    axes.set_axisbelow(True)


def point(axes, x, y, half, style, across=True):
    """Draws a point and its spread. The point is hollow if the spread is wider than its distance
    from 1."""
    colour, marker = style
    if half:
        axes.plot(*((half, (y, y)) if across else ((x, x), half)), color=colour, linewidth=1,
                  solid_capstyle="butt")
    is_hollow = bool(half) and spread.is_noise(x if across else y, half)
    axes.plot([x], [y], color=colour, marker=marker, linestyle="none",
              markerfacecolor="white" if is_hollow else colour)


def shares_of(row, isa):
    """Returns the fastest probe's time divided by this ISA's time, for each process."""
    probes = [ns for name, ns in row.items() if name.split(":")[0] == "probe"]
    if isa not in row or not probes:
        return []
    times = {p: ns for p, ns in enumerate(row[isa]) if ns is not None}
    probe = min(({p: ns for p, ns in enumerate(ns) if ns is not None} for ns in probes),
                key=lambda ns: statistics.median(ns.values()))
    return [probe[p] / times[p] for p in times if p in probe]


def draw_kernels(pyplot, path):
    data, (command, machine, isas, rows) = read(path, "command", "machine", "isas", "rows")
    found = {(row["kernel"], row["shape"]): row["ns"] for row in rows}
    names = [name for name in KERNELS
             if any(shares_of(found.get(name, {}), isa) for isa in isas)]
    if not names:
        return None
    runs = max(len(ns) for name in names for ns in found[name].values())
    averages = data.get("load_averages") or []
    load = f", load average {statistics.median(averages):.1f}" if averages else ""
    figure, (axes,) = new_figure(pyplot, [0.22 * len(names) + 0.2], [
        f"{machine['cpu_model']}, {machine['data_caches']}, one thread, {machine['compiler']}"
        f"{load}. Median of processes ({runs}); the line is the middle half of them; hollow: the "
        "middle half is wider than the distance from 1.", command], left=0.4)
    for at, name in enumerate(names):
        for isa, style in reversed(list(zip(isas, STYLES))):
            shares = shares_of(found[name], isa)
            if shares:
                half = spread.middle_half(shares) if len(shares) > 2 else None
                point(axes, statistics.median(shares), at, half, style)
    for isa, (colour, marker) in zip(isas, STYLES):
        axes.plot([], [], color=colour, marker=marker, linestyle="none", label=isa)
    axes.set_yticks(range(len(names)), [KERNELS[name] for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, max(1.2, axes.get_xlim()[1]))
    axes.axvline(1, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    axes.grid(axis="x")
    axes.set_xlabel("1: as fast as a plain read or write", loc="right")
    finish(figure, axes, "Time to only move a kernel's bytes / the kernel's time", len(isas))
    return figure


def draw_ratios(axes, table, rows):
    """Draws a line for each row: its ratios over the table's columns, with their spreads."""
    for (text, cells), style in zip(rows, STYLES):
        there = [(x, cell) for x, cell in enumerate(cells) if cell]
        axes.plot([x for x, _ in there], [cell["ratio"] for _, cell in there], color=style[0],
                  label=text, marker=style[1])
        for x, cell in there:
            half = cell.get("spread")
            point(axes, x, cell["ratio"], half, style, across=False)
            if cell["is_noise"] and not half:
                axes.plot([x], [cell["ratio"]], color=style[0], marker=style[1],
                          markerfacecolor="white")
    axes.axhline(1, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xticks(range(len(table["columns"])), table["columns"])
    axes.set_xlim(-0.2, len(table["columns"]) - 0.8)
    axes.set_ylim(0, None)
    axes.grid(axis="y")


def draw_experts(pyplot, path):
    _, (command, load, tables) = read(path, "command", "load", "tables")
    tables = {table["name"]: table for table in tables}
    panels = [name for name in ("experts", "products") if name in tables]
    if not panels:
        return None
    caption = [" ".join(tables[name]["title"].split()) + "." for name in panels]
    figure, each = new_figure(pyplot, [2.3 if name == "experts" else 1.5 for name in panels], [
        *caption, f"{load} Hollow: no result, because runs scatter by more than the distance from "
        "1.", command])
    for name, axes in zip(panels, each):
        rows, title = tables[name]["rows"], "One product: oneDNN's time / ours"
        axes.set_xlabel("rows")
        if name == "experts":
            # Draws only the rows with the most threads. The second label is the number of threads.
            most = max((row["labels"][1] for row in rows), key=int)
            rows = [row for row in rows if row["labels"][1] == most]
            title = "The experts of a layer: ggml's time / ours"
            axes.set_xlabel(f"tokens ({most} threads)")
        draw_ratios(axes, tables[name], [(row["labels"][0].split()[0], row["cells"])
                                         for row in rows])
        finish(figure, axes, title, 5)
    return figure


def plan_ratios(program, batch):
    """Returns two ratios that swy plan prints, for each number of workers: the time of the plan, and
    the time of tiles of whole experts, each divided by the time of evenly shared work."""
    command = [program, "plan", *batch, "--workers", *map(str, WORKERS)]
    try:
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        rows = [line.split() for line in text.splitlines()[1:]]
        return {int(row[0]): (float(row[4]), float(row[6])) for row in rows}
    except OSError as error:
        raise Missing(f"{program}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        raise Missing(f"{program}: exit code {error.returncode}") from error
    except (ValueError, IndexError) as error:
        raise InputError(f"{program}: not the table of swy plan") from error


def draw_plan(pyplot, program):
    figure, (axes,) = new_figure(pyplot, [2.6], [
        "Simulated for the shape of Qwen3-30B-A3B: 21 us a row, 3 us to wake workers, 0.6 us a "
        "tile. Solid: the plan of RunExperts; dotted: tiles of whole experts with a barrier "
        "between the products.",
        f"swy plan --workers {' '.join(map(str, WORKERS))} --tokens N --skew NAME"])
    for (name, batch), (colour, marker) in zip(BATCHES.items(), STYLES):
        ratios = plan_ratios(program, batch)
        for part, line in ((1, (0, (1, 1.5))), (0, "-")):
            axes.plot(range(len(WORKERS)), [ratios[workers][part] for workers in WORKERS],
                      color=colour, marker=marker, linestyle=line,
                      markersize=3 if part else 5, label=None if part else name)
    axes.set_xticks(range(len(WORKERS)), WORKERS)
    axes.set_ylim(0.9, None)
    axes.axhline(1, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    axes.grid(axis="y")
    axes.set_xlabel("workers")
    finish(figure, axes, "Time of a layer's experts / time of evenly shared work", 4)
    return figure


def draw_from(source, draw, pyplot):
    try:
        return draw(pyplot, source)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise InputError(f"{source}: not the JSON of report.py or compare.py") from error


def save(figure, path):
    """Writes the figure to a new file, then replaces the old file, so that an error leaves no partial
    file."""
    part = f"{path}.part"
    try:
        figure.savefig(part, format="svg", metadata={"Date": None, "Creator": "bench/plots.py"})
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    finally:
        if os.path.isfile(part):
            os.remove(part)


def main(argv):
    parser = spread.Parser(prog="plots.py", description=__doc__, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--bench", metavar="FILE")
    parser.add_argument("--compare", metavar="FILE")
    parser.add_argument("--swy", metavar="PROGRAM")
    try:
        arguments = parser.parse_args(argv)
        wanted = [("kernels", draw_kernels, arguments.bench),
                  ("experts", draw_experts, arguments.compare),
                  ("plan", draw_plan, arguments.swy)]
        wanted = [each for each in wanted if each[2]]
        if not wanted:
            raise InputError("one of these is required: --bench, --compare, --swy")
        if not os.path.isdir(arguments.folder):
            raise InputError(f"{arguments.folder}: no folder")
        pyplot = load_pyplot()
        figures = [(name, draw_from(source, draw, pyplot), source)
                   for name, draw, source in wanted]
        for name, figure, source in figures:
            path = os.path.join(arguments.folder, f"{name}.svg")
            if figure is None:
                print(f"No {name}.svg: {source} has none of its rows")
                continue
            save(figure, path)
            print(path)
    except (InputError, Missing) as error:
        print("plots.py: " + " ".join(str(error).split()), file=sys.stderr)
        return 1 if isinstance(error, Missing) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
