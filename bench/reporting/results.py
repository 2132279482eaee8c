# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""What switchyard_bench measured: reads Google Benchmark's JSON, one file per
process, and boils it down to a figure per kernel, shape and contender.

A figure is the median over the processes of each one's median; a ratio is the
median over the processes of the ratios within each. Both keep their smallest
and largest process, the spread.
"""

import dataclasses
import json
import os
import re
import statistics

# What a contender's name may begin with; every other one is Switchyard's own.
RIVALS = ("plain", "engine", "onednn", "ggml", "probe")
NAMES = {
    "plain": "plain C++",
    "engine": "engine",
    "onednn": "oneDNN",
    "ggml": "ggml",
    "probe": "probe",
}
# Ratios closer to 1 than this are a tie.
TIE = 0.03
# Of the machine and the build: the same in all files of a report.
MACHINE = ("cpu_model", "num_cpus", "data_caches", "isas", "compiler",
           "highway", "tbb", "onednn", "ggml")
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# What Google Benchmark appends to a name.
_SUFFIX = re.compile(r"(iterations|repeats|threads|min_time|min_warmup_time):"
                     r"[^/]*|(manual|real|process)_time")


def number(value):
    """Three digits or so."""
    size = abs(value)
    digits = (0 if size >= 999.95 else 1 if size >= 9.995 else
              2 if size >= 0.0995 or size == 0.0 else 3)
    return f"{value:.{digits}f}"


class InputError(Exception):
    """What is wrong with a file, in a line."""


@dataclasses.dataclass(frozen=True)
class Value:
    """A figure or a ratio, with its smallest and largest process."""
    value: float
    low: float
    high: float
    processes: int

    @property
    def spread(self):
        return (self.high - self.low) / abs(self.value) if self.value else 0.0

    @staticmethod
    def of(samples):
        return Value(statistics.median(samples), min(samples), max(samples),
                     len(samples))


@dataclasses.dataclass
class Figure:
    """A contender at a shape, without its types. `samples` has ns per unit, by
    process."""
    contender: str
    samples: dict = dataclasses.field(default_factory=dict)
    per_second: dict = dataclasses.field(default_factory=dict)  # GB, by process
    units: float = 0.0
    bytes: float = 0.0

    @property
    def kind(self):
        kind = self.contender.split(":")[0]
        return kind if kind in RIVALS else "ours"

    @property
    def threads(self):
        last = self.contender.split(":")[-1]
        return int(last) if ":" in self.contender and last.isdigit() else 1

    @property
    def base(self):
        """Without the threads."""
        return self.contender if self.threads == 1 else (
            self.contender.rsplit(":", 1)[0])

    @property
    def is_peer(self):
        """Whether it does the same work: oneDNN's softmax alone does not."""
        return self.kind in RIVALS and self.kind != "probe" and (
            ":" not in self.base)

    @property
    def ns(self):
        return Value.of(list(self.samples.values()))

    @property
    def gb_per_second(self):
        samples = list(self.per_second.values())
        return Value.of(samples) if samples else None


def ratio(one, other):
    """The time of one over the other's, in the processes that ran both."""
    both = [process for process in one.samples if process in other.samples]
    if not both:
        return None
    return Value.of([one.samples[p] / other.samples[p] for p in both])


def fastest(figures):
    return min(figures, key=lambda figure: figure.ns.value, default=None)


@dataclasses.dataclass
class Row:
    """A kernel at a shape on rows of some types, "" for f32: its contenders, in
    the order of the report."""
    kernel: str
    shape: str
    types: str
    unit: str
    model: str
    figures: dict = dataclasses.field(default_factory=dict)

    @property
    def where(self):
        """The shape and, unless they are f32, the types."""
        return self.shape + (f" {self.types}" if self.types else "")

    def ours(self, threads=1):
        """The best ISA's; contenders are sorted."""
        return next((f for f in self.figures.values()
                     if f.kind == "ours" and f.threads == threads), None)

    def of_kind(self, kind, threads=1):
        return [f for f in self.figures.values()
                if f.kind == kind and f.threads == threads]

    def peers(self, threads=1):
        return [f for f in self.figures.values()
                if f.is_peer and f.threads == threads]


@dataclasses.dataclass
class Results:
    context: dict
    dates: list
    load: float  # the largest at the start of a process; 0 if not known
    repetitions: int
    processes: int  # that timed the same
    isas: list
    rows: dict  # (kernel, shape, types): Row

    def row(self, kernel, shape, types=""):
        return self.rows.get((kernel, shape, types))

    def kernels(self):
        """Each kernel's rows, in the order they ran in."""
        kernels = {}
        for row in self.rows.values():
            kernels.setdefault(row.kernel, []).append(row)
        return kernels


def split_name(name):
    """kernel, shape, contender of a benchmark's name."""
    parts = name.split("/")
    while parts and _SUFFIX.fullmatch(parts[-1]):
        parts.pop()
    if len(parts) < 3 or "" in parts:
        raise InputError(f"{name}: not kernel/shape/contender")
    return parts[0], "/".join(parts[1:-1]), parts[-1]


def split_types(contender):
    """"AVX2:2" and "bf16" of "AVX2@bf16:2"."""
    head, colon, rest = contender.partition(":")
    name, at, types = head.partition("@")
    if at and not (name and types):
        raise InputError(f"{contender}: not contender@types")
    return name + colon + rest, types


def _number(entry, key, name, above_zero):
    value = entry.get(key)
    # No kernel takes or moves as much as 1e18 of anything.
    if (isinstance(value, bool) or not isinstance(value, (int, float)) or
            not 0 <= value <= 1e18 or (above_zero and value < 1e-9)):
        what = "a number above 0" if above_zero else "a number from 0 on"
        raise InputError(f"{name}: {key} is not {what}")
    return float(value)


def _load(path):
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read().decode("utf-8"))
    except OSError as error:
        raise InputError(error.strerror or "cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise InputError("not JSON") from error
    if not (isinstance(data, dict) and isinstance(data.get("context"), dict) and
            isinstance(data.get("benchmarks"), list)):
        raise InputError("not Google Benchmark's JSON: it has no context or no "
                         "benchmarks")
    for key in ("cpu_model", "data_caches", "isas"):
        if not isinstance(data["context"].get(key), str):
            raise InputError(f"not from switchyard_bench: its context has no "
                             f"{key}")
    if not data["context"]["isas"].split():
        raise InputError("its context's isas are empty")
    return data


def _load_average(context):
    """Over the last minute."""
    loads = context.get("load_avg")
    load = loads[0] if isinstance(loads, list) and loads else 0.0
    number = isinstance(load, (int, float)) and not isinstance(load, bool)
    return float(load) if number and 0.0 <= load < 1e6 else 0.0


def _place(entry):
    """Google Benchmark writes entries as they end, in random order."""
    place = [entry.get(key) for key in ("family_index",
                                        "per_family_instance_index")]
    return place if all(isinstance(p, int) for p in place) else [0, 0]


def _entries(data):
    """(name, entry) of all that was timed, as it was registered."""
    found = []
    for entry in data["benchmarks"]:
        if not (isinstance(entry, dict) and isinstance(entry.get("name"), str)):
            raise InputError("not Google Benchmark's JSON: a benchmark has no "
                             "name")
        name = " ".join(entry["name"].split())
        if entry.get("error_occurred"):
            message = " ".join(str(entry.get("error_message", "")).split())
            raise InputError(f"{name}: failed: {message or 'no reason given'}")
        if entry.get("run_type") == "aggregate":
            continue
        found.append((name, entry))
    if not found:
        raise InputError("nothing was timed, or only aggregates were kept")
    return sorted(found, key=lambda pair: _place(pair[1]))


def _add_file(rows, data, process):
    """Appends a process's medians; returns how many repetitions it made."""
    times = {}
    for name, entry in _entries(data):
        kernel, shape, contender = split_name(name)
        contender, types = split_types(contender)
        time_unit = entry.get("time_unit", "ns")
        if not isinstance(time_unit, str) or time_unit not in _NS:
            raise InputError(f"{name}: time_unit is none of {', '.join(_NS)}")
        ns = _number(entry, "real_time", name, True) * _NS[time_unit]
        units = _number(entry, "units", name, True)
        bytes_moved = _number(entry, "bytes", name, False)
        label = entry.get("label", "")
        if not isinstance(label, str) or not label.split(";")[0].strip():
            raise InputError(f"{name}: its label names no unit")
        key = (kernel, shape, types)
        if key not in rows:
            unit, _, model = label.partition(";")
            rows[key] = Row(kernel, shape, types, unit.strip(), model.strip())
        figure = rows[key].figures.setdefault(contender, Figure(contender))
        if figure.units == 0.0:
            figure.units, figure.bytes = units, bytes_moved
        elif (figure.units, figure.bytes) != (units, bytes_moved):
            raise InputError(f"{name}: its units or bytes are not always the "
                             "same")
        times.setdefault((key, contender), []).append(
            (ns / units, bytes_moved / ns))
    for (key, contender), samples in times.items():
        figure = rows[key].figures[contender]
        figure.samples[process] = statistics.median(s[0] for s in samples)
        per_second = statistics.median(s[1] for s in samples)
        if per_second > 0.0:
            figure.per_second[process] = per_second
    return max(len(samples) for samples in times.values())


def read(paths):
    """Results of all files; InputError, beginning with the file's name."""
    rows, first, dates, load, repetitions = {}, None, [], 0.0, 0
    real = [os.path.realpath(path) for path in paths]
    for process, path in enumerate(paths):
        if real[process] in real[:process]:
            raise InputError(f"{path}: given twice")
    for process, path in enumerate(paths):
        try:
            data = _load(path)
            context = data["context"]
            if first is None:
                first = context
            for key in MACHINE:
                if context.get(key) != first.get(key):
                    raise InputError(
                        f"{key} is {context.get(key)}, but {first.get(key)} in "
                        f"{paths[0]}: not one machine and build")
            repetitions = max(repetitions, _add_file(rows, data, process))
            if isinstance(context.get("date"), str):
                dates.append(context["date"])
            load = max(load, _load_average(context))
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
    isas = first["isas"].replace(",", " ").split()

    def place(figure):
        known = figure.base in isas
        return (RIVALS.index(figure.kind) + 1 if figure.kind != "ours" else 0,
                figure.threads,
                isas.index(figure.base) if known else len(isas))

    for row in rows.values():
        row.figures = {f.contender: f
                       for f in sorted(row.figures.values(), key=place)}
    processes = max(len(figure.samples) for row in rows.values()
                    for figure in row.figures.values())
    return Results(first, sorted(dates), load, repetitions, processes, isas,
                   rows)
