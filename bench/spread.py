# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that report.py, compare.py and plots.py share: spreads, load, errors, and files.

A spread is the middle half of several measurements: of the runs, if there are at least three, and
otherwise of their rounds, because two runs may agree by luck. The middle half of up to four values is
all of them. The middle half of more values leaves out outliers, because in one process of twenty, all
rounds of a program take twice their usual time. A ratio with a wider spread than its distance from 1
is no result.
"""

import argparse
import json
import os
import pathlib

NO_RESULT = "~"
# The share of the CPUs' time that other processes may use. If they use 5 %, the ratios of two runs
# already differ by more than most cells differ from 1.
MOST_LOAD = 0.05


class InputError(Exception):
    """The input is wrong. The message is one line."""


class Parser(argparse.ArgumentParser):
    """Raises InputError for wrong arguments, where ArgumentParser prints the usage and exits."""

    def error(self, message):
        raise InputError(message)


def middle_half(values):
    """Returns the smallest and the largest value of the middle half."""
    values = sorted(values)
    quarter = (len(values) - 1) // 4
    return values[quarter], values[-1 - quarter]


def is_noise(ratio, half):
    """True if the spread, `half`, is wider than the ratio's distance from 1."""
    return half[1] - half[0] > abs(ratio - 1)


def ratio_text(ratio, half, number="{:.2f}".format):
    """Returns the ratio and its spread as text. If the ratio is noise, a mark replaces it."""
    text = NO_RESULT if is_noise(ratio, half) else number(ratio)
    return f"{text} [{number(half[0])}, {number(half[1])}]"


NO_RESULT_TEXT = (f"{NO_RESULT}: no result, because the spread in brackets is wider than the "
                  "ratio's distance from 1.")


class Load:
    """Measures the CPU time that other programs, and a virtual machine's host, have used since the
    object was made."""

    def __init__(self, stat="/proc/stat"):
        self.stat = stat
        self.begin = self.now()

    def now(self):
        """Returns four numbers of ticks until now: all ticks, the ticks that the host has stolen, the
        ticks of all programs, and the ticks of this program and its children. Returns None if they
        are unknown."""
        try:
            words = pathlib.Path(self.stat).read_text().split()
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, words[1:9])
        except (OSError, ValueError):
            return None
        return (user + nice + system + idle + iowait + irq + softirq + steal, steal,
                user + nice + system, sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK"))

    def shares(self):
        """Returns the shares of CPU time of other programs and of the host, from 0 to 1."""
        end = self.now()
        if self.begin is None or end is None or end[0] == self.begin[0]:
            return 0, 0
        every, stolen, busy, own = (b - a for a, b in zip(self.begin, end))
        return max(0, busy - own) / every, stolen / every


def load_text(when, shares):
    """Returns a warning if other programs and the host use too much CPU time, otherwise ""."""
    others, stolen = shares
    if others + stolen <= MOST_LOAD:
        return ""
    return (f"This machine is loaded: {when}, other programs used {others:.0%} of its "
            f"{os.cpu_count()} CPUs{average_text()}, and the host took {stolen:.0%}. Ratios of "
            "times are noise then; measure again when nothing else runs.")


def average_text():
    try:
        return f", load average {os.getloadavg()[0]:.1f}"
    except OSError:
        return ""


def write_json(path, data):
    """Writes a new file, then replaces the old file, so that a reader never sees a part of it."""
    part = f"{path}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
            file.write("\n")
        os.replace(part, path)
    except OSError:
        if os.path.isfile(part):
            os.remove(part)
        raise
