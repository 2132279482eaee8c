#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""test_names.py BUILD: checks that parameters of tests have names.

GoogleTest prints the bytes of a parameter that has neither operator<< nor PrintTo(), as
"4-byte object <01-00 00-00>". CMake makes that a part of a test's name, and each failure
prints it. Reads the names in the lists that CMake made, and in the list that each program prints.
Does not ask ctest, because that would overwrite the log of the run that this test is part of.
"""

import os
import pathlib
import re
import subprocess
import sys

TEST = re.compile(r"^add_test\(\[=+\[(.*?)\]=+\]\s+(?:\[=+\[)?(.*?)(?:\]=+\])? \[=+\[--gtest_filter=")


def main(build):
    tests = [match.groups() for path in pathlib.Path(build).rglob("*_tests.cmake")
             for match in map(TEST.match, path.read_text(encoding="utf-8").splitlines()) if match]
    if not tests:
        sys.exit(f"FAILED: no test in {build}")
    wrong = [name for name, _ in tests if "-byte object <" in name]
    programs = sorted({program for _, program in tests if os.path.exists(program)})
    for program in programs:
        listed = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE,
                                text=True, check=True).stdout
        wrong += [f"{os.path.basename(program)}: {line.strip()}" for line in listed.splitlines()
                  if "-byte object <" in line]
    print(f"{len(tests)} tests in {len(programs)} programs")
    if wrong:
        sys.exit("\n".join(["FAILED: bytes of a parameter for its name:", *wrong]))


if __name__ == "__main__":
    main(*sys.argv[1:])
