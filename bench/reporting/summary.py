# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""What matters of a run in ten lines, and how figures are written."""

import collections
import dataclasses
import statistics

import targets
from reporting import checks, results

# Processes further apart than this are shown beside their median.
NOISE = 0.05
# The kernels whose time is that of their bytes, if these do not fit a cache.
MOVERS = ("gather", "activate", "combine", "combine_indexed")


number = results.number


def percent(part):
    return f"{100.0 * part:.0f} %"


def ratio(value):
    """"0.65", with its processes where they are apart: "0.65 [0.61, 0.72]"."""
    if value is None:
        return "-"
    text = number(value.value)
    if value.spread <= NOISE:
        return text
    return f"{text} [{number(value.low)}, {number(value.high)}]"


def median(checked):
    """A target's figure; with more digits if it misses the bound by these."""
    text = number(checked.value.value)
    if checked.state == checks.NOT_MET and text == number(checked.bound):
        return f"{checked.value.value:.4g}"
    return text


def reached(checked):
    """A target's figure, always with its processes."""
    value = checked.value
    if value is None:
        return "-"
    text = median(checked)
    if value.processes > 1:
        text += f" [{number(value.low)}, {number(value.high)}]"
    return text


def bound(checked):
    return f"{'>=' if checked.at_least else '<='} {number(checked.bound)}"


def contender(name):
    """As it is called in a heading."""
    kind, _, rest = name.partition(":")
    if kind in results.NAMES:
        kind = results.NAMES[kind]
    if rest.isdigit():
        return f"{kind}, {rest} threads"
    words = rest.replace(":", ", ").replace("_", " ")
    return f"{kind}, {words}" if rest else kind


def shape(row):
    return row.where + (f", {row.model}" if row.model else "")


def where(row):
    return f"{row.kernel} {row.where}"


@dataclasses.dataclass(frozen=True)
class Range:
    """A ratio over all rows that have it."""
    low: float
    low_at: str
    median: float
    high: float
    high_at: str
    rows: int


def over_rows(pairs):
    """Range of (ratio, row); None without any."""
    pairs = sorted(pairs, key=lambda pair: pair[0])
    if not pairs:
        return None
    return Range(pairs[0][0], where(pairs[0][1]),
                 statistics.median(p[0] for p in pairs), pairs[-1][0],
                 where(pairs[-1][1]), len(pairs))


@dataclasses.dataclass
class Report:
    """A run with everything that is said of it."""
    measured: results.Results
    checked: list
    standings: list

    @staticmethod
    def of(measured):
        return Report(measured, checks.check(measured),
                      checks.standings(measured))

    def kernels(self):
        """Each kernel's rows: KERNELS, then what else was run."""
        found = self.measured.kernels()
        first = [k for k in targets.KERNELS if k in found]
        return {k: found[k] for k in [*first, *found]}

    @property
    def places(self):
        """How many rows are first, a tie, behind."""
        return collections.Counter(s.place for s in self.standings
                                   if not s.excepted)

    @property
    def states(self):
        return collections.Counter(c.state for c in self.checked)

    @property
    def not_first(self):
        """Rows that are not first, the worst on top."""
        return sorted((s for s in self.standings if s.place != "first"),
                      key=lambda s: -s.ratio.value)

    def against(self, contender_name):
        """Range of the best ISA over a contender, on one thread, in the rows
        of the standings."""
        pairs = []
        for row in self._rows():
            other = row.figures.get(contender_name)
            value = other and results.ratio(row.ours(), other)
            if value:
                pairs.append((value.value, row))
        return over_rows(pairs)

    def against_probes(self, kernels):
        pairs = []
        for row in self._rows():
            # What is converted is not moved only.
            if row.kernel not in kernels or "-" in row.types:
                continue
            probe = results.fastest(row.of_kind("probe"))
            value = probe and results.ratio(row.ours(), probe)
            if value:
                pairs.append((value.value, row))
        return over_rows(pairs)

    def _rows(self):
        rows = {}
        for standing in self.standings:
            if standing.row.ours() and standing.ours.threads == 1:
                rows[where(standing.row)] = standing.row
        return rows.values()

    def onednn_parts(self):
        """oneDNN's contenders that do a part of the work."""
        return sorted({f.contender for row in self._rows()
                       for f in row.of_kind("onednn") if not f.is_peer})

    def machine(self):
        context = self.measured.context
        cores = context.get("num_cpus")
        return (f"{context['cpu_model']}, "
                f"{f'{cores} cores, ' if cores else ''}"
                f"{context['data_caches']}; {' '.join(self.measured.isas)}")

    def build(self):
        context = self.measured.context
        return ", ".join(
            [str(context.get("compiler", "compiler unknown"))] +
            [f"{name} {context[key]}" for key, name in
             (("highway", "Highway"), ("tbb", "TBB"), ("onednn", "oneDNN"),
              ("ggml", "ggml")) if key in context])

    def when(self):
        dates, load = self.measured.dates, self.measured.load
        text = dates[0][:16].replace("T", " ") if dates else "date unknown"
        return text + (f", load average {number(load)}" if load else "")

    def how(self):
        processes, repetitions = (self.measured.processes,
                                  self.measured.repetitions)
        return (f"{processes} process{'es' if processes > 1 else ''} a kernel, "
                f"{repetitions} repetition{'s' if repetitions > 1 else ''} in "
                "each")


def _range(name, found, missing):
    if found is None:
        return f"{name}: {missing}"
    return (f"{name}: {number(found.low)} ({found.low_at}) to "
            f"{number(found.high)} ({found.high_at}), median "
            f"{number(found.median)} of {found.rows} rows")


def _not_first(report):
    behind = [s for s in report.not_first if not s.excepted]
    if not behind:
        return "No peer is as fast in any row"
    named = [f"{where(s.row)} ({contender(s.peer.contender)}: "
             f"{number(s.ratio.value)})" for s in behind[:4]]
    more = len(behind) - len(named)
    return ("As fast or faster: " + "; ".join(named) +
            (f"; {more} more below" if more else ""))


def _targets(report):
    states = report.states
    total = len(report.checked)
    text = f"Targets: {states[checks.MET]} of {total} met"
    if states[checks.NOT_MET]:
        text += f", {states[checks.NOT_MET]} not met"
    if states[checks.NOT_RUN]:
        text += f", {states[checks.NOT_RUN]} NOT RUN"
    return text


def ten_lines(report):
    """(plain text, without a full stop)."""
    places = report.places
    rows = sum(places.values())
    onednn = _range("Time over oneDNN's for the same work",
                    report.against("onednn"), "none in this run")
    for part in report.onednn_parts():
        onednn += "; " + _range(f"over {contender(part)} alone",
                                report.against(part), "none")
    return [
        f"Machine: {report.machine()}",
        f"Build: {report.build()}; {report.when()}",
        f"Measured by Google Benchmark: {report.how()}, medians of the "
        "processes' medians; every result verified beforehand; one thread "
        "unless said",
        f"First in {places['first']} of {rows} rows where a peer does the same "
        f"work, {places['tie']} within {percent(results.TIE)}, "
        f"{places['behind']} behind",
        _not_first(report),
        _range("Time over plain C++'s (-O3 -march=native)",
               report.against("plain"), "none in this run") + "; " +
        _range("over an engine's usual loop's", report.against("engine"),
               "none"),
        onednn,
        _range("Time over ggml's", report.against("ggml"),
               "none in this run: its CMake package was not found"
               if report.measured.context.get("ggml") == "none" else
               "none in this run"),
        _range("Time over the fastest probe's, which only moves the bytes: "
               "gather, activate, combine",
               report.against_probes(MOVERS), "none in this run"),
        _targets(report),
    ]
