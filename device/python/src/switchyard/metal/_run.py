# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs kernels with `swy metal run`, in a separate process: a kernel that crashes does not end the tests."""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Sequence

import numpy as np


class MetalError(RuntimeError):
    """Raised for a kernel that does not compile or cannot be run."""


class Place(NamedTuple):
    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Finding:
    """A finding of checked mode. `switchyard/device/findings.h` explains each member."""

    kind: str
    kernel: str
    text: str
    help: str
    where: Place | None
    other: Place | None  # the place of the earlier access of a race
    threadgroup: tuple[int, int, int]
    thread: int | None
    code: str = ""  # the text of the line at `where`

    file = property(lambda self: self.where.file if self.where else "")
    line = property(lambda self: self.where.line if self.where else 0)
    column = property(lambda self: self.where.column if self.where else 0)

    def __str__(self):
        lines = [self.text, self.code and f"code: {self.code}", self.help and f"help: {self.help}"]
        return "\n    ".join(filter(None, lines))


class FindingsError(AssertionError):
    """Raised if there are findings. The member `findings` has them."""

    def __init__(self, findings: Sequence[Finding]):
        self.findings = list(findings)
        super().__init__("\n".join(["the Metal kernel is wrong", *map(str, self.findings)]))


def assert_clean(findings: Sequence[Finding]) -> None:
    """Fails a test if there are findings. The message has each finding's text, line of code and help."""
    __tracebackhide__ = True  # so pytest points at the caller
    if findings:
        raise FindingsError(findings)


@dataclass
class Settings:
    """The defaults of `run`. `metal_kernel` and `compile_shader` use only these."""

    checked: bool = True
    seeds: int = 1  # the number of schedules; the first runs threads in order
    suppress: Sequence[str] = ()  # each has the form "KIND:KERNEL"
    include_folders: Sequence[str | os.PathLike] = ()
    macros: dict = field(default_factory=dict)
    compiler: str = ""  # if empty, clang++ on PATH


settings = Settings()


def _program() -> str:
    # swy may be in this environment, in the folder of `pip install --target`, or on PATH.
    for folder in (sysconfig.get_path("scripts"), str(Path(__file__).parents[2] / "bin")):
        if found := shutil.which("swy", path=folder):
            return found
    if found := shutil.which("swy"):
        return found
    raise MetalError("no program swy: install switchyard-metal, or put it on PATH")


def _bytes_of(index: int, buffer: np.ndarray) -> memoryview:
    kind, size = buffer.dtype.kind, buffer.dtype.itemsize
    if (kind == "f" and size > 4) or (kind == "c" and size > 8) or kind in "OSU":
        raise TypeError(f"buffer {index}: Metal has no {buffer.dtype}")
    if not buffer.flags.c_contiguous:
        raise ValueError(f"buffer {index}: is not contiguous")
    if buffer.nbytes == 0:
        raise ValueError(f"buffer {index}: is empty")
    return memoryview(buffer.reshape(-1).view(np.uint8))


def _sizes(value) -> str:
    return ",".join(str(int(v)) for v in np.atleast_1d(value))


def _place(found) -> Place | None:
    return found and Place(found["file"], found["line"], found["column"])


def run(
    source: str | os.PathLike,
    kernel: str,
    grid,
    threadgroup,
    buffers=(),
    *,
    groups: bool = False,
    unwritten: Sequence[int] = (),
    memory: dict[int, int] | None = None,
    constants: dict | None = None,
    prepend: Sequence[str] = (),
    checked: bool | None = None,
    seeds: int | None = None,
    suppress: Sequence[str] | None = None,
    include_folders=None,
    macros: dict | None = None,
    compiler: str | None = None,
) -> list[Finding]:
    """Dispatches a kernel, and returns the findings.

    source: the kernel's text, or the Path of a .metal file.
    grid, threadgroup: numbers of threads, one to three. With `groups=True`, grid counts threadgroups.
    buffers: arrays by index, in a list (None binds nothing) or a dict. Writable arrays get the
        results of the schedule that runs threads in order. Other values, such as `np.uint32(8)`,
        are converted to arrays and are constants.
    unwritten: indices of buffers without initial values: reading them before a write is a finding.
    memory: lengths of threadgroup memory in bytes, by index.
    constants: values of function constants, by name.
    prepend: texts to compile before the source. The lines of the source still count from 1.
    The other arguments replace members of `settings`.
    """

    def default(value, name):
        return getattr(settings, name) if value is None else value

    items = buffers.items() if isinstance(buffers, dict) else enumerate(buffers)
    given = {index: value for index, value in items if value is not None}
    arrays = {index: np.asarray(value) for index, value in given.items()}
    checked = default(checked, "checked")
    command = [_program(), "metal", "run"]
    with tempfile.TemporaryDirectory(prefix="switchyard-") as folder:

        def write(name, content):
            mode = {"encoding": "utf-8"} if isinstance(content, str) else {"mode": "wb"}
            with open(os.path.join(folder, name), **{"mode": "w", **mode}) as file:
                file.write(content)
            return name

        if isinstance(source, os.PathLike):
            command.append(os.path.abspath(source))
        else:
            command.append(write(f"{kernel}.metal", source))
        command += ["--kernel", kernel, "--groups" if groups else "--grid", _sizes(grid)]
        command += ["--threadgroup", _sizes(threadgroup)]
        for i, text in enumerate(prepend):
            command += ["--prepend", write(f"prepended{i}.metal", text)]
        for include in default(include_folders, "include_folders"):
            command += ["-I", os.path.abspath(include)]
        for name, value in default(macros, "macros").items():
            command += ["-D", f"{name}={value}"]
        for name, value in (constants or {}).items():
            command += ["-c", f"{name}={value}"]
        for index, length in (memory or {}).items():
            command += ["-t", f"{index}={length}"]
        if clang := default(compiler, "compiler"):
            command += ["--compiler", clang]
        written = {}
        for index, array in arrays.items():
            content = _bytes_of(index, array)
            if index in unwritten:
                command += ["-b", f"{index}=u8:empty:{array.nbytes}"]
            else:
                command += ["-b", f"{index}=u8:file:{write(f'{index}.in', content)}"]
            if isinstance(given[index], np.ndarray) and array.flags.writeable:
                written[index] = array
                command += ["--write", f"{index}={index}.out"]
        if checked:
            command += ["--checked", "--json", "findings.json", "--seeds", str(default(seeds, "seeds"))]
            for text in default(suppress, "suppress"):
                command += ["--suppress", text]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode not in (0, 1):
            # If a signal ended swy, the number is negative and swy printed no text.
            why = done.stderr.strip() or f"swy ended by signal {-done.returncode}; checked=True says why"
            raise MetalError(why.removeprefix("swy: "))
        for index, array in written.items():
            np.copyto(array, np.fromfile(os.path.join(folder, f"{index}.out"), array.dtype).reshape(array.shape))
        if not checked:
            return []
        with open(os.path.join(folder, "findings.json"), encoding="utf-8") as file:
            found = json.load(file)["findings"]
        return [_finding(f, folder) for f in found]


def _finding(found: dict, folder: str) -> Finding:
    where = _place(found["where"])
    code = ""
    if where:
        try:
            text = Path(folder, where.file).read_text(encoding="utf-8", errors="replace")
            code = text.split("\n")[where.line - 1].strip()
        except (OSError, IndexError):
            pass  # there may be no file of this name, for example if the place is in a header
    return Finding(
        found["kind"], found["kernel"], found["text"], found["help"] or "", where, _place(found["other"]),
        tuple(found["threadgroup"]), found["thread"], code,
    )
