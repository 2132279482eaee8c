# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""The page's bars and its roofline, as SVG whose widths are in percent: text
keeps its size on every screen."""

import html
import itertools
import math
import re

from reporting import results, summary

# ISAs closer than this to the one before share its bar.
_SAME = 0.05
# How far a probe's bar may reach beyond the fastest contender's.
_HEADROOM = 1.3
_KIND_CLASS = {"plain": "p", "engine": "p", "onednn": "p", "ggml": "p",
               "probe": "m"}


def percent(part):
    return f"{100.0 * part:.1f}".rstrip("0").rstrip(".") + "%"


def _merged(row, isas):
    """[(names, figure)]: ISAs that are as fast as the one before joined, and
    of the probes the fastest."""
    bars = []
    for figure in row.figures.values():
        if figure.kind == "probe" and figure is not results.fastest(
                row.of_kind("probe", figure.threads)):
            continue
        if bars and figure.base in isas:
            names, first = bars[-1]
            if first.base in isas and first.threads == figure.threads and (
                    abs(figure.ns.value / first.ns.value - 1.0) <= _SAME):
                names.append(figure.base)
                continue
        bars.append(([figure.base], figure))
    return bars


def _name(names, figure):
    if figure.kind != "ours":
        return summary.contender(figure.contender)
    name = names[0] if len(names) == 1 else (
        f"{names[0]}{', ' if len(names) == 2 else ' to '}{names[-1]}")
    return name if figure.threads == 1 else f"{name}, {figure.threads} threads"


def bars(row, isas):
    """A table of a shape's contenders: name, bar (its speed), ns per unit, and
    how many times as long as the best of ours it takes."""
    entries = _merged(row, isas)
    best = row.ours()
    limited = [1.0 / f.ns.value for _, f in entries if f.kind != "probe"]
    fastest = max(limited or [1.0 / f.ns.value for _, f in entries])
    top = max(1.0 / f.ns.value for _, f in entries)
    scale = min(top, _HEADROOM * fastest)
    lines = []
    for names, figure in entries:
        ns = figure.ns
        speed = 1.0 / ns.value / scale
        css = _KIND_CLASS.get(figure.kind, "o")
        if figure is best:
            css = "b"
        elif css == "p" and not figure.is_peer:
            css = "l"
        inset = ' x="1" y="1" height="11"' if css == "m" else ' height="13"'
        if speed > 1.001:
            css += " c"
            width = "110%"
        else:
            width = percent(speed * (0.99 if css == "m" else 1.0))
        shapes = f'<rect{inset} width="{width}"/>'
        if ns.spread > summary.NOISE and speed <= 1.001:
            low, high = 1.0 / ns.high / scale, 1.0 / ns.low / scale
            shapes += (f'<rect class="h" x="{percent(low)}" y="5" height="3" '
                       f'width="{percent(min(1.0, high) - low)}"/>')
        name = html.escape(_name(names, figure))
        times = ""
        if best is not None and figure is not best:
            value = results.ratio(figure, best)
            times = f"{summary.number(value.value)}×" if value else ""
        lines.append(
            f'<tr class="{css}"><th>{name}</th>'
            f'<td><svg aria-hidden="true">{shapes}</svg></td>'
            f"<td>{summary.number(ns.value)}</td><td>{times}</td></tr>")
    return ("<table><thead><tr><th></th><td></td><th>ns</th><th>× best</th>"
            "</tr></thead><tbody>" + "".join(lines) + "</tbody></table>")


def meter(checked):
    """Where a target's figure stands; the line is the bound."""
    if checked.value is None or checked.bound <= 0.0:
        return ""
    part = max(0.0, min(1.0, 0.6 * checked.value.value / checked.bound))
    css = ' class="over"' if checked.state != "met" else ""
    return (f'<svg aria-hidden="true"><rect{css} y="5" height="11" '
            f'width="{percent(part)}"/>'
            '<line x1="60%" x2="60%" y1="1" y2="20"/></svg>')


# Of the roofline: the symbol of each family of kernels.
FAMILIES = (("route", "circle"), ("bucket", "square"), ("gather", "triangle"),
            ("activate", "diamond"), ("combine", "disc"))


def _mark(symbol, x, y, title):
    """A symbol at x percent, y pixels."""
    paths = {"square": "M-4-4h8v8h-8z", "triangle": "M0-5L5 4H-5z",
             "diamond": "M0-5.5L5.5 0L0 5.5L-5.5 0z"}
    if symbol in paths:
        shape = f'<path class="mark" d="{paths[symbol]}"/>'
    else:
        full = " full" if symbol == "disc" else ""
        shape = f'<circle class="mark{full}" r="4.5"/>'
    text = f"<title>{html.escape(title)}</title>" if title else ""
    # A nested drawing's place may be in percent, a path's may not.
    return (f'<svg x="{percent(x)}" y="{y:.0f}" overflow="visible">{text}'
            f"{shape}</svg>")


def key_mark(symbol):
    return (f'<svg aria-hidden="true" viewBox="-8 -6 16 12">'
            f"{_mark(symbol, 0.0, 0, '')}</svg>")


def caches(text):
    """[(name, bytes)] of "L1 48K, L2 2048K"."""
    scale = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return [(name, int(size) * scale[letter]) for name, size, letter in
            re.findall(r"(L\d) (\d+)([KMG]?)", text)]


def _size(count):
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.0f} {unit}"
    return f"{count:.0f} B"


def roof(measured, kernels):
    """GB/s over the bytes that a call moves, both logarithmic: the best ISA's
    points under the fastest probe's of each level of cache."""
    points, bounds = [], []
    for row in measured.rows.values():
        ours, probe = row.ours(), results.fastest(row.of_kind("probe"))
        if row.kernel not in kernels or row.types or not (
                ours and ours.gb_per_second):
            continue
        points.append((row, ours.bytes, ours.gb_per_second.value))
        if probe and probe.gb_per_second:
            bounds.append((probe.bytes, probe.gb_per_second.value))
    if not points:
        return ""
    height, foot = 400.0, 34.0
    sizes = [p[1] for p in points]
    speeds = [p[2] for p in points] + [b[1] for b in bounds]
    low_x = math.floor(math.log10(min(sizes)) - 0.05)
    high_x = math.ceil(math.log10(max(sizes)) + 0.05)
    low_y = math.log10(min(speeds)) - 0.1
    high_y = math.log10(max(speeds)) + 0.15

    def x(count):
        return (math.log10(count) - low_x) / (high_x - low_x)

    def y(speed):
        return (height - foot) * (high_y - math.log10(speed)) / (high_y - low_y)

    parts = []
    for power in range(low_x, high_x + 1):
        at = percent(x(10.0 ** power))
        parts.append(f'<line class="tick" x1="{at}" x2="{at}" y1="0" '
                     f'y2="{height - foot:.0f}"/>')
        anchor = ("start" if power == low_x else
                  "end" if power == high_x else "middle")
        css = ' class="alternate"' if power % 2 else ""
        parts.append(f'<text{css} x="{at}" y="{height - foot + 16:.0f}" '
                     f'text-anchor="{anchor}">{_size(10.0 ** power)}</text>')
    for power, digit in itertools.product(range(-3, 5), (1, 3)):
        speed = digit * 10.0 ** power
        if not low_y <= math.log10(speed) <= high_y:
            continue
        parts.append(f'<line class="tick" x1="0" x2="100%" y1="{y(speed):.0f}" '
                     f'y2="{y(speed):.0f}"/>')
        parts.append(f'<text x="2" y="{y(speed) - 3:.0f}">{speed:g} GB/s'
                     "</text>")
    edges = [(name, size) for name, size in
             caches(measured.context["data_caches"])
             if 10.0 ** low_x < size < 10.0 ** high_x]
    for name, size in edges:
        at = percent(x(size))
        parts.append(f'<line class="cache" x1="{at}" x2="{at}" y1="0" '
                     f'y2="{height - foot:.0f}"/>')
    for count, speed in bounds:
        parts.append(f'<line class="bound" x1="{percent(x(count) - 0.006)}" '
                     f'x2="{percent(x(count) + 0.006)}" y1="{y(speed):.0f}" '
                     f'y2="{y(speed):.0f}"/>')
    for row, count, speed in points:
        symbol = next((s for f, s in FAMILIES if row.kernel.startswith(f)),
                      "circle")
        parts.append(_mark(symbol, x(count), y(speed),
                           f"{summary.where(row)}: "
                           f"{summary.number(speed)} GB/s"))
    left = 10.0 ** low_x
    for name, size in [*edges, ("memory", 10.0 ** high_x)]:
        under = [speed for count, speed in bounds if left <= count < size]
        if under:
            best = max(under)
            parts.append(f'<line class="roofline" x1="{percent(x(left))}" '
                         f'x2="{percent(x(size))}" y1="{y(best):.0f}" '
                         f'y2="{y(best):.0f}"/>')
            last = size == 10.0 ** high_x
            at = percent(1.0 if last else (x(left) + x(size)) / 2.0)
            parts.append(f'<text class="rooftext" x="{at}" '
                         f'y="{y(best) - 7:.0f}" text-anchor='
                         f'"{"end" if last else "middle"}">{name} {best:.0f} '
                         "GB/s</text>")
        left = size
    label = ("Bandwidth of every kernel and shape over the bytes that a call "
             "moves, under the bandwidth that probes reach in each cache; the "
             "tables below have all figures")
    return (f'<svg class="roof" role="img" aria-label="{label}" '
            f'preserveAspectRatio="none">' + "".join(parts) + "</svg>")
