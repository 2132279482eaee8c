#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/compare.py with invented samples: programs that print times without measuring, and
a /proc/stat that shows how much of the machine other processes use."""

import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

COMPARE = pathlib.Path(__file__).resolve().parent.parent / "bench" / "compare.py"
spec = importlib.util.spec_from_file_location("compare", COMPARE)
compare = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compare)

# A fake moe_layer: plain loops take RATIO times as long, and rounds vary by SCATTER.
MOE_LAYER = """#!{python}
import json, random, sys
draw = random.Random(1)
words = dict(zip(sys.argv[1:], sys.argv[2:]))
ours = [0.01] * int(words["--repeat"])
plain = [0.01 * {ratio} * (1 + draw.uniform(-{scatter}, {scatter})) for _ in ours]
middle = lambda values: sorted(values)[(len(values) - 1) // 2]
json.dump({{"seconds": middle(ours), "plain_loops_seconds": middle(plain), "round_seconds": ours,
           "plain_loops_round_seconds": plain, "isa": "AVX2", "threads": 2,
           "context": {{"cpu_model": "A CPU", "compiler": "GNU 12", "onednn": "2.6.3"}}}},
          open(words["--json"], "w"))
"""
# Tables like those of moe_block.py and measure.py, for 1, 32 and 512 tokens. The row for 1 token is
# noise.
TORCH = """#!{python}
print("torch\\n\\n| shape | tokens | switchyard, ms | eager, ms | best rival / ours | of single rounds |")
print("| --- | --- | --- | --- | --- | --- |")
print("| qwen3 | 1 | 7.000 | 9.100 | 1.30 | 0.900 to 1.700 |")
print("| qwen3 | 32 | 8.000 | 10.400 | 1.30 | 1.290 to 1.310 |")
print("| qwen3 | 512 | 9.000 | 9.000 | 0.90 | 0.880 to 0.930 |")
"""
GGML = """#!{python}
print("| tokens | stock ms | plug-in ms | ratio | least | largest | of single rounds |")
print("|---|---|---|---|---|---|---|")
print("| 1 | 9.0 | 9.0 | 1.00 | 0.99 | 1.01 | 0.990 to 1.010 |")
print("| 32 | 9.0 | 8.0 | 1.12 | 1.10 | 1.13 | 1.110 to 1.130 |")
print("| 512 | 18.0 | 9.0 | 2.00 | 1.90 | 2.10 | 1.950 to 2.050 |")
"""
# A fake switchyard_bench: ggml takes RATIO times as long. Rounds vary by SCATTER on one thread, and
# not at all on two.
BENCH = """#!{python}
import json, random, sys
draw = random.Random(1)
words = dict(word.split("=", 1) for word in sys.argv[1:])
shape = words["--benchmark_filter"].strip("^/")
entries = []
for name, ns, scatter in (("SSE4", 9e9, 0), ("AVX2", 2e6, 0), ("ggml", 2e6 * {ratio}, {scatter}),
                          ("AVX2:2", 1e6, 0), ("ggml:2", 3e6, 0)):
    for i in range(int(words["--benchmark_repetitions"])):
        entries.append({{"name": f"{{shape}}/{{name}}", "run_type": "iteration", "repetition_index": i,
                        "real_time": ns * (1 + draw.uniform(-scatter, scatter)), "time_unit": "ns"}})
    entries.append({{"name": f"{{shape}}/{{name}}", "run_type": "aggregate", "real_time": 1}})
if {without_ggml}:
    entries = [entry for entry in entries if "ggml" not in entry["name"]]
json.dump({{"context": {{"cpu_model": "A CPU", "isas": "AVX2 SSE4", "ggml": "1.2.3 abc",
                       "load_avg": [0.25]}}, "benchmarks": entries}},
          open(words["--benchmark_out"], "w"))
"""


class Noise(unittest.TestCase):
    def test_middle_half(self):
        self.assertEqual(compare.middle_half([3, 1, 2, 5, 4]), (2, 4))
        self.assertEqual(compare.middle_half([2, 1]), (1, 2))
        self.assertEqual(compare.middle_half([1.5]), (1.5, 1.5))

    def test_rounds_that_scatter_by_more_than_their_effect(self):
        draw = random.Random(1)
        for effect, scatter, is_noise in ((1.01, 0.001, False), (1.01, 0.03, True),
                                          (2.24, 0.1, False), (2.24, 1.5, True),
                                          (0.93, 0.01, False), (0.93, 0.2, True)):
            ratios = [effect + draw.gauss(0, scatter) for _ in range(61)]
            self.assertEqual(compare.is_noise(effect, compare.middle_half(ratios)), is_noise,
                             (effect, scatter))

    def test_one_outlier_is_no_scatter(self):
        self.assertFalse(compare.is_noise(1.1, compare.middle_half([1.1] * 14 + [9])))


class Load(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stat = pathlib.Path(folder.name, "stat")

    def shares(self, **ticks):
        """The shares that a Load measures if /proc/stat grows by `ticks` during it."""
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        self.stat.write_text("cpu  " + " ".join(["100"] * 8) + " 0 0\ncpu0 1\n")
        load = compare.Load(self.stat)
        self.stat.write_text("cpu  " + " ".join(str(100 + ticks.get(n, 0)) for n in names) + " 0 0\n")
        return load.shares()

    def test_others_and_the_host(self):
        others, stolen = self.shares(user=3000, system=1000, idle=5000, steal=1000)
        self.assertAlmostEqual(others, 0.4, 2)
        self.assertEqual(stolen, 0.1)
        text = compare.load_text("at the start", (others, stolen))
        self.assertIn("This machine is loaded: at the start, other programs used 40% of its ", text)
        self.assertIn(f"{os.cpu_count()} CPUs", text)
        self.assertIn("the host took 10%", text)

    def test_own_time_is_no_load(self):
        self.stat.write_text("cpu  0 0 0 0 0 0 0 0\n")
        load = compare.Load(self.stat)
        while sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK") < load.begin[3] + 6:
            pass
        self.stat.write_text("cpu  5 0 0 95 0 0 0 0\n")
        self.assertEqual(compare.load_text("now", load.shares()), "")

    def test_quiet_and_unknown(self):
        self.assertEqual(compare.load_text("now", self.shares(user=20, idle=980)), "")
        self.assertEqual(compare.Load("/nowhere").shares(), (0, 0))


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, text, **values):
        path = self.folder / name
        path.write_text(text.format(python=sys.executable, **values))
        path.chmod(0o755)
        return str(path)

    def lines(self, ratio, scatter, *more):
        done = subprocess.run(
            [sys.executable, "-B", str(COMPARE),
             self.program("moe_layer", MOE_LAYER, ratio=ratio, scatter=scatter), *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_marks_what_scatters(self):
        lines = self.lines(1.3, 0.9)
        cells = [line for line in lines if line.startswith("| plain loops")]
        self.assertEqual(len(cells), 2)
        self.assertEqual([line.count("? (10.0)") for line in cells], [3, 3], lines)
        self.assertTrue(any(line.startswith("?: no difference is shown") for line in lines), lines)

    def test_leaves_what_does_not(self):
        lines = self.lines(1.3, 0.01)
        self.assertTrue(any(line.startswith("| plain loops | bf16 | 1.30 (10.0) |")
                            for line in lines), lines)
        self.assertFalse(any("?" in line for line in lines), lines)

    def test_other_programs_have_their_own_rounds(self):
        lines = self.lines(1.3, 0.01, "--torch", self.program("torch", TORCH), "--ggml",
                           self.program("ggml", GGML), "plugin.so", "q4_0.gguf")
        self.assertIn("| transformers' experts | bf16 | 1.30? (7.0) | 1.30 (8.0) | 0.90 (9.0) |", lines)
        self.assertIn("| llama.cpp, four layers | q4_0 | 1.00? (9.0) | 1.12 (8.0) | 2.00 (9.0) |", lines)

    def experts(self, scatter, without_ggml=False):
        return subprocess.run(
            [sys.executable, "-B", str(COMPARE), "--experts",
             self.program("bench", BENCH, ratio=1.3, scatter=scatter, without_ggml=without_ggml)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=False)

    def test_experts_beside_ggml(self):
        done = self.experts(0.01)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[1].startswith("A CPU") and
                        "(AVX2), load average 0.2, ggml 1.2.3 abc" in lines[1], lines)
        rows = [line for line in lines if line.startswith("| ")]
        self.assertEqual(rows[0], "| experts' weights | threads | T = 1 | T = 4 | T = 32 | T = 512 |")
        self.assertEqual([row.split(" | ")[0] for row in rows[1::2]],
                         ["| q4_0", "| q4_K", "| q8_0", "| mxfp4", "| int8 beside ggml's q8_0"])
        self.assertIn("| q4_0 | 1 | 1.30 (2.0) |", rows[1])
        self.assertEqual(rows[2], "| q4_0 | 2 |" + " 3.00 (1.0) |" * 4)
        self.assertNotIn("?", done.stdout)

    def test_experts_that_scatter(self):
        done = self.experts(0.9)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("? (2.0)"), 20)
        self.assertIn("?: no difference is shown", done.stdout)

    def test_a_bench_without_ggml(self):
        done = self.experts(0.01, without_ggml=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("was built without ggml", done.stderr)


if __name__ == "__main__":
    unittest.main()
