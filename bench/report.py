#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tables, a page and the targets' state from what switchyard_bench
measured.

Each FILE is what one process wrote with --benchmark_out=FILE; several of one
machine are one report. Without an option: ten lines that say what matters.
Exit codes: 0; 2 for wrong input, in a line on stderr, with nothing written.
"""

import argparse
import os
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True  # the sources' folder stays as it is

from reporting import checks, html_page, markdown, results, summary

WIDTH = 80


class _Parser(argparse.ArgumentParser):
    """One line instead of the usage and a line."""

    def error(self, message):
        raise results.InputError(message)


def _arguments(argv):
    parser = _Parser(prog="report.py", allow_abbrev=False,
                     description=__doc__,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="Google Benchmark's JSON")
    parser.add_argument("--markdown", metavar="OUT", help="write all tables")
    parser.add_argument("--html", metavar="OUT",
                        help="write a page, with everything in the one file")
    parser.add_argument("--targets", action="store_true",
                        help="print each target, met or not")
    return parser.parse_args(argv)


def _wrap(text, first="", rest="  "):
    return textwrap.fill(text, WIDTH, initial_indent=first,
                         subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)


def _print_targets(report):
    for checked in report.checked:
        state = checked.state
        head = (f"{state if state == checks.MET else state.upper():8}"
                f"{summary.reached(checked):>20} {summary.bound(checked):>9}  ")
        print(_wrap(checked.what, head, " " * 12))
    print(_wrap(summary.ten_lines(report)[-1] + "."))


def _write(texts):
    """All files or, as far as can be told beforehand, none."""
    written = []
    try:
        for option, path, text in texts:
            try:
                if os.path.isdir(path):
                    raise IsADirectoryError(0, "Is a directory")
                target = os.path.realpath(path)
                if os.path.exists(target) and not os.path.isfile(target):
                    with open(target, "w", encoding="utf-8",
                              errors="replace") as file:
                        file.write(text)
                    continue
                # What is there keeps its name until all are complete.
                handle, temporary = tempfile.mkstemp(
                    dir=os.path.dirname(target), prefix=".report-")
                written.append((option, temporary, target))
                with os.fdopen(handle, "w", encoding="utf-8",
                               errors="replace") as file:
                    file.write(text)
                umask = os.umask(0)
                os.umask(umask)
                os.chmod(temporary, 0o666 & ~umask)
            except OSError as error:
                raise results.InputError(
                    f"{option} {path}: {error.strerror}") from error
        while written:
            option, temporary, path = written[0]
            try:
                os.replace(temporary, path)
            except OSError as error:
                raise results.InputError(
                    f"{option} {path}: {error.strerror}") from error
            written.pop(0)
    finally:
        for _, temporary, _ in written:
            os.unlink(temporary)


def main(argv):
    try:
        arguments = _arguments(argv)
        texts = [("--markdown", arguments.markdown, markdown.render),
                 ("--html", arguments.html, html_page.render)]
        for option, path, _ in texts:
            if path == "":
                raise results.InputError(f"{option}: empty")
        report = summary.Report.of(results.read(arguments.files))
        _write([(option, path, render(report))
                for option, path, render in texts if path is not None])
        if arguments.targets:
            _print_targets(report)
        elif arguments.markdown is None and arguments.html is None:
            for line in summary.ten_lines(report):
                print(_wrap(f"{line}."))
        sys.stdout.flush()
    except results.InputError as error:
        print("report.py: " + " ".join(str(error).split()), file=sys.stderr)
        return 2
    except OSError as error:
        # Of stdout, which may be flushed once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"report.py: standard output: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))
