# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""The report as Markdown."""

import re

import targets
from reporting import checks, results, summary


def _text(text):
    """With nothing that begins a tag."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


def _cell(text):
    return _text(text).replace("\\", "\\\\").replace("|", "\\|")


def table(columns, rows):
    lines = ["| " + " | ".join(map(_cell, columns)) + " |",
             "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _targets(report):
    rows = []
    for checked in report.checked:
        state = checked.state
        rows.append((checked.what, summary.bound(checked),
                     summary.reached(checked),
                     state if state == checks.MET else f"**{state}**"))
    return table(("target", "bound", "reached", ""), rows)


def _not_first(report):
    standings = report.not_first
    if not standings:
        return "No peer is as fast in any row.\n"
    rows = []
    for s in standings:
        rows.append((s.row.kernel, summary.shape(s.row),
                     summary.contender(s.ours.contender),
                     summary.contender(s.peer.contender),
                     summary.ratio(s.ratio), s.words))
    return table(("kernel", "shape", "ours", "peer", "ours / peer", ""), rows)


def _columns(rows):
    """All contenders of a table, in the report's order."""
    names = {}
    for row in rows:
        names.update((f.contender, f) for f in row.figures.values())
    by_kind = ["ours", *results.RIVALS]
    order = list(names)
    return sorted(order, key=lambda n: (by_kind.index(names[n].kind),
                                        names[n].threads, order.index(n)))


def _kernel(rows):
    """A row a shape: a column per contender, then the best ISA's ratios."""
    names = _columns(rows)
    matrix = rows[0].kernel in targets.KERNELS
    kinds = [kind for kind in results.RIVALS
             if any(row.of_kind(kind) for row in rows) or
             (matrix and kind == "ggml")]
    if matrix and not any(n.split(":")[0] == "ggml" for n in names):
        probes = [n for n in names if n.split(":")[0] == "probe"]
        at = names.index(probes[0]) if probes else len(names)
        names.insert(at, "ggml")
    moves = any(row.ours() and row.ours().gb_per_second for row in rows)
    threads = any(row.ours(2) for row in rows)
    f32 = {row.shape: row.ours() for row in rows if not row.types}
    typed = len(rows) > len(f32) > 0
    columns = ["shape", *map(summary.contender, names)]
    columns += ["GB/s"] if moves else []
    columns += ["1 thread / 2"] if threads else []
    columns += ["/ f32"] if typed else []
    for kind in kinds:
        forms = {f.contender for row in rows for f in row.of_kind(kind)}
        only = forms.pop() if len(forms) == 1 else kind
        columns.append(f"/ {'fastest ' if forms else ''}"
                       f"{summary.contender(only)}")
    lines = []
    for row in rows:
        line = [summary.shape(row)]
        for name in names:
            figure = row.figures.get(name)
            line.append(summary.number(figure.ns.value) if figure else "-")
        ours = row.ours()
        if moves:
            speed = ours and ours.gb_per_second
            line.append(summary.number(speed.value) if speed else "-")
        if threads:
            both = ours and row.ours(2)
            line.append(summary.ratio(both and results.ratio(ours, both)))
        if typed:
            same = f32.get(row.shape) if row.types else None
            line.append(summary.ratio(
                results.ratio(ours, same) if ours and same else None))
        for kind in kinds:
            other = results.fastest(row.of_kind(kind))
            line.append(summary.ratio(
                results.ratio(ours, other) if ours and other else None))
        lines.append(line)
    return table(columns, lines)


def render(report):
    text = ["# Benchmarks\n"]
    text.append("\n".join(f"* {_text(line)}."
                          for line in summary.ten_lines(report)) + "\n")
    text.append(
        "Ratios are the best ISA's time over the other's: below 1 is faster, "
        f"within\n{summary.percent(results.TIE)} is a tie. They are taken "
        "within each process; in brackets the smallest\nand the largest "
        "process, in the kernels' tables where these are more than\n"
        f"{summary.percent(summary.NOISE)} apart. `-`: not in this run.\n")
    text.append("## Targets\n")
    text.append(_targets(report))
    text.append("## Where a peer is as fast\n")
    text.append("One that does less is not counted above. \"not always\": not "
                "in every process.\n")
    text.append(_not_first(report))
    for kernel, rows in report.kernels().items():
        units = dict.fromkeys(row.unit for row in rows)
        for unit in units:
            text.append(f"## {kernel}, ns per {unit}\n")
            text.append(_kernel([row for row in rows if row.unit == unit]))
    return "\n".join(text)
