#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/compare.py with invented samples: programs that print times without measuring, and
a /proc/stat that shows how much of the machine other processes use."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

COMPARE = pathlib.Path(__file__).resolve().parent.parent / "bench" / "compare.py"
sys.path.insert(0, str(COMPARE.parent))
import compare  # pylint: disable=wrong-import-position
import spread  # pylint: disable=wrong-import-position

# A fake moe_layer: plain loops take RATIO times the time of the library, and their rounds vary by
# SCATTER.
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
# Tables like those of moe_block.py and measure.py, for 1, 32 and 512 tokens. In the row for 1
# token, the ratios of single rounds lie on both sides of 1.
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
# A fake switchyard_bench: on one thread, ggml takes RATIO times the time of our AVX2 kernel, and
# oneDNN half that time. ggml's rounds vary by SCATTER on one thread; nothing else varies.
BENCH = """#!{python}
import json, random, sys
draw = random.Random(1)
words = dict(word.split("=", 1) for word in sys.argv[1:])
shape = words["--benchmark_filter"].strip("^/")
entries = []
for name, ns, scatter in (("SSE4", 9e9, 0), ("AVX2", 2e6, 0), ("ggml", 2e6 * {ratio}, {scatter}),
                          ("AVX2:2", 1e6, 0), ("ggml:2", 3e6, 0),
                          ("onednn", 1e6, 0)):
    for i in range(int(words["--benchmark_repetitions"])):
        entries.append({{"name": f"{{shape}}/{{name}}", "run_type": "iteration", "repetition_index": i,
                        "real_time": ns * (1 + draw.uniform(-scatter, scatter)), "time_unit": "ns"}})
    entries.append({{"name": f"{{shape}}/{{name}}", "run_type": "aggregate", "real_time": 1}})
if {without_ggml}:
    entries = [entry for entry in entries if "ggml" not in entry["name"]]
json.dump({{"context": {{"cpu_model": "A CPU", "isas": "AVX2 SSE4", "ggml": "1.2.3 abc",
                       "onednn": "2.6.3"}}, "benchmarks": entries}},
          open(words["--benchmark_out"], "w"))
"""


class Noise(unittest.TestCase):
    def test_middle_half(self):
        self.assertEqual(spread.middle_half([3, 1, 2, 5, 4]), (2, 4))
        self.assertEqual(spread.middle_half([2, 1]), (1, 2))
        self.assertEqual(spread.middle_half([1.5]), (1.5, 1.5))

    def test_rounds_that_scatter_by_more_than_their_effect(self):
        draw = random.Random(1)
        for effect, scatter, is_noise in ((1.01, 0.001, False), (1.01, 0.03, True),
                                          (2.24, 0.1, False), (2.24, 1.5, True),
                                          (0.93, 0.01, False), (0.93, 0.2, True)):
            ratios = [effect + draw.gauss(0, scatter) for _ in range(61)]
            self.assertEqual(spread.is_noise(effect, spread.middle_half(ratios)), is_noise,
                             (effect, scatter))

    def test_one_outlier_is_no_scatter(self):
        self.assertFalse(spread.is_noise(1.1, spread.middle_half([1.1] * 14 + [9])))


class Load(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stat = pathlib.Path(folder.name, "stat")

    def shares(self, **ticks):
        """Returns the shares that a spread.Load measures while /proc/stat grows by `ticks`."""
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        self.stat.write_text("cpu  " + " ".join(["100"] * 8) + " 0 0\ncpu0 1\n")
        load = spread.Load(self.stat)
        self.stat.write_text("cpu  " + " ".join(str(100 + ticks.get(n, 0)) for n in names) + " 0 0\n")
        return load.shares()

    def test_others_and_the_host(self):
        others, stolen = self.shares(user=3000, system=1000, idle=5000, steal=1000)
        self.assertAlmostEqual(others, 0.4, 2)
        self.assertEqual(stolen, 0.1)
        text = spread.load_text("at the start", (others, stolen))
        self.assertIn("This machine is loaded: at the start, other programs used 40% of its ", text)
        self.assertIn(f"{os.cpu_count()} CPUs", text)
        self.assertIn("the host took 10%", text)

    def test_own_time_is_no_load(self):
        self.stat.write_text("cpu  0 0 0 0 0 0 0 0\n")
        load = spread.Load(self.stat)
        while sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK") < load.begin[3] + 6:
            pass
        self.stat.write_text("cpu  5 0 0 95 0 0 0 0\n")
        self.assertEqual(spread.load_text("now", load.shares()), "")

    def test_quiet_and_unknown(self):
        self.assertEqual(spread.load_text("now", self.shares(user=20, idle=980)), "")
        self.assertEqual(spread.Load("/nowhere").shares(), (0, 0))


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

    def run_compare(self, *arguments):
        return subprocess.run([sys.executable, "-B", str(COMPARE), *map(str, arguments)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              check=False)

    def lines(self, ratio, scatter, *more):
        done = self.run_compare(self.program("moe_layer", MOE_LAYER, ratio=ratio, scatter=scatter),
                                *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_marks_what_scatters(self):
        lines = self.lines(1.3, 0.9)
        cells = [line for line in lines if line.startswith("| plain loops")]
        self.assertEqual(len(cells), 2)
        self.assertEqual([(line.count("~ ["), line.count("] (10)")) for line in cells],
                         [(3, 3)] * 2, lines)
        self.assertNotIn("1.3 ", "".join(cells))
        self.assertIn(spread.NO_RESULT_TEXT, lines)

    def test_leaves_what_does_not(self):
        lines = self.lines(1.3, 0.01)
        self.assertTrue(any(line.startswith("| plain loops | bf16 | 1.30 [1.29, 1.31] (10) |")
                            for line in lines), lines)
        self.assertFalse(any("| ~" in line for line in lines), lines)
        self.assertTrue(any(re.fullmatch(
            r"While this measured \(one run\), other programs used \d+% of \d+ CPUs, and the host "
            r"took \d+%, load average [0-9.]+\.", line) for line in lines), lines)

    def test_other_programs_have_their_own_rounds(self):
        lines = self.lines(1.3, 0.01, "--torch", self.program("torch", TORCH), "--ggml",
                           self.program("ggml", GGML), "plugin.so", "q4_0.gguf")
        self.assertIn("| transformers' experts | bf16 | ~ [0.90, 1.70] (7) | 1.30 [1.29, 1.31] (8) |"
                      " 0.90 [0.88, 0.93] (9) |", lines)
        self.assertIn("| llama.cpp, four layers | q4_0 | ~ [0.99, 1.01] (9) | 1.12 [1.11, 1.13] (8) |"
                      " 2.00 [1.95, 2.05] (9) |", lines)

    def test_repeat_takes_the_median_of_runs(self):
        # A run starts six processes. Each process adds a letter to a file. From the file's size, a
        # process computes the number of its run, which selects the ratio.
        counter = self.folder / "count"
        text = MOE_LAYER.replace("draw = random", f"""
import os, pathlib
counter = pathlib.Path("{counter}")
run = counter.stat().st_size // 6 if counter.exists() else 0
counter.open("a").write("x")
draw = random""").replace("{ratio}", "{ratios}[run]").replace("{{ratios}}", "{ratios}")
        for ratios, cell in (([2.24, 1.08, 0.9], "~ [0.90, 2.24] (10)"),
                             ([1.1, 1.1, 9, 1.12, 1.08], "1.10 [1.10, 1.12] (10)")):
            counter.unlink(missing_ok=True)
            path = self.folder / "out.json"
            done = self.run_compare(self.program("moe_layer", text, ratios=ratios, scatter=0),
                                    "--repeat", len(ratios), "--json", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"| plain loops | f32 | {cell} | {cell} | {cell} |", done.stdout)
            self.assertIn(f"While this measured ({len(ratios)} runs)", done.stdout)
            self.assertEqual(counter.stat().st_size, 6 * len(ratios))
            out = json.loads(path.read_text())
            self.assertEqual(out["runs"], len(ratios))
            table, = out["tables"]
            self.assertEqual((table["columns"], table["rows"][1]["labels"]),
                             ([1, 32, 512], ["plain loops", "f32"]))
            self.assertEqual(table["rows"][1]["cells"][0]["is_noise"], cell.startswith("~"))

    def test_two_runs_that_agree_by_luck(self):
        table = compare.Table("a", ["b"], "T", [1])
        table.add(("c",), 1, 1.04, 2.0, (0.9, 1.1))
        table.add(("c",), 1, 1.05, 4.0, (1.0, 1.2))
        self.assertEqual(table.cell(("c",), 1), (1.045, 3.0, (0.9, 1.2)))
        table.add(("c",), 1, 1.06, 3.0, (0.5, 9))
        self.assertEqual(table.cell(("c",), 1), (1.05, 3.0, (1.04, 1.06)))

    def test_wrong_arguments_and_failing_programs_are_a_line(self):
        for code, line, *arguments in (
                (2, "one of these is required: moe_layer, --experts"),
                (2, "argument --repeat: not a whole number above 0: '0'", "a", "--repeat", "0"),
                (1, "/none: No such file or directory", "/none"),
                (1, f"{self.program('exit', '#!/bin/sh{nl}exit 3{nl}', nl=chr(10))}: exit code 3",
                 self.folder / "exit")):
            done = self.run_compare(*arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), line)
            self.assertEqual(done.stderr.splitlines()[-1], f"compare.py: {line}")

    def experts(self, scatter, without_ggml=False):
        return self.run_compare("--experts", self.program(
            "bench", BENCH, ratio=1.3, scatter=scatter, without_ggml=without_ggml))

    def test_experts_beside_ggml_and_products_beside_onednn(self):
        done = self.experts(0.01)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[1].startswith("A CPU") and "(AVX2), ggml 1.2.3 abc" in lines[1], lines)
        rows = [line for line in lines if line.startswith("| ")]
        self.assertEqual(rows[0], "| experts' weights | threads | T = 1 | T = 4 | T = 32 | T = 512 |")
        self.assertEqual([row.split(" | ")[0] for row in rows[1:10:2]],
                         ["| q4_0", "| q4_K", "| q8_0", "| mxfp4", "| int8 beside ggml's q8_0"])
        self.assertIn("| q4_0 | 1 | 1.30 [1.29, 1.31] (2) |", rows[1])
        self.assertEqual(rows[2], "| q4_0 | 2 |" + " 3.00 [3.00, 3.00] (1) |" * 4)
        self.assertEqual(rows[11:], ["| weights | rows = 1 | rows = 4 | rows = 32 | rows = 128 |",
                                     "| int8 beside oneDNN |" + " 0.50 [0.50, 0.50] (2) |" * 4])
        self.assertNotIn("| ~", done.stdout)

    def test_experts_that_scatter(self):
        done = self.experts(0.9)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("| ~ ["), 20)

    def test_a_bench_without_ggml(self):
        done = self.experts(0.01, without_ggml=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("was built without ggml", done.stderr)


if __name__ == "__main__":
    unittest.main()
