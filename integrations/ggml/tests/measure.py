# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp with and without the plug-in, in turns.

measure.py LIBGGML_SWITCHYARD.SO MODEL.gguf [PROMPT [GENERATE [TURNS [ROUNDS]]]]

A table of ms, each the median over TURNS processes' medians of ROUNDS rounds:
the prompt of so many tokens in one batch, and each token generated behind it;
with the least and the largest ratio of a turn.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys


def run(plugin, arguments):
    variables = dict(os.environ)
    variables.pop("GGML_BACKEND_PATH", None)
    if plugin:
        variables["GGML_BACKEND_PATH"] = os.path.abspath(plugin)
    script = pathlib.Path(__file__).with_name("run_model.py")
    done = subprocess.run([sys.executable, script, arguments[0], "bench", *arguments[1:]],
                          env=variables, stdout=subprocess.PIPE, check=True)
    return {what: statistics.median(times)
            for what, times in json.loads(done.stdout).items() if times}


def main():
    if not 3 <= len(sys.argv) <= 7:
        sys.exit(__doc__)
    plugin, model = sys.argv[1:3]
    prompt, generate, turns, rounds = sys.argv[3:] + ["512", "16", "3", "3"][len(sys.argv) - 3:]
    arguments = [model, prompt, generate, rounds]
    stock, ours = [], []
    for _ in range(int(turns)):
        stock.append(run(None, arguments))
        ours.append(run(plugin, arguments))
    print("| | stock ms | plug-in ms | ratio | least | largest |\n|---|---|---|---|---|---|")
    for what in stock[0]:
        ratios = sorted(a[what] / b[what] for a, b in zip(stock, ours))
        a, b = (statistics.median(r[what] for r in runs) for runs in (stock, ours))
        print(f"| {what}{prompt if what == 'pp' else ''} | {a:.1f} | {b:.1f} | {a / b:.2f}x | "
              f"{ratios[0]:.2f} | {ratios[-1]:.2f} |")


if __name__ == "__main__":
    main()
