#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""bench/report.py on rows that are not f32."""

import re
import unittest

from report_case import Case, bench, document
from reporting import charts, checks, results, summary

SHAPE = "gather/T=512/H=2048/"
TYPED = document(
    bench(SHAPE + "AVX3_DL", 100, size=800),
    bench(SHAPE + "AVX2", 120, size=800),
    bench(SHAPE + "plain", 200, size=800),
    bench(SHAPE + "AVX3_DL@bf16", 50, size=400),
    bench(SHAPE + "AVX2@bf16", 72, size=400),
    bench(SHAPE + "plain@bf16", 40, size=400),
    bench(SHAPE + "probe@bf16", 30, size=400),
    bench(SHAPE + "AVX3_DL@bf16-i8", 22, size=300),
    bench(SHAPE + "AVX3_DL@bf16-i8:each_row", 60, size=300),
    bench(SHAPE + "AVX2@bf16-i8", 30, size=300),
    bench(SHAPE + "engine@bf16-i8", 110, size=300),
    bench(SHAPE + "probe@bf16-i8:a", 25, size=300),
    bench(SHAPE + "probe@bf16-i8:b", 20, size=300),
    bench("quantize/T=64/H=2048/AVX3_DL@f32-bf16", 5))


class Types(Case):
    def test_names(self):
        for name, want in (("AVX2", ("AVX2", "")),
                           ("probe:a", ("probe:a", "")),
                           ("AVX2@bf16-i8", ("AVX2", "bf16-i8")),
                           ("AVX2@bf16:each_row:2",
                            ("AVX2:each_row:2", "bf16")),
                           ("fastest probe@bf16", ("fastest probe", "bf16"))):
            self.assertEqual(results.split_types(name), want)

    def test_types_are_rows_of_their_own(self):
        read = self.read(TYPED)
        self.assertEqual([(row.where, list(row.figures))
                          for row in read.kernels()["gather"]], [
            ("T=512/H=2048", ["AVX3_DL", "AVX2", "plain"]),
            ("T=512/H=2048 bf16", ["AVX3_DL", "AVX2", "plain", "probe"]),
            ("T=512/H=2048 bf16-i8",
             ["AVX3_DL", "AVX2", "AVX3_DL:each_row", "engine", "probe:a",
              "probe:b"])])
        row = read.row("gather", "T=512/H=2048", "bf16-i8")
        self.assertEqual(row.ours().ns.value, 22)
        self.assertEqual([f.contender for f in row.peers()], ["engine"])

    def test_each_stands_beside_its_own_peers(self):
        report = summary.Report.of(self.read(TYPED))
        self.assertEqual(
            [(s.row.types, s.peer.contender, s.ratio.value)
             for s in report.standings],
            [("", "plain", 0.5), ("bf16", "plain", 1.25),
             ("bf16-i8", "engine", 0.2)])
        self.assertEqual(dict(report.places), {"first": 2, "behind": 1})
        worst = next(c for c in report.checked
                     if (c.kernel, c.shape) == ("gather", ""))
        self.assertEqual((worst.value.value, worst.note),
                         (1.25, "T=512/H=2048 bf16, plain"))
        self.assertEqual(report.against("plain").rows, 2)

    def test_targets_between_types(self):
        found = {c.text: c for c in checks.check(self.read(TYPED))
                 if (c.kernel, c.shape) == ("gather", "T=512/H=2048")}

        def state(text):
            checked = found[text]
            return (checked.state, checked.value and
                    round(checked.value.value, 4), checked.note)

        self.assertEqual(state("beyond the caches, AVX3_DL, bf16 / f32"),
                         ("met", 0.5, ""))
        self.assertEqual(state("beyond the caches, AVX2, bf16 / f32"),
                         ("not met", 0.6, ""))
        once = "once, {} / tokens read once, packed rows copied"
        self.assertEqual(state("bf16 to i8 " + once.format("AVX3_DL")),
                         ("met", 1.1, "probe:b"))
        self.assertEqual(state("bf16 to i8 " + once.format("AVX2")),
                         ("not met", 1.5, "probe:b"))
        self.assertEqual(state("f32 to i8 " + once.format("AVX2")),
                         ("not run", None, "no gather/T=512/H=2048 of f32-i8"))
        each = "bf16 to i8, rows packed, then each converted / {}"
        self.assertEqual(state(each.format("AVX3_DL")), ("met", 5.0, ""))
        self.assertEqual(state(each.format("AVX2")),
                         ("not met", 3.6667, ""))

    def test_markdown_has_them_below_f32(self):
        self.run_report(self.file(TYPED), "--markdown", "out.md")
        text = (self.folder / "out.md").read_text(encoding="utf-8")
        columns, _, *lines = re.search(
            r"## gather, ns per row\n\n((?:\|.*\n)+)", text)[1].splitlines()
        cells = [[c.strip() for c in line.strip("|").split("|")]
                 for line in (columns, *lines)]
        at = cells[0].index("/ f32")
        self.assertEqual([(c[0], c[1], c[at]) for c in cells[1:]], [
            ("T=512/H=2048, a model", "100.0", "-"),
            ("T=512/H=2048 bf16, a model", "50.0", "0.50"),
            ("T=512/H=2048 bf16-i8, a model", "22.0", "0.22")])
        self.assertIn("AVX3_DL, each row", cells[0])
        # All of them typed, and nothing to compare with.
        quantize = text[text.index("## quantize, "):]
        self.assertIn("| T=64/H=2048 f32-bf16, a model | 5.00 |", quantize)
        self.assertNotIn("/ f32", quantize)

    def test_the_page_has_a_table_of_them(self):
        self.run_report(self.file(TYPED), "--html", "page.html")
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        section = text[text.index('<section id="gather">'):]
        section = section[:section.index("</section>")]
        # Bars are f32's.
        self.assertEqual(section.count('<div class="shape">'), 1)
        table = section[section.index('<table class="list sweep">'):]
        self.assertEqual(
            [re.sub("<[^>]*>", " ", row).split()
             for row in re.findall("<tr>(.*?)</tr>", table)],
            [["ns", "AVX3_DL", "AVX2", "/", "f32", "/", "peer"],
             ["T=512/", "H=2048", "bf16", "50.0", "72.0", "0.50", "1.25"],
             ["T=512/", "H=2048", "bf16-i8", "22.0", "30.0", "0.22", "0.20"]])
        section = text[text.index('<section id="quantize">'):]
        self.assertNotIn('<div class="shape">', section)

    def test_the_roofline_is_that_of_f32(self):
        read = self.read(TYPED)
        drawing = charts.roof(read, ("gather",))
        self.assertEqual(re.findall("<title>(.*?):", drawing),
                         ["gather T=512/H=2048"])


if __name__ == "__main__":
    unittest.main()
