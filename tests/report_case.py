# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of bench/report.py share: hand-written files of Google
Benchmark's, and the program run on them."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))

import report
from reporting import results

SUFFIXES = "/repeats:2/real_time"


def bench(name, *times, units=1.0, size=0.0, label="row; a model", **more):
    """The entries of a benchmark, one per repetition."""
    return [{"name": name + SUFFIXES, "run_type": "iteration",
             "repetition_index": i, "iterations": 10, "real_time": time,
             "cpu_time": time, "time_unit": "ns", "units": units,
             "bytes": size, "label": label, **more}
            for i, time in enumerate(times)]


def document(*benchmarks, **context):
    return {"context": {"date": "2026-11-22T02:00:00+00:00", "num_cpus": 2,
                        "cpu_model": "A <CPU> & more",
                        "data_caches": "L1 48K, L2 2048K, L3 32768K",
                        "isas": "AVX3_DL AVX2 SCALAR", "compiler": "GNU 12",
                        "highway": "1.0.3", "tbb": "none", "onednn": "2.6.3",
                        "ggml": "none", "load_avg": [0.25, 1, 1],
                        **context},
            "benchmarks": [entry for b in benchmarks for entry in b]}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, content, name="a.json"):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else
                        json.dumps(content), encoding="utf-8")
        return str(path)

    def read(self, *documents):
        return results.read([self.file(d, f"{i}.json")
                             for i, d in enumerate(documents)])

    def run_program(self, *arguments, stdout=subprocess.PIPE):
        return subprocess.run(
            [sys.executable, str(BENCH / "report.py"), *arguments],
            stdout=stdout, stderr=subprocess.PIPE, check=False,
            encoding="utf-8", cwd=self.folder)

    def run_report(self, *arguments):
        """The same without a process of its own, which takes longer."""
        out, err = io.StringIO(), io.StringIO()
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), (
                    contextlib.redirect_stderr(err)):
                code = report.main(arguments)
        except SystemExit as end:
            code = end.code
        finally:
            os.chdir(before)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(),
                                           err.getvalue())

    def refused(self, arguments, what):
        before = sorted(os.listdir(self.folder))
        done = self.run_report(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("report.py: "), done.stderr)
        self.assertIn(what, done.stderr)
        self.assertEqual(before, sorted(os.listdir(self.folder)))


SMALL = document(
    bench("activate/8x768/AVX3_DL", 100, size=700),
    bench("activate/8x768/AVX2", 140, 190, size=700),
    bench("activate/8x768/plain", 400, 440, size=700),
    bench("activate/8x768/probe", 90, 90, size=700),
    bench("route/<b>E&'\"|=1/AVX3_DL", 10, label="row; <i>a</i> | model"),
    bench("route/<b>E&'\"|=1/plain", 5, label="row; "),
    bench("device/empty/device", 50, label="dispatch; "))
OTHER = document(
    bench("activate/8x768/AVX3_DL", 100, size=700),
    bench("activate/8x768/plain", 480, size=700),
    bench("activate/8x768/probe", 90, 90, size=700))
