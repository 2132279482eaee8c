#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/plots.py with invented figures and a program that prints a plan. Without matplotlib,
only tests that wrong input is refused."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PLOTS = pathlib.Path(__file__).resolve().parent.parent / "bench" / "plots.py"
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None

BENCH = {"command": "setup.sh bench -x=$a|b$", "isas": ["AVX2", "SSE4"], "load_averages": [1.0, 1.2],
         "machine": {"cpu_model": "A CPU", "data_caches": "L1 48K", "compiler": "GNU 12"},
         "rows": [{"kernel": "gather", "shape": "T=64/H=2048", "ns": {
             "AVX2": [10, 10.1, 10.2], "SSE4": [20, None, 20], "probe": [9, 9, 9],
             "probe:streaming": [8, 8, 8], "plain": [1, 1, 1]}}]}


def cell(ratio, half, is_noise=False):
    return {"ratio": ratio, "ms": 1.0, "spread": half, "is_noise": is_noise}


COMPARE = {"command": "setup.sh compare -y", "load": "Nothing else ran.", "tables": [
    {"name": "experts", "title": "B CPU", "count": "T", "columns": [1, 4],
     "labels": ["experts' weights", "threads"], "rows": [
         {"labels": ["q4_0", "1"], "cells": [cell(9, [9, 9]), None]},
         {"labels": ["q4_0", "2"], "cells": [cell(1.1, [1.09, 1.11]), cell(1.2, [0.9, 2], True)]}]},
    {"name": "products", "title": "C CPU", "count": "rows", "columns": [1, 4],
     "labels": ["weights"], "rows": [{"labels": ["int8 beside oneDNN"], "cells": [
         cell(2, [1.9, 2.1]), cell(0.5, None)]}]}]}
PLAN = """#!/bin/sh
echo "workers  tasks   ideal us    plan us  ratio   tiles us  ratio"
for workers in 2 4 8 16 32 64 128; do echo "$workers 9 1.0 1.1 1.10 1.5 1.50"; done
"""


def texts_of(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


class Plots(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.chmod(0o755)
        return name

    def run_plots(self, *arguments, **variables):
        return subprocess.run([sys.executable, "-B", str(PLOTS), *arguments], check=False,
                              capture_output=True, encoding="utf-8", cwd=self.folder,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), **variables})

    def draw(self, bench, compare):
        """Draws all plots, and returns their SVG texts by the names of the files."""
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        done = self.run_plots("out", "--bench", self.write("b", bench), "--compare",
                              self.write("c", compare), "--swy", "./" + self.write("swy", PLAN))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "out/kernels.svg\nout/experts.svg\nout/plan.svg\n")
        self.assertEqual(sorted(path.name for path in out.iterdir()),
                         ["experts.svg", "kernels.svg", "plan.svg"])
        return {path.stem: path.read_text() for path in out.iterdir()}

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib")
    def test_draws_the_same_bytes_with_machine_and_command(self):
        first = self.draw(BENCH, COMPARE)
        self.assertEqual(first, self.draw(BENCH, COMPARE))
        for name, texts in {
                "kernels": ("A CPU", "L1 48K", "load average 1.1", "setup.sh bench -x=$a|b$", "AVX2",
                            "SSE4", "GatherRows, 64 x 2048"),
                "experts": ("B CPU", "C CPU", "Nothing else ran.", "setup.sh compare -y", "q4_0",
                            "tokens (2 threads)", "int8"),
                "plan": ("swy plan --workers 2 4 8 16 32 64 128", "1 token", "128")}.items():
            shown = " ".join(texts_of(first[name]))
            for text in texts:
                self.assertIn(text, shown, name)
            self.assertNotRegex(first[name], r"<dc:date>|20\d\d-\d\d-\d\d")
        # Without the fastest probe, another probe is the bound. A ratio without a result is drawn
        # as a hollow marker.
        row = json.loads(json.dumps(BENCH["rows"][0]))
        del row["ns"]["probe:streaming"]
        quiet = json.loads(json.dumps(COMPARE))
        quiet["tables"][0]["rows"][1]["cells"][1] = cell(1.2, [1.19, 1.21])
        other = self.draw({**BENCH, "rows": [row]}, quiet)
        self.assertNotEqual(first["kernels"], other["kernels"])
        self.assertEqual(first["plan"], other["plan"])
        hollow = lambda text: len(re.findall(r"fill: #ffffff; stroke: #(?!000000)", text))
        self.assertEqual(hollow(first["experts"]) - hollow(other["experts"]), 1)

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib")
    def test_the_recorded_plots_are_drawn_from_the_recorded_figures(self):
        recorded = PLOTS.parent.parent / "docs" / "plots"
        done = self.run_plots(".", "--bench", str(recorded / "kernels.json"), "--compare",
                              str(recorded / "experts.json"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # Versions of matplotlib differ in layout by less than three points.
        for name in ("kernels.svg", "experts.svg"):
            drawn, there = ((folder / name).read_text() for folder in (self.folder, recorded))
            self.assertEqual(texts_of(drawn), texts_of(there))
            points = [[float(number) for place in re.findall(r'<use [^>]*x="([^"]*)" y="([^"]*)"', svg)
                       for number in place] for svg in (drawn, there)]
            self.assertEqual(len(points[0]), len(points[1]))
            self.assertGreater(len(points[0]), 50)
            self.assertLess(max(abs(a - b) for a, b in zip(*points)), 3)

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib")
    def test_figures_of_other_benchmarks_are_no_plot(self):
        done = self.run_plots(".", "--bench", self.write("b", {**BENCH, "rows": []}),
                              "--compare", self.write("c", {**COMPARE, "tables": []}))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "No kernels.svg: b has none of its rows\n"
                                      "No experts.svg: c has none of its rows\n")

    def refused(self, code, line, *arguments, **variables):
        done = self.run_plots(*arguments, **variables)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (code, "", f"plots.py: {line}\n"))
        self.assertEqual(list(self.folder.glob("*.svg*")), [])

    def test_wrong_arguments(self):
        self.refused(2, "the following arguments are required: FOLDER")
        self.refused(2, "one of these is required: --bench, --compare, --swy", ".")
        self.refused(2, "none: no folder", "none", "--bench", "b")

    def test_without_matplotlib(self):
        (self.folder / "path").mkdir()
        self.write("path/matplotlib.py", "raise ImportError")
        self.refused(1, "Python has no matplotlib: scripts/setup.sh packages installs it in build/venv",
                     ".", "--bench", self.write("b", BENCH), PYTHONPATH=str(self.folder / "path"))

    @unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib")
    def test_wrong_files(self):
        self.refused(2, "none: No such file or directory", ".", "--bench", "none")
        self.refused(2, "b: not the JSON of report.py or compare.py", ".", "--bench",
                     self.write("b", {**BENCH, "rows": [{}]}))
        self.refused(1, "./swy: exit code 3", ".", "--swy", "./" + self.write("swy", "#!/bin/sh\nexit 3\n"))
        # The first plot could be drawn, but the second one's figures are missing.
        self.refused(2, "c: not the JSON of report.py or compare.py", ".", "--bench",
                     self.write("b", BENCH), "--compare", self.write("c", "[]"))


if __name__ == "__main__":
    unittest.main()
