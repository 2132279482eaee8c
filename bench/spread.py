# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""How certain a measured ratio is, how busy the machine was, errors, and files that are written whole.

report.py, compare.py and plots.py import this. A spread is the middle half of several measurements: of the
runs or, if there are only one or two, of their rounds, because two runs may agree by luck. The
middle half of up to four values is all of them. Of more, it leaves out outliers, because in one
process of twenty a program takes twice as long throughout. A ratio with a wider spread than its
distance from 1 is no result.
"""

import argparse
import json
import os
import pathlib

NO_RESULT = "~"
# The share of the CPUs' time that other processes may use. With a twentieth, the ratio of two
# runs already varies by more than most cells differ from 1.
MOST_LOAD = 0.05


class InputError(Exception):
    """One line about wrong input."""


class Parser(argparse.ArgumentParser):
    """Raises InputError where its base prints the usage and exits."""

    def error(self, message):
        raise InputError(message)


def middle_half(values):
    """The smallest and the largest value of the middle half."""
    values = sorted(values)
    quarter = (len(values) - 1) // 4
    return values[quarter], values[-1 - quarter]


def is_noise(ratio, half):
    """True if the spread, `half`, is wider than the ratio's distance from 1."""
    return half[1] - half[0] > abs(ratio - 1)


def ratio_text(ratio, half, number="{:.2f}".format):
    """The ratio with its spread, or only the spread behind a mark if the ratio is noise."""
    text = NO_RESULT if is_noise(ratio, half) else number(ratio)
    return f"{text} [{number(half[0])}, {number(half[1])}]"


NO_RESULT_TEXT = (f"{NO_RESULT}: no result, because the spread in brackets is wider than the "
                  "ratio's distance from 1.")


class Load:
    """The CPU time that other programs, and a virtual machine's host, have used since the object
    was made."""

    def __init__(self, stat="/proc/stat"):
        self.stat = stat
        self.begin = self.now()

    def now(self):
        """Ticks: all, stolen by the host, in programs, and in this program and its children."""
        try:
            words = pathlib.Path(self.stat).read_text().split()
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, words[1:9])
        except (OSError, ValueError):
            return None
        return (user + nice + system + idle + iowait + irq + softirq + steal, steal,
                user + nice + system, sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK"))

    def shares(self):
        """The shares of other programs and of the host, from 0 to 1."""
        end = self.now()
        if self.begin is None or end is None or end[0] == self.begin[0]:
            return 0, 0
        every, stolen, busy, own = (b - a for a, b in zip(self.begin, end))
        return max(0, busy - own) / every, stolen / every


def load_text(when, shares):
    """A warning if others use too much of the machine for measurements, otherwise ""."""
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
    """Replaces the file with a whole one, so that a reader never sees a part of it."""
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
