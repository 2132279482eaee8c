# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Holds what was measured against the targets."""

import dataclasses
import fnmatch
import re

import targets
from reporting import results

MET, NOT_MET, NOT_RUN = "met", "not met", "not run"


@dataclasses.dataclass(frozen=True)
class Checked:
    """A target, and what became of it."""
    kernel: str
    shape: str
    text: str
    bound: float
    at_least: bool
    value: object = None  # results.Value; None if it was not run
    ns: object = None     # of the contender in question, where value is a ratio
    note: str = ""        # at which shape, why not

    @property
    def state(self):
        if self.value is None:
            return NOT_RUN
        good = (self.value.value >= self.bound if self.at_least else
                self.value.value <= self.bound)
        return MET if good else NOT_MET

    @property
    def what(self):
        """Kernel, shape, text, and the time behind a ratio."""
        where = f"{self.kernel}, {self.shape}" if self.shape else self.kernel
        notes = [self.note] if self.note else []
        if self.ns:
            notes.append(f"{results.number(self.ns.value)} ns")
        return f"{where}: {self.text}" + (
            f" ({'; '.join(notes)})" if notes else "")


@dataclasses.dataclass(frozen=True)
class Standing:
    """Where the best ISA stands beside the fastest that does the same work."""
    row: results.Row
    ours: results.Figure
    peer: results.Figure
    ratio: results.Value
    excepted: bool = False

    @property
    def place(self):
        if self.ratio.value > 1.0 + results.TIE:
            return "behind"
        return "tie" if self.ratio.value > 1.0 - results.TIE else "first"

    @property
    def words(self):
        """Of one that is not first."""
        if self.excepted:
            return "does less"
        if self.place == "tie":
            return f"within {100.0 * results.TIE:.0f} %"
        return ("slower" if self.ratio.low > 1.0 + results.TIE else
                "slower, not always")


def expand(pattern):
    """"{a,b}c" is "ac" and "bc", each once."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    found = {}
    for choice in match[1].split(","):
        replaced = pattern[:match.start()] + choice + pattern[match.end():]
        found.update(dict.fromkeys(expand(replaced)))
    return list(found)


def _excepted(row, peer):
    return any(fnmatch.fnmatchcase(row.kernel, kernel) and
               fnmatch.fnmatchcase(row.shape, shape) and
               peer.contender == contender
               for kernel, shape, contender in targets.EXCEPTIONS)


def standings(measured):
    """Each row of KERNELS that has peers, once per number of threads;
    exceptions a second time, marked."""
    found = []
    for row in measured.rows.values():
        on_threads = row.kernel == targets.ON_THREADS
        if not on_threads and row.kernel not in targets.KERNELS:
            continue
        for threads in sorted({f.threads for f in row.figures.values()}):
            ours = row.ours(threads)
            if ours is None or (on_threads and threads == 1):
                continue
            for excepted in (False, True):
                peer = results.fastest(
                    [f for f in row.peers(threads)
                     if _excepted(row, f) == excepted])
                ratio = results.ratio(ours, peer) if peer else None
                if ratio:
                    found.append(Standing(row, ours, peer, ratio, excepted))
    return found


class _Missing(Exception):
    """What a target needs and was not run."""


def _isa(measured, contender):
    name, colon, way = results.split_types(contender)[0].partition(":")
    if name == "best":
        name = measured.isas[0]
    if name == "AVX-512":
        name = next((i for i in measured.isas if i.startswith("AVX3")), name)
    return name + colon + way


def _figure(measured, kernel, shape, contender):
    contender, types = results.split_types(contender)
    row = measured.row(kernel, shape, types)
    if row is None:
        of = f" of {types}" if types else ""
        raise _Missing(f"no {kernel}/{shape}{of}")
    if contender.startswith("fastest "):
        figure = results.fastest(row.of_kind(contender.split()[1]))
    else:
        figure = row.figures.get(_isa(measured, contender))
    if figure is None:
        raise _Missing(f"no {contender}")
    return figure


def _combine(function, *figures):
    """function of the figures' ns per unit, in each process that ran all."""
    processes = [p for p in figures[0].samples
                 if all(p in f.samples for f in figures)]
    if not processes:
        raise _Missing("never in one process")
    return results.Value.of(
        [function(*(f.samples[p] for f in figures)) for p in processes])


def _ratio(one, other):
    return _combine(lambda a, b: a / b, one, other)


def _speed_up(measured, spec, kernel, shape):
    name = _isa(measured, spec.contender)
    ours = [_figure(measured, kernel, shape, n) for n in (name, name + ":2")]
    try:
        probe = [_figure(measured, kernel, shape, n)
                 for n in ("probe", "probe:2")]
    except _Missing:
        return ours[0].ns, _ratio(*ours), ""
    gain = _ratio(*probe).value
    scale = max(1.0, gain / 2.0)
    value = _combine(lambda a, b: a / b / scale, *ours)
    note = f"the probe gains {gain:.2f}" if scale > 1.0 else ""
    return ours[0].ns, value, note


def _worst(pairs):
    """The largest of (value, note)."""
    return max(pairs, key=lambda pair: pair[0].value)


def _evaluate(measured, spec, kernel, shape):
    """(ns of the first contender or None, value, note)."""
    def figure(contender, where=shape):
        return _figure(measured, kernel, where, contender)

    if isinstance(spec, targets.Ratio):
        one = figure(spec.one)
        other = figure(spec.other)
        note = other.contender if spec.other.startswith("fastest ") else ""
        return one.ns, _ratio(one, other), note
    if isinstance(spec, targets.Ns):
        one = figure(spec.contender)
        units = one.units if spec.per_call else 1.0
        return None, _combine(lambda a: a * units, one), ""
    if isinstance(spec, targets.Above):
        return None, _combine(lambda a, b: a - b, figure(spec.one),
                              figure(spec.other)), ""
    if isinstance(spec, targets.SpeedUp):
        return _speed_up(measured, spec, kernel, shape)
    if isinstance(spec, targets.Slowdown):
        one = figure(_isa(measured, spec.contender))
        two = figure(one.contender + ":2")
        return one.ns, _ratio(two, one), ""
    if isinstance(spec, targets.WorstShape):
        value, note = _worst(
            (_ratio(figure(spec.contender, shape.replace("@", name)),
                    figure(spec.contender, shape.replace("@", base))), name)
            for name, base in spec.pairs)
        return None, value, note
    assert isinstance(spec, targets.WorstRow), spec
    rows = [s for s in standings(measured)
            if s.row.kernel == kernel and not s.excepted]
    if not rows:
        raise _Missing("no peer ran")
    worst = max(rows, key=lambda s: s.ratio.value)
    return worst.ours.ns, worst.ratio, (
        f"{worst.row.where}, {worst.peer.contender}")


def _takes(measured, target, row):
    """Whether a call takes as long as the target says."""
    ours = row.figures.get(_isa(measured, target.figure.contender))
    if ours is None:
        return False
    low, high = target.serial_us
    return low <= 1e-3 * ours.ns.value * ours.units < high


def _shapes(measured, kernel, target):
    """The target's shapes: those there are for a "*", else what it names."""
    for shape in expand(target.shape):
        if "*" not in shape:
            yield shape
            continue
        rows = [row for row in measured.rows.values()
                if row.kernel == kernel and not row.types and
                fnmatch.fnmatchcase(row.shape, shape)]
        if target.serial_us:
            rows = [row for row in rows if _takes(measured, target, row)]
        yield from [row.shape for row in rows] or [shape]


def check(measured):
    """A Checked for each target."""
    checked = []
    for target in targets.TARGETS:
        spec = target.figure
        contender = getattr(spec, "contender", getattr(spec, "one", "best"))
        text = target.text.replace("{isa}", _isa(measured, contender)).replace(
            "AVX-512", _isa(measured, "AVX-512"))
        for kernel in expand(target.kernel):
            for shape in _shapes(measured, kernel, target):
                value = ns = None
                try:
                    ns, value, note = _evaluate(measured, spec, kernel, shape)
                except _Missing as missing:
                    note = str(missing)
                checked.append(
                    Checked(kernel, shape.replace("/@", "").replace("@/", ""),
                            text, target.bound, target.at_least, value, ns,
                            note))
    return checked
