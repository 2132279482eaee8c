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
sys.path.insert(0, str(REPORT.parent))
import spread  # pylint: disable=wrong-import-position


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

    def run_report(self, *documents, stdout=subprocess.PIPE, more=()):
        for i, content in enumerate(documents):
            text = content if isinstance(content, str) else json.dumps(content)
            (self.folder / f"{i}.json").write_text(text, encoding="utf-8")
        names = [f"{i}.json" for i in range(len(documents))]
        return subprocess.run([sys.executable, "-B", str(REPORT), *names, *more], stdout=stdout,
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
        # With a single process, the ratios of its repetitions give the spread: [100/200, 300/200].
        self.assertEqual(lines[at + 4], "| 8x768 | 110 ±91% | 150 ±0% | ggml, 200 ±0% | ~ [0.5, 1.5]"
                         " | probe, 50 ±0% | ~ [2, 6] |")
        self.assertEqual(lines[at + 5], "| 8x768@bf16-i8 | 121 ±0% |  |  |  |  |  |")
        self.assertIn("| E=8/k=2/T=512/uniform | 0.8 ±0% |  |  |  |  |", lines)
        at = lines.index("## device: ns a dispatch")
        self.assertEqual(lines[at + 4], "| empty | 50 ±0% |  |  |  |  |")
        self.assertEqual(lines[-1], spread.NO_RESULT_TEXT)

    def test_ratios_are_of_one_process_and_show_their_spread(self):
        lines = self.lines(FIRST, SECOND)
        self.assertTrue(any(line.startswith("| 8x768 | 165 ±61% | 150 ±0% | ggml, 200 ±0% | "
                                            "~ [0.5, 1.5] | probe, 50 ±0% | ~ [2, 6] |")
                            for line in lines), lines)

    def processes(self, *times):
        """Reports one process for each of `times`, while ggml takes 100. Returns the line of the shape."""
        return self.lines(*(document(bench("activate/a/AVX2", time), bench("activate/a/ggml", 100))
                            for time in times))[-3]

    def test_an_effect_within_the_spread_is_no_result(self):
        self.assertIn(" ~ [0.9, 1.05] ", self.processes(90, 98, 105))
        self.assertIn(" 0.98 [0.975, 0.985] ", self.processes(97.5, 98, 98.5))
        self.assertIn(" 2.24 [2.1, 2.3] ", self.processes(210, 224, 230))
        self.assertIn(" ~ [0.5, 2.3] ", self.processes(50, 224, 230))

    def test_one_slow_process_of_seven_is_no_spread(self):
        self.assertIn(" 90 ±1% | ggml, 100 ±0% | 0.9 [0.89, 0.91] ",
                      self.processes(90, 91, 89, 90, 180, 91, 89))

    def test_the_load_of_the_machine(self):
        self.assertFalse(any("load" in line for line in self.lines(FIRST)))
        quiet = self.lines(document(bench("a/b/AVX2", 1), load_avg=[1.04, 9, 9]))
        self.assertIn("load average 1.0 [1.0, 1.0]", quiet)
        self.assertFalse(any("loaded" in line for line in quiet), quiet)
        busy = self.lines(*(document(bench("a/b/AVX2", 1), load_avg=[load]) for load in (1, 6, 7)))
        self.assertIn("load average 6.0 [1.0, 7.0]", busy)
        self.assertTrue(any(line.startswith("This machine is loaded") for line in busy), busy)

    def test_json_has_the_times_by_process(self):
        self.run_report(FIRST, SECOND, more=["--json", "out.json", "--command", "a command"])
        out = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertEqual((out["command"], out["machine"]["cpu_model"], out["isas"]),
                         ("a command", "A CPU", ["AVX3_DL", "AVX2"]))
        row = out["rows"][0]
        self.assertEqual((row["kernel"], row["shape"]), ("activate", "8x768"))
        self.assertEqual((row["ns"]["AVX3_DL"], row["ns"]["AVX2"]), ([110, 220], [150, None]))
        done = self.run_report(FIRST, more=["--json", "none/out.json"])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (
            2, "", "report.py: --json: none/out.json: No such file or directory\n"))

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
