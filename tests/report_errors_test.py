#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""bench/report.py: every error is a line and exit code 2, and nothing is
written."""

import os
import pathlib
import subprocess
import unittest

from report_case import SMALL, Case, bench, document


class Errors(Case):
    def test_as_a_program(self):
        done = self.run_program("none.json")
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (2, "", "report.py: none.json: No such file or directory\n"))

    def test_arguments(self):
        good = self.file(SMALL)
        self.refused([], "FILE")
        self.refused([good, "--frob"], "--frob")
        self.refused([good, "--mark=x"], "--mark=x")
        self.refused([good, "--html"], "--html")
        self.refused([good, "--html", ""], "--html: empty")
        self.refused([good, "--html", "."], "--html .: Is a directory")
        self.refused([good, "--markdown", "no/such/m"],
                     "--markdown no/such/m: No such file or directory")
        # Neither of two if one cannot be.
        self.refused([good, "--markdown", "m", "--html", "no/such/h"],
                     "--html no/such/h: No such file or directory")

    def test_files(self):
        good = self.file(SMALL, "good.json")
        name = "gather/T=1/AVX2"
        cases = (
            ("", "not JSON"),
            ("{", "not JSON"),
            ("[" * 100000, "not JSON"),
            ("[]", "not Google Benchmark's JSON"),
            ('{"context": {}}', "not Google Benchmark's JSON"),
            ({"context": {}, "benchmarks": []}, "context has no cpu_model"),
            (document(isas=" "), "isas are empty"),
            (document(), "nothing was timed"),
            (document(bench(name, 1, run_type="aggregate")),
             "nothing was timed"),
            (document([1]), "a benchmark has no name"),
            (document(bench("gather", 1)), "gather/repeats:2/real_time: not "
             "kernel/shape/contender"),
            (document(bench("gather//AVX2", 1)), "not kernel/shape/contender"),
            (document(bench(name, 1, error_occurred=True,
                            error_message="output 0[1]\nis wrong")),
             "failed: output 0[1] is wrong"),
            (document(bench(name, 0)), "real_time is not a number above 0"),
            (document(bench(name, float("nan"))), "real_time is not a number"),
            (document(bench(name, 10 ** 400)), "real_time is not a number"),
            (document(bench(name, "1")), "real_time is not a number"),
            (document(bench("route/T=1/AVX2@", 1)), "not contender@types"),
            (document(bench("route/T=1/@bf16:2", 1)), "not contender@types"),
            (document(bench(name, 1, units=None)), "units is not a number"),
            (document(bench(name, 1, size=-1)), "bytes is not a number"),
            (document(bench(name, 1, time_unit="h")), "time_unit is none of"),
            (document(bench(name, 1, label="")), "label names no unit"),
            (document(bench(name, 1), bench(name, 1, units=2)),
             "units or bytes are not always the same"),
        )
        for content, what in cases:
            with self.subTest(what=what):
                bad = self.file(content, "bad.json")
                self.refused([bad], "bad.json: ")
                self.refused([good, bad, "--html", "h", "--markdown", "m"],
                             what)
        (self.folder / "bytes.json").write_bytes(b'{"a": "\xff"}')
        self.refused(["bytes.json"], "bytes.json: not JSON")
        self.refused(["none.json"], "none.json: No such file or directory")
        # A process counted twice would look like two that agree.
        self.refused([good, "./good.json"], "./good.json: given twice")
        self.refused(["."], ".: Is a directory")

    def test_one_machine_and_build(self):
        good = self.file(SMALL, "good.json")
        for key in ("cpu_model", "num_cpus", "isas", "compiler", "onednn"):
            bad = self.file({**SMALL, "context": {**SMALL["context"],
                                                  key: "AVX2"}}, "bad.json")
            self.refused([good, bad], f"{key} is AVX2, but ")

    def test_what_is_there_is_kept(self):
        good = self.file(SMALL, "good.json")
        kept = pathlib.Path(self.file("as it was", "kept.md"))
        self.refused([good, "--markdown", str(kept), "--html", "no/such/h"],
                     "no/such/h")
        self.assertEqual(kept.read_text(encoding="utf-8"), "as it was")

    def test_what_is_no_file_stays_what_it_is(self):
        good = self.file(SMALL, "good.json")
        there = pathlib.Path(self.file("old", "there.html"))
        link = self.folder / "link.html"
        link.symlink_to(there)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        # The report is more than a pipe holds.
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        done = self.run_report(good, "--html", "link.html", "--markdown", "pipe")
        piped = reader.communicate()[0]
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(link.is_symlink())
        self.assertTrue(there.read_text(encoding="utf-8").startswith("<!"))
        self.assertTrue(pipe.is_fifo())
        self.assertTrue(piped.startswith(b"# Bench"))

    def test_lost_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.run_program(self.file(SMALL), stdout=full)
        self.assertEqual((done.returncode, done.stderr), (
            2, "report.py: standard output: No space left on device\n"))


if __name__ == "__main__":
    unittest.main()
