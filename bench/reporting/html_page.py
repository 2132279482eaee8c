# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""The report as a page: one file that loads nothing."""

import collections
import html
import os

import targets
from reporting import charts, checks, results, summary

# Its shapes are shown first; a kernel without them shows its first ones.
HEADLINE_MODEL = "Qwen3-30B-A3B"
OPEN_SHAPES = 4
# What has little else to do than to move its bytes.
MEMORY_BOUND = ("combine", "combine_indexed")
OPEN_LINES = 10
SWEEP = 30  # more shapes than this, and nobody beside: figures only

_ABOUT = {
    "route": "Softmax, top-k, renormalised weights: logits to expert ids.",
    "route_unnormalised": "The same, weights not renormalised.",
    "bucket_packed": "Pairs sorted to experts, with offsets and the indirect "
                     "dispatch's arguments.",
    "bucket_packed_row_index": "The same, and where each pair's row went.",
    "bucket_strided": "Pairs appended to their expert's row of a table.",
    "bucket_aligned": "Pairs sorted to experts in blocks of 64, with sentinels "
                      "and the expert of each block.",
    "map_pairs": "Pairs sorted to 8 ranks by a table of their experts.",
    "map_tokens": "Tokens once per rank, and the copy that each pair reads.",
    "work_list": "Experts' rows cut to tiles for 64 workers.",
    "gather": "Token rows in packed order.",
    "quantize": "Rows converted to other types and quantised.",
    "activate": "silu(gate) * up.",
    "combine": "Weighted sum of 8 rows, residual and RMSNorm, in one pass.",
    "combine_indexed": "The same, rows found through row_index.",
    "bucket_strided_natural": "The same at the stride of just all pairs.",
    "threads": "One and two threads, calls right after one another.",
    "threads_idle": "One and two threads, after a millisecond's pause.",
    "device": "The kernels behind Metal's API, against direct calls.",
    "kernel": "A user's own kernels, unchecked and in checked mode.",
    "route_experts": "Any number of experts at the same k.",
    "route_rows": "Rows that are hard on a selection.",
}


def _text(text):
    return html.escape(str(text))


def _name(text):
    """May be broken inside of a long name."""
    return _text(text).replace("/", "/<wbr>").replace("_", "_<wbr>")


def _times_as_fast(found):
    """"2.3×" of a ratio of times, with the range below."""
    if found is None:
        return "–", "not in this run"
    return (f"{summary.number(1.0 / found.median)}×",
            f"{summary.number(1.0 / found.high)}× to "
            f"{summary.number(1.0 / found.low)}× in {found.rows} rows")


def _tile(figure, text, detail, css=""):
    return (f'<li{css}><b>{figure}</b><span>{_text(text)}</span>'
            f"<span>{_text(detail)}</span></li>")


def _tiles(report):
    places, states = report.places, report.states
    total = len(report.checked)
    missed = f"{states[checks.NOT_MET]} not met"
    if states[checks.NOT_RUN]:
        missed += f", {states[checks.NOT_RUN]} not run"
    tiles = [
        _tile(f"{places['first']}<small> of {sum(places.values())}</small>",
              "rows where Switchyard is first",
              f"{places['tie']} within 3 %, {places['behind']} behind",
              ' class="lead"')]
    for name, text in (("plain", "as fast as plain C++"),
                       ("onednn", "as fast as oneDNN, same work"),
                       ("ggml", "as fast as ggml")):
        figure, detail = _times_as_fast(report.against(name))
        tiles.append(_tile(figure, text + ", median", detail))
    bytes_only = report.against_probes(MEMORY_BOUND)
    if bytes_only:
        tiles.append(_tile(
            f"{summary.number(bytes_only.median)}×",
            "the time of its bytes alone: weighted sum, median",
            f"{summary.number(bytes_only.low)}× to "
            f"{summary.number(bytes_only.high)}× in {bytes_only.rows} rows"))
    tiles.append(_tile(f"{states[checks.MET]}<small> of {total}</small>",
                       "targets met", missed))
    return '<ul class="tiles">' + "".join(tiles) + "</ul>"


def _table(rows, head, css="list"):
    return (f'<table class="{css}"><thead><tr>{head}</tr></thead><tbody>' +
            "".join(rows) + "</tbody></table>")


def _lines(rows, head, what="", css="list"):
    """The first of a table's rows, the others folded away."""
    text = _table(rows[:OPEN_LINES], head, css)
    if len(rows) > OPEN_LINES:
        text += (f"<details><summary>{len(rows) - OPEN_LINES} more{what}"
                 "</summary>"
                 f"{_table(rows[OPEN_LINES:], head, css)}</details>")
    return text


def _not_first(report):
    if not report.not_first:
        return "<p>Nowhere: Switchyard is first in every row.</p>"
    rows = []
    for s in report.not_first:
        tag = "em" if s.place == "behind" and not s.excepted else "i"
        peer = summary.contender(s.peer.contender)
        threads = f", {s.ours.threads} threads" if s.ours.threads > 1 else ""
        rows.append(
            f'<tr><th scope="row">{_name(s.row.kernel)} {_name(s.row.where)}'
            f"{threads}</th><td>{_text(peer)}</td>"
            f'<td class="n">{_ratio(s.ratio)}</td><td><{tag}>{s.words}</{tag}>'
            "</td></tr>")
    return _lines(rows, '<th scope="col">row</th><th scope="col">peer</th>'
                  '<th scope="col" class="n">ours / peer</th>'
                  "<td></td>")


def _ratio(value, text=None):
    text = text or summary.number(value.value)
    if value.processes > 1:
        text += (f"<small>{summary.number(value.low)} to "
                 f"{summary.number(value.high)}</small>")
    return text


_STATES = {checks.MET: "✓&nbsp;met",
           checks.NOT_MET: "<em>✗&nbsp;not met</em>",
           checks.NOT_RUN: "<em>not run</em>"}


def _target_rows(checked):
    rows = []
    for c in checked:
        reached = _ratio(c.value, summary.median(c)) if c.value else "–"
        bound = summary.bound(c).translate({60: "≤", 62: "≥", 61: None})
        rows.append(
            f'<tr><th scope="row">{_name(c.what)}</th>'
            f'<td class="meter">{charts.meter(c)}</td>'
            f'<td class="n">{reached}</td><td class="n o">{bound}</td>'
            f"<td>{_STATES[c.state]}</td></tr>")
    return rows


_TARGET_HEAD = ('<th scope="col">target</th><td class="meter"></td>'
                '<th scope="col" class="n">reached</th>'
                '<th scope="col" class="n">bound</th><td></td>')


def _targets(report):
    """Those that are not met in the open, the others folded away."""
    rows = {state: _target_rows(c for c in report.checked if c.state == state)
            for state in _STATES}
    text = ""
    if rows[checks.NOT_MET]:
        text += _lines(rows[checks.NOT_MET], _TARGET_HEAD, " not met")
    for state in (checks.NOT_RUN, checks.MET):
        if rows[state]:
            text += (f"<details><summary>{len(rows[state])} {state}</summary>"
                     f"{_table(rows[state], _TARGET_HEAD)}</details>")
    return text


def _shape(row, isas):
    model = f" <span>{_text(row.model)}</span>" if row.model else ""
    return (f'<div class="shape"><h4>{_text(row.shape)}{model}</h4>'
            f"{charts.bars(row, isas)}</div>")


def _shapes(rows, isas):
    return ('<div class="shapes">' +
            "".join(_shape(row, isas) for row in rows) + "</div>")


def _heads(names):
    return '<th scope="col">ns</th>' + "".join(
        f'<th scope="col" class="n">{_text(name)}</th>' for name in names)


def _line(row, values):
    return f'<tr><th scope="row">{_name(row.where)}</th>' + "".join(
        f'<td class="n">{summary.number(v.value) if v else "–"}</td>'
        for v in values) + "</tr>"


def _figures(rows):
    """A table of figures only, for sweeps."""
    names = list(dict.fromkeys(n for row in rows for n in row.figures))
    lines = [_line(row, (f and f.ns for f in map(row.figures.get, names)))
             for row in rows]
    return _table(lines, _heads(names), "list sweep")


def _typed(report, rows):
    """A table of what is not f32: the ISAs, beside f32 and the fastest peer."""
    isas = [isa for isa in report.measured.isas
            if any(isa in row.figures for row in rows)]
    lines = []
    for row in rows:
        ours = row.ours()
        same = report.measured.row(row.kernel, row.shape)
        others = (same and same.ours(), results.fastest(row.peers()))
        lines.append(_line(row, (
            *(f and f.ns for f in map(row.figures.get, isas)),
            *(ours and f and results.ratio(ours, f) for f in others))))
    return _lines(lines, _heads([*isas, "/ f32", "/ peer"]),
                  " shapes and types", "list sweep")


def _kernel(report, kernel, rows):
    isas = report.measured.isas
    units = " or ".join(dict.fromkeys(row.unit for row in rows))
    standings = [s for s in report.standings
                 if s.row.kernel == kernel and not s.excepted]
    about = _text(_ABOUT.get(kernel, ""))
    if standings:
        places = collections.Counter(s.place for s in standings)
        about += (f" First in {places['first']} of {len(standings)} rows" +
                  (f", {places['tie']} within 3 %." if places["tie"] else "."))
    text = (f'<section id="{_text(kernel)}"><h3>{_name(kernel)}</h3>'
            f'<p class="soft">{about} ns per {_text(units)}.</p>')
    typed = [row for row in rows if row.types]
    types = _typed(report, typed) if typed else ""
    rows = [row for row in rows if not row.types]
    if not rows:
        return f"{text}{types}</section>"
    sweep = not any(row.of_kind("plain") or row.of_kind("probe")
                    for row in rows)
    if sweep and len(rows) > SWEEP:
        return (f"{text}<details><summary>{len(rows)} shapes</summary>"
                f"{_figures(rows)}</details></section>")
    opened = [r for r in rows if r.model.startswith(HEADLINE_MODEL)]
    opened = (opened or rows)[:OPEN_SHAPES]
    rest = [r for r in rows if r not in opened]
    text += _shapes(opened, isas)
    if rest:
        names = f"{rest[0].shape} to {rest[-1].shape}" if len(rest) > 1 else (
            rest[0].shape)
        text += (f"<details><summary>{len(rest)} more: {_text(names)}</summary>"
                 f"{_shapes(rest, isas)}</details>")
    return f"{text}{types}</section>"


_KEY = (("b", "Switchyard, the best ISA"), ("o", "Switchyard, other ISAs"),
        ("p", "peers"), ("l", "peers that do a part of the work"),
        ("m", "the fastest probe: only moves the bytes"))


def _key():
    marks = "".join(
        f'<li class="{css}"><svg aria-hidden="true"><rect x="1" y="1" '
        f'width="23" height="10"/></svg>{text}</li>' for css, text in _KEY)
    return f'<ul class="key">{marks}</ul>'


def _roof(report):
    drawing = charts.roof(report.measured, targets.KERNELS)
    if not drawing:
        return ""
    marks = "".join(f"<li>{charts.key_mark(symbol)}{family}</li>"
                    for family, symbol in charts.FAMILIES)
    marks += ('<li><svg aria-hidden="true" viewBox="0 0 26 12"><line '
              'class="bound" x1="3" x2="23" y1="6" y2="6"/></svg>probe</li>')
    return ('<section id="roofline"><h2>Roofline</h2><p class="soft">GB/s over '
            "the bytes that a call moves: every f32 kernel and shape on the "
            "best ISA and one thread, under what the fastest probe reaches in "
            "each level of cache. What stands far below is bound by "
            "arithmetic, latency or stores, not by bytes.</p>"
            f'{drawing}<ul class="key">{marks}</ul></section>')


def _facts(report):
    facts = [("machine", report.machine()), ("build", report.build()),
             ("run", f"{report.when()}, {report.how()}")]
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{_text(text)}</dd>"
                            for name, text in facts) + "</dl>"


def _style():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "page.css"), encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return "\n".join(line for line in lines if line)


def render(report):
    kernels = report.kernels()
    links = [("peers", "Where a peer is as fast"), ("targets", "Targets"),
             ("roofline", "Roofline"), *((k, k) for k in kernels)]
    return "".join((
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        "<title>Switchyard: benchmarks</title>\n<style>\n",
        _style(),
        "\n</style></head><body><header><h1>Switchyard: benchmarks</h1>",
        _facts(report), _tiles(report), "<nav>",
        "".join(f'<a href="#{_text(to)}">{_name(text)}</a>'
                for to, text in links),
        '</nav></header><main><section id="peers">'
        "<h2>Where a peer is as fast</h2>"
        '<p class="soft">Time of the best ISA over that of the fastest '
        "contender that does the same work: above 0.97. “Not always”: not in "
        "every process. One that does less is not counted among the rows "
        "above.</p>",
        _not_first(report),
        '</section><section id="targets"><h2>Targets</h2>'
        '<p class="soft">Those that are not met come first. The line in each '
        "bar is the bound; small, the smallest and the largest process.</p>",
        _targets(report), "</section>", _roof(report),
        '<section id="bars"><h2>Kernels</h2><p class="soft">Bars are speed: '
        "longer is faster. At the right the time, ns per unit, and how many "
        "times the best ISA’s that is; a line across a bar’s end is the "
        "spread of the processes where it is above 5 %. ISAs within 5 % of "
        "each other share a bar. A dashed probe is off the scale. Rows of other "
        "types than f32 are a table, with the best ISA’s time over that of f32 "
        "and over the fastest peer’s.</p>",
        _key(), "</section>",
        "".join(_kernel(report, kernel, rows)
                for kernel, rows in kernels.items()),
        "</main><footer><h2>How it was measured</h2><p>",
        _text(summary.ten_lines(report)[2]),
        ". A ratio is taken within each process; what is shown is the median "
        "over the processes.</p></footer><script>addEventListener("
        '"beforeprint",()=>document.querySelectorAll("details").forEach('
        "d=>d.open=true))</script></body></html>\n"))
