#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""README's table: usual code around the products of a layer's experts, beside ours.

compare.py [MOE_LAYER] [--torch PYTHON] [--ggml PYTHON PLUGIN MODEL.gguf...] [--experts BENCH]
compare.py --load    only the line that says that the machine is loaded, if it is

One layer of Qwen3-30B-A3B's shape; for each kind of code and type, its time over ours and, in
brackets, ours in ms, at 1, 32 and 512 tokens. The programs that measure alternate in one process,
and each pair of runs gives a ratio of its own. A cell has a question mark if these ratios scatter
by more than the cell differs from 1. setup.sh compare builds all that it needs, and runs it.

--experts appends a table for experts with quantised weights: PlanExperts and RunExperts beside
ggml's graph. BENCH is switchyard_bench, built with ggml. It times both in one process, in random
order, and checks that their results agree.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS = {1: 61, 32: 31, 512: 15}  # rounds of plain loops, by tokens
# The same for each contender of `experts`, and the weight formats to run. ggml has no int8.
EXPERT_TOKENS = {1: 101, 4: 51, 32: 25, 512: 9}
EXPERT_FORMATS = {"q4_0": "q4_0", "q4_K": "q4_K", "q8_0": "q8_0", "mxfp4": "mxfp4",
                  "int8": "int8 beside ggml's q8_0"}
# The share of the CPUs' time that other processes may use. With a twentieth, the ratio of two
# runs already varies by more than most cells differ from 1.
MOST_LOAD = 0.05


def output(*command, **variables):
    print(*command, file=sys.stderr)
    return subprocess.run([str(word) for word in command], env={**os.environ, **variables},
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def middle_half(ratios):
    """The least and the largest ratio in the middle half of the rounds."""
    ratios = sorted(ratios)
    quarter = (len(ratios) - 1) // 4
    return ratios[quarter], ratios[-1 - quarter]


def is_noise(ratio, half):
    """True if the middle half of the rounds, `half`, scatters by more than the effect."""
    return half[1] - half[0] > abs(ratio - 1)


def row(name, dtype, cells):
    """cells: (theirs over ours, our ms, middle half) for each number of tokens. Returns True if a
    cell is noise."""
    noise = [is_noise(ratio, half) for ratio, _, half in cells]
    texts = [f"{ratio:.2f}{'?' * is_one} ({ms:.1f})"
             for (ratio, ms, _), is_one in zip(cells, noise)]
    print("|", " | ".join([name, dtype, *texts]), "|", flush=True)
    return any(noise)


class Load:
    """The CPU time that other programs, and a virtual machine's host, have used since the object
    was made."""

    def __init__(self, stat="/proc/stat"):
        self.stat = stat
        self.begin = self.now()

    def now(self):
        """Ticks: all, stolen by the host, in programs, and in this program and its children."""
        try:
            words = pathlib.Path(self.stat).read_text().split()
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, words[1:9])
        except (OSError, ValueError):
            return None
        return (user + nice + system + idle + iowait + irq + softirq + steal, steal,
                user + nice + system, sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK"))

    def shares(self):
        """The shares of other programs and of the host, from 0 to 1."""
        end = self.now()
        if self.begin is None or end is None or end[0] == self.begin[0]:
            return 0, 0
        every, stolen, busy, own = (b - a for a, b in zip(self.begin, end))
        return max(0, busy - own) / every, stolen / every


def load_text(when, shares):
    """A warning if others use too much of the machine for measurements, otherwise ""."""
    others, stolen = shares
    if others + stolen <= MOST_LOAD:
        return ""
    try:
        average = f", load average {os.getloadavg()[0]:.1f}"
    except OSError:
        average = ""
    return (f"This machine is loaded: {when}, other programs used {others:.0%} of its "
            f"{os.cpu_count()} CPUs{average}, and the host took {stolen:.0%}. Ratios of times "
            "are noise then; measure again when nothing else runs.")


def columns(table):
    """The cells of a table's rows, without the head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def plain_loops(program):
    is_noisy = False
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
            is_noisy |= row("plain loops", dtype, [
                (run["plain_loops_seconds"] / run["seconds"], run["seconds"] * 1e3,
                 middle_half(plain / ours for ours, plain in
                             zip(run["round_seconds"], run["plain_loops_round_seconds"])))
                for run in runs])
    return is_noisy


def cpu_class():
    """The family and model, which distinguish x86 CPUs of the same name."""
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


def range_of(cell):
    """The two numbers in a text such as "0.98 to 1.02"."""
    return tuple(float(word) for word in cell.split(" to "))


def torch(python):
    is_noisy = False
    for dtype in ("bfloat16", "float32"):
        table = columns(output(
            python, ROOT / "bindings/python/bench/moe_block.py", "--layers", 1, "--seconds", 10,
            "--dtype", dtype, "--tokens", *TOKENS))
        is_noisy |= row("transformers' experts", dtype.replace("loat", ""),
                        [(float(cells[-2]), float(cells[2]), range_of(cells[-1]))
                         for cells in table])
    return is_noisy


def ggml(python, plugin, *models):
    is_noisy = False
    for model in models:
        table = columns(output(
            python, ROOT / "integrations/ggml/tests/measure.py", plugin, model,
            ",".join(map(str, TOKENS)), 10, 3, THREADS=str(os.cpu_count())))
        is_noisy |= row("llama.cpp, four layers", pathlib.Path(model).stem,
                        [(float(cells[3]), float(cells[2]), range_of(cells[-1]))
                         for cells in table])
    return is_noisy


def expert_times(program, path, weights, tokens):
    """switchyard_bench's context, and the ns by contender and round."""
    output(program, f"--benchmark_filter=^experts/{weights}/T={tokens}/", f"--benchmark_out={path}",
           f"--benchmark_repetitions={EXPERT_TOKENS[tokens]}")
    run = json.loads(path.read_text())
    times = {}
    for entry in run["benchmarks"]:
        if entry["run_type"] == "iteration":
            contender = entry["name"].split("/")[3]
            times.setdefault(contender, {})[entry["repetition_index"]] = entry["real_time"]
    return run["context"], times


def experts(program):
    is_noisy, is_first = False, True
    with tempfile.TemporaryDirectory() as folder:
        for weights, name in EXPERT_FORMATS.items():
            rows = {}
            for tokens in EXPERT_TOKENS:
                context, times = expert_times(program, pathlib.Path(folder, "run.json"), weights,
                                              tokens)
                if "ggml" not in times:
                    sys.exit(f"compare.py: {program} was built without ggml")
                isa = next(isa for isa in context["isas"].split() if isa in times)
                for threads, suffix in ((1, ""), (2, ":2")):
                    if isa + suffix not in times:
                        continue
                    ours, theirs = times[isa + suffix], times["ggml" + suffix]
                    ratios = [theirs[i] / ours[i] for i in ours]
                    rows.setdefault(threads, []).append(
                        (statistics.median(ratios), statistics.median(ours.values()) / 1e6,
                         middle_half(ratios)))
            if is_first:
                is_first = False
                print(f"\n{context['cpu_model']}{cpu_class()} ({isa}), load average "
                      f"{context['load_avg'][0]:.1f}, ggml {context['ggml']}: the experts of a layer, "
                      "from ids\nto the sum; ggml's time, with weights as llama.cpp loads them, "
                      "over ours\n")
                print("| experts' weights | threads |",
                      " | ".join(f"T = {tokens}" for tokens in EXPERT_TOKENS), "|")
                print("|---|---|" + "---|" * len(EXPERT_TOKENS))
            for threads, cells in rows.items():
                is_noisy |= row(name, str(threads), cells)
    return is_noisy


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("moe_layer", nargs="?")
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--torch")
    parser.add_argument("--ggml", nargs="+")
    parser.add_argument("--experts")
    arguments = parser.parse_args()
    if not arguments.load and arguments.moe_layer is None and arguments.experts is None:
        parser.error("one of these is required: moe_layer, --experts")
    load = Load()
    time.sleep(1)
    at_start = load_text("at the start", load.shares())
    if arguments.load:
        print(at_start, end="\n" * bool(at_start))
        return
    load = Load()
    is_noisy = arguments.moe_layer is not None and plain_loops(arguments.moe_layer)
    if arguments.torch:
        is_noisy |= torch(arguments.torch)
    if arguments.ggml:
        is_noisy |= ggml(*arguments.ggml)
    if arguments.experts:
        is_noisy |= experts(arguments.experts)
    if is_noisy:
        print("\n?: no difference is shown, because the ratios of single rounds lie further apart "
              "(the\nmiddle half of them) than the cell lies from 1.")
    text = load_text("while this measured", load.shares()) or at_start
    if text:
        print(f"\n{text}")


if __name__ == "__main__":
    main()
