#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""bench/report.py: figures, targets, what it writes."""

import html.parser
import re
import unittest

from report_case import OTHER, SMALL, Case, bench, document
from reporting import charts, checks, results, summary


class Figures(Case):
    def test_names_lose_what_google_appends(self):
        for suffix in ("", "/repeats:3", "/iterations:1/manual_time",
                       "/min_time:0.100/repeats:9/real_time",
                       "/process_time/threads:1"):
            self.assertEqual(results.split_name("k/E=8/T=1/ggml:2" + suffix),
                             ("k", "E=8/T=1", "ggml:2"))

    def test_median_of_repetitions_then_of_processes(self):
        read = self.read(
            document(bench("gather/T=1/AVX2", 10, 30, 20, units=2, size=60)),
            document(bench("gather/T=1/AVX2", 40, 44, 400, units=2, size=60)),
            document(bench("gather/T=1/AVX2", 24, 24, 25, units=2, size=60)))
        figure = read.row("gather", "T=1").figures["AVX2"]
        self.assertEqual(figure.ns, results.Value(12.0, 10.0, 22.0, 3))
        self.assertAlmostEqual(figure.ns.spread, 1.0)
        self.assertEqual(figure.gb_per_second.value, 2.5)
        self.assertEqual((read.processes, read.repetitions), (3, 3))

    def test_rows_are_in_the_order_of_registration(self):
        read = self.read(document(*(
            bench(f"gather/T={i}/AVX2", 1, family_index=9 - i,
                  per_family_instance_index=0) for i in (3, 1, 2))))
        self.assertEqual([row.shape for row in read.rows.values()],
                         ["T=3", "T=2", "T=1"])

    def test_the_load_may_be_a_whole_number(self):
        for load, want in ((2, 2.0), (0.5, 0.5), (True, 0.0), ("9", 0.0)):
            read = self.read({**SMALL, "context": {**SMALL["context"],
                                                   "load_avg": [load]}})
            self.assertEqual(read.load, want)

    def test_units_of_time(self):
        read = self.read(document(
            bench("gather/T=1/AVX2", 3, time_unit="us")))
        self.assertEqual(
            read.row("gather", "T=1").figures["AVX2"].ns.value, 3000.0)

    def test_a_ratio_is_taken_within_each_process(self):
        read = self.read(
            *(document(bench("gather/T=1/AVX2", ours),
                       bench("gather/T=1/plain", plain))
              for ours, plain in ((10, 20), (40, 50), (90, 91))),
            document(bench("gather/T=1/AVX2", 900)))
        row = read.row("gather", "T=1")
        value = results.ratio(row.ours(), row.figures["plain"])
        self.assertEqual(value, results.Value(0.8, 0.5, 90 / 91, 3))

    def test_order_kinds_and_threads(self):
        names = ("probe:2", "ggml:2", "probe:streaming", "onednn:softmax",
                 "engine", "plain", "SCALAR", "AVX3_DL:2", "AVX2", "AVX3_DL",
                 "onednn", "ggml")
        read = self.read(document(*(bench(f"route/T=1/{n}", 1) for n in names)))
        row = read.row("route", "T=1")
        self.assertEqual(list(row.figures), [
            "AVX3_DL", "AVX2", "SCALAR", "AVX3_DL:2", "plain", "engine",
            "onednn:softmax", "onednn", "ggml", "ggml:2", "probe:streaming",
            "probe:2"])
        self.assertEqual(row.ours().contender, "AVX3_DL")
        self.assertEqual(row.ours(2).contender, "AVX3_DL:2")
        self.assertEqual([f.contender for f in row.peers()],
                         ["plain", "engine", "onednn", "ggml"])
        self.assertEqual([f.contender for f in row.peers(2)], ["ggml:2"])


class Targets(Case):
    def check(self, *documents):
        return {(c.kernel, c.shape, c.text): c
                for c in checks.check(self.read(*documents))}

    def test_patterns(self):
        self.assertEqual(checks.expand("a{b,c{d,e}}{,f}"),
                         ["ab", "abf", "acd", "acdf", "ace", "acef"])
        self.assertEqual(checks.expand("plain"), ["plain"])

    def test_met_not_met_and_not_run(self):
        shape = "route/E=128/k=8/T=512/"
        found = self.check(
            document(bench(shape + "AVX3_DL", 70), bench(shape + "AVX2", 120),
                     bench(shape + "onednn:softmax", 100)),
            document(bench(shape + "AVX3_DL", 75), bench(shape + "AVX2", 100),
                     bench(shape + "onednn:softmax", 100)),
            document(bench(shape + "AVX3_DL", 76), bench(shape + "AVX2", 160),
                     bench(shape + "onednn:softmax", 100)))
        softmax = "renormalised, AVX3_DL / oneDNN's softmax alone"
        met = found["route", "E=128/k=8/T=512", softmax]
        self.assertEqual((met.state, met.value),
                         ("met", results.Value(0.75, 0.7, 0.76, 3)))
        self.assertEqual(met.ns.value, 75)
        self.assertEqual(summary.reached(met), "0.75 [0.70, 0.76]")
        near = checks.Checked("k", "", "", 1.03, False,
                              results.Value(1.0342, 1.0, 2.0, 2))
        self.assertEqual(summary.reached(near), "1.034 [1.00, 2.00]")
        # Of 1.71, 1.33 and 2.11.
        slow = found["route", "E=128/k=8/T=512", "AVX2 / AVX3_DL"]
        self.assertEqual((slow.state, slow.bound), ("not met", 1.5))
        away = found["route", "E=256/k=8/T=512", softmax]
        self.assertEqual((away.state, away.note),
                         ("not run", "no route/E=256/k=8/T=512"))
        # A "*" without any shape is not silent, either.
        self.assertEqual({c.state for (kernel, _, _), c in found.items()
                          if kernel.startswith("threads")}, {"not run"})

    def test_without_avx512(self):
        shape = "route/E=128/k=8/T=512/"
        found = self.check(document(bench(shape + "AVX2", 70),
                                    bench(shape + "onednn:softmax", 100),
                                    isas="AVX2 SCALAR"))
        self.assertEqual(found["route", "E=128/k=8/T=512", "renormalised, "
                               "AVX-512 / oneDNN's softmax alone"].state,
                         "not run")

    def test_figures_of_every_kind(self):
        one = "bucket_strided/E=128/k=8/T=1/uniform/AVX3_DL"
        found = self.check(document(
            bench(one, 24, units=8, label="pair; "),
            bench("device/chains=1/device", 5000, label="chain; "),
            bench("device/chains=1/direct", 2500, label="chain; "),
            bench("activate/8x768/AVX3_DL", 12),
            bench("activate/8x768/probe", 10),
            bench("activate/8x768/probe:streaming", 6),
            *(bench(f"route_experts/k=4/E={e}/AVX2", 3 if e == 288 else 2)
              for e in (60, 64, 72, 128, 160, 256, 288, 384, 512, 896, 1024)),
            bench("threads/route/T=4096/AVX3_DL", 200e3),
            bench("threads/route/T=4096/AVX3_DL:2", 80e3),
            bench("threads/route/T=4096/probe", 30),
            bench("threads/route/T=4096/probe:2", 10),
            bench("threads/gather/T=64/AVX3_DL", 50e3),
            bench("threads/gather/T=64/AVX3_DL:2", 30e3),
            bench("threads/combine/T=1/AVX3_DL", 10e3),
            bench("threads/combine/T=1/AVX3_DL:2", 10e3),
            bench("threads_idle/gather/T=64/AVX3_DL", 50e3),
            bench("threads_idle/gather/T=64/AVX3_DL:2", 60e3)))

        def value(kernel, shape, text):
            checked = found[kernel, shape, text]
            return round(checked.value.value, 4), checked.state

        self.assertEqual(value("bucket_strided", "E=128/k=8/T=1/uniform",
                               "one token, ns a call"), (24.0, "met"))
        self.assertEqual(
            value("device", "chains=1", "one chain with commit and wait, ns "
                  "above direct calls"), (2500.0, "met"))
        # The fastest of the probes.
        self.assertEqual(value("activate", "8x768", "in cache, AVX3_DL / load, "
                               "divide, store"), (2.0, "not met"))
        experts = found["route_experts", "k=4", "any number of experts, AVX2, "
                        "ns per expert / at the nearest power of two, worst"]
        self.assertEqual((experts.value.value, experts.note), (1.5, "E=288"))
        # 2.5 x, where the probe's 3 x has 1.5 x from the second core's caches.
        self.assertEqual(value("threads", "route/T=4096", "100 us of serial "
                               "work or more, speed-up"), (1.6667, "not met"))
        self.assertEqual(value("threads", "gather/T=64", "30 to 100 us of "
                               "serial work, speed-up"), (1.6667, "met"))
        self.assertEqual(value("threads", "combine/T=1", "below 30 us of "
                               "serial work not shared out: two threads / "
                               "one"), (1.0, "met"))
        self.assertEqual(value("threads_idle", "gather/T=64", "after 1 ms "
                               "idle, two threads / one"), (1.2, "not met"))

    def test_first_in_every_row(self):
        tokens = "bucket_packed/E=8/k=2/T=1/uniform/"
        found = summary.Report.of(self.read(document(
            bench("route/T=1/AVX3_DL", 10), bench("route/T=1/plain", 50),
            bench("route/T=1/onednn:softmax", 5), bench("route/T=1/probe", 1),
            bench("route/T=2/AVX3_DL", 10.2), bench("route/T=2/ggml", 10),
            bench("route/T=2/ggml:2", 1),
            bench("gather/T=1/AVX3_DL", 12), bench("gather/T=1/plain", 10),
            bench("gather/T=2/AVX3_DL", 98), bench("gather/T=2/plain", 100),
            bench("threads/x/AVX3_DL", 9), bench("threads/x/ggml", 8),
            bench("threads/x/AVX3_DL:2", 7), bench("threads/x/ggml:2", 5),
            bench(tokens + "AVX3_DL", 30), bench(tokens + "engine", 10),
            bench(tokens + "plain", 60))))
        self.assertEqual(dict(found.places),
                         {"first": 2, "tie": 2, "behind": 2})
        self.assertEqual(
            [(s.row.kernel, s.peer.contender, s.place, s.excepted)
             for s in found.not_first],
            [("bucket_packed", "engine", "behind", True),
             ("threads", "ggml:2", "behind", False),
             ("gather", "plain", "behind", False),
             ("route", "ggml", "tie", False),
             ("gather", "plain", "tie", False)])
        self.assertEqual([s.words for s in found.not_first],
                         ["does less", "slower", "slower", "within 3 %",
                          "within 3 %"])
        states = {c.kernel: c.state for c in found.checked if not c.shape}
        self.assertEqual(states["route"], "met")
        self.assertEqual(states["gather"], "not met")
        self.assertEqual(states["bucket_packed"], "met")
        self.assertEqual(states["activate"], "not run")


class Page(html.parser.HTMLParser):
    """Complains about what is not closed, and keeps what is referred to."""
    VOID = {"meta", "link", "wbr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.references = [], [], []
        self.ids = set()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.references.append(value)
            if name == "id":
                assert value not in self.ids, value
                self.ids.add(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


class Outputs(Case):
    def test_the_page_is_one_well_formed_file(self):
        done = self.run_report(self.file(SMALL), self.file(OTHER, "b.json"),
                               "--html", "page.html")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "", ""))
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        page = Page(text)
        for reference in page.references:
            self.assertRegex(reference, r"^(#|data:,$)")
            if reference.startswith("#"):
                self.assertIn(reference[1:], page.ids)
        self.assertEqual(re.findall(r"https?:|url\(|@import", text), [])
        self.assertNotIn("<b>E", text)
        shown = "".join(page.text)
        self.assertIn("<b>E&'\"|=1", shown)
        self.assertIn("<i>a</i> | model", shown)
        self.assertIn("A <CPU> & more", shown)

    def test_bars(self):
        read = self.read(document(*(
            bench(f"combine/T=1/{name}", time) for name, time in (
                ("AVX3_DL", 100), ("AVX2", 104), ("SCALAR", 400),
                ("onednn:no_norm", 200), ("plain", 125), ("probe:a", 60),
                ("probe:b", 50)))))
        bars = charts.bars(read.row("combine", "T=1"), read.isas)
        # ISAs share a bar; of the probes the faster one, which is off the scale.
        self.assertEqual(
            re.findall(r'<tr class="([^"]*)"><th>([^<]*)</th>.*?'
                       r'width="([^"]*)".*?<td>([^<]*)</td><td>([^<]*)</td>',
                       bars),
            [("b", "AVX3_DL, AVX2", "76.9%", "100.0", ""),
             ("o", "SCALAR", "19.2%", "400.0", "4.00×"),
             ("p", "plain C++", "61.5%", "125.0", "1.25×"),
             ("l", "oneDNN, no norm", "38.5%", "200.0", "2.00×"),
             ("m c", "probe, b", "110%", "50.0", "0.50×")])

    def test_markdown_opens_with_ten_lines(self):
        self.run_report(self.file(SMALL), self.file(OTHER, "b.json"),
                        "--markdown", "out.md")
        text = (self.folder / "out.md").read_text(encoding="utf-8")
        title, blank, *lines = text.split("\n")
        self.assertEqual((title, blank), ("# Benchmarks", ""))
        self.assertTrue(all(line.startswith("* ") for line in lines[:10]))
        self.assertEqual(lines[10], "")
        self.assertIn("2026-11-22 02:00, load average 0.25.", lines[1])
        self.assertIn("First in 1 of 2 rows", lines[3])
        self.assertIn("ggml's: none in this run", lines[7])
        self.assertLess(text.index("## Targets"), text.index("## activate"))
        # The spread where it is above 5 %; nothing of ggml's.
        self.assertIn(
            "| shape | AVX3_DL | AVX2 | plain C++ | ggml | probe | GB/s | "
            "/ plain C++ | / ggml | / probe |\n", text)
        self.assertIn(
            "| 8x768, a model | 100.0 | 165.0 | 450.0 | - | 90.0 | 7.00 | "
            "0.22 [0.21, 0.24] | - | 1.11 |\n", text)
        self.assertIn("&lt;b>E&'\"\\|=1, &lt;i>a&lt;/i> \\| model |", text)
        self.assertIn("**not run**", text)
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            cells = {line.replace("\\|", "").count("|")
                     for line in table.splitlines()}
            self.assertEqual(len(cells), 1, table)

    def test_targets_are_printed_in_80_columns(self):
        done = self.run_report(self.file(SMALL), "--targets")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertRegex(done.stdout, r"(?m)^met +50\.0 +<= 60\.0 +device")
        self.assertRegex(done.stdout, r"(?m)^NOT RUN +- +<= 1\.05  combine")
        self.assertRegex(lines[-1], r"^Targets: \d+ of \d+ met")

    def test_without_an_option_ten_lines(self):
        done = self.run_report(self.file(SMALL))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(sum(not line.startswith(" ") for line in lines), 10)
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_help(self):
        done = self.run_report("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--markdown", "--html", "--targets"):
            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    unittest.main()
