# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Times llama.cpp with and without the plug-in, in turns in one process.

measure.py LIBGGML_SWITCHYARD.SO MODEL.gguf [TOKENS,TOKENS.. [SECONDS [TURNS]]]

Starts TURNS processes that measure for SECONDS each. Prints a table with a line for each number
of TOKENS: median times in ms, the median ratio, the smallest and the largest median ratio of one
process, and the interquartile range of the rounds' ratios. If this range is wider than the ratio's
distance from 1, the ratio shows no difference.

In the environment:
  CPU_TIME  measures the process's CPU time instead of wall time. On a busy machine this is
            closer to the amount of work.
  THREADS   the number of threads
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys


def run(plugin, model, sizes, seconds):
    variables = dict(os.environ)
    variables.pop("GGML_BACKEND_PATH", None)
    script = pathlib.Path(__file__).with_name("run_model.py")
    done = subprocess.run(
        [sys.executable, script, model, "bench", plugin, seconds, *sizes],
        env=variables, stdout=subprocess.PIPE, check=True)
    clock = 1 if os.environ.get("CPU_TIME") else 0
    return {int(size): [(stock[clock], ours[clock]) for stock, ours in pairs]
            for size, pairs in json.loads(done.stdout).items()}


def ratio(pairs):
    return statistics.median(stock / ours for stock, ours in pairs)


def middle_half(pairs):
    ratios = sorted(stock / ours for stock, ours in pairs)
    quarter = (len(ratios) - 1) // 4
    return f"{ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}"


def main():
    if not 3 <= len(sys.argv) <= 6:
        sys.exit(__doc__)
    plugin, model = sys.argv[1:3]
    sizes, seconds, turns = sys.argv[3:] + ["1,32,64,128,512", "5", "3"][len(sys.argv) - 3:]
    runs = [run(plugin, model, sizes.split(","), seconds) for _ in range(int(turns))]
    print("| tokens | stock ms | plug-in ms | ratio | least | largest "
          "| of single rounds |\n|---|---|---|---|---|---|---|")
    for size in runs[0]:
        pairs = [pair for turn in runs for pair in turn[size]]
        stock, ours = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        each = [ratio(turn[size]) for turn in runs]
        print(f"| {size} | {stock:.1f} | {ours:.1f} | {ratio(pairs):.2f} | "
              f"{min(each):.2f} | {max(each):.2f} | {middle_half(pairs)} |")


if __name__ == "__main__":
    main()
