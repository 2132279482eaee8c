# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the benchmarks' command lines. Reports an error in one line, with exit code 2."""

import argparse
import math


class Parser(argparse.ArgumentParser):
    def __init__(self, description):
        super().__init__(description=description, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def count(text):
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 20:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {1 << 20}, not '{text}'")
    return int(text)


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a time above 0, not '{text}'")
    return value
