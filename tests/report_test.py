#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/report.py with hand-written files in Google Benchmark's format."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPORT = pathlib.Path(__file__).resolve().parent.parent / "bench" / "report.py"


def bench(name, *times, units=1.0, label="row; a model", **more):
    """The entries of a benchmark, one per repetition."""
    return [{"name": name + "/repeats:2/real_time", "run_type": "iteration", "real_time": time,
             "time_unit": "ns", "units": units, "label": label, **more} for time in times]


def document(*benchmarks, **context):
    return {"context": {"cpu_model": "A CPU", "data_caches": "L1 48K", "isas": "AVX3_DL AVX2",
                        "compiler": "GNU 12", "highway": "1.0.3", "tbb": "none",
                        "onednn": "2.6.3", "ggml": "none", **context},
            "benchmarks": [entry for b in benchmarks for entry in b]}


FIRST = document(
    bench("activate/8x768/AVX3_DL", 100, 300, 110), bench("activate/8x768/AVX2", 150),
    bench("activate/8x768/plain", 220), bench("activate/8x768/ggml", 200),
    bench("activate/8x768/probe", 50), bench("activate/8x768/probe:nt", 60),
    bench("activate/8x768/AVX3_DL@bf16-i8", 121),
    bench("activate/8x768/AVX3_DL", 1, run_type="aggregate"),
    bench("bucket_packed/E=8/k=2/T=512/uniform/AVX3_DL", 8.0, units=10.0, label="pair; m"),
    bench("device/empty/device", 0.05, time_unit="us", label="dispatch; "))
SECOND = document(bench("activate/8x768/AVX3_DL", 220), bench("activate/8x768/ggml", 200),
                  bench("activate/8x768/probe", 50))


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_report(self, *documents, stdout=subprocess.PIPE):
        for i, content in enumerate(documents):
            text = content if isinstance(content, str) else json.dumps(content)
            (self.folder / f"{i}.json").write_text(text, encoding="utf-8")
        names = [f"{i}.json" for i in range(len(documents))]
        return subprocess.run([sys.executable, "-B", str(REPORT), *names], stdout=stdout,
                              stderr=subprocess.PIPE, encoding="utf-8", check=False,
                              cwd=self.folder)

    def lines(self, *documents):
        done = self.run_report(*documents)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_matrix_has_isas_fastest_peer_and_probe(self):
        lines = self.lines(FIRST)
        self.assertIn("# A CPU, L1 48K", lines)
        at = lines.index("## activate: ns a row")
        self.assertEqual(lines[at + 2], "| shape | AVX3_DL | AVX2 | fastest peer | ours / peer | "
                         "fastest probe | ours / probe |")
        self.assertEqual(lines[at + 4], "| 8x768 | 110 | 150 | ggml, 200 | 0.55 | probe, 50 | 2.2 |")
        self.assertEqual(lines[at + 5], "| 8x768@bf16-i8 | 121 |  |  |  |  |  |")
        self.assertIn("| E=8/k=2/T=512/uniform | 0.8 |  |  |  |  |", lines)
        at = lines.index("## device: ns a dispatch")
        self.assertEqual(lines[at + 4], "| empty | 50 |  |  |  |  |")

    def test_ratios_are_of_one_process_and_show_their_spread(self):
        lines = self.lines(FIRST, SECOND)
        self.assertTrue(any(line.startswith("| 8x768 | 165 | 150 | ggml, 200 | "
                                            "0.825 [0.55, 1.1] | probe, 50 | ") for line in lines),
                        lines)

    def test_wrong_input_is_a_line_and_exit_code_2(self):
        failed = document(bench("a/b/AVX2", 1, error_occurred=True, error_message="wrong\nbits"))
        for documents, want in (
                ([], "the following arguments are required: FILE"),
                (["{"], "0.json: not what switchyard_bench wrote"),
                (["[]"], "0.json: not what switchyard_bench wrote"),
                (['{"context": {}, "benchmarks": []}'], "0.json: not what switchyard_bench wrote"),
                ([document()], "0.json: nothing was timed, or only aggregates were kept"),
                ([document(bench("name", 1))], "0.json: not what switchyard_bench wrote"),
                ([document(bench("a/b/AVX2", 1, units=0))], "0.json: not what switchyard_bench wrote"),
                ([failed], "0.json: a/b/AVX2: wrong bits"),
                ([FIRST, document(bench("a/b/AVX2", 1), cpu_model="B")],
                 "1.json: not of the machine and build of 0.json")):
            with self.subTest(want):
                done = self.run_report(*documents)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, f"report.py: {want}\n")
        missing = subprocess.run([sys.executable, "-B", str(REPORT), "none.json"], check=False,
                                 capture_output=True, encoding="utf-8", cwd=self.folder)
        self.assertEqual((missing.returncode, missing.stderr),
                         (2, "report.py: none.json: No such file or directory\n"))

    def test_lost_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.run_report(FIRST, stdout=full)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "report.py: standard output: No space left on device\n"))


if __name__ == "__main__":
    unittest.main()
