# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that the benchmarks print one line for a wrong command line, and exit with 2."""

import importlib
import pathlib

import pytest

BENCH = pathlib.Path(__file__).parents[1] / "bench"


@pytest.mark.parametrize("program, line, message", (
    ("moe_block", "--nope", "unrecognized arguments: --nope"),
    ("moe_block", "--shape qwen", "argument --shape: invalid choice: 'qwen'"),
    ("moe_block", "--layers 0", "argument --layers: expected a number from 1 to 1048576, not '0'"),
    ("moe_block", "--tokens 1 0", "argument --tokens: expected a number from 1 to 1048576, not '0'"),
    ("moe_block", "--seconds -1", "argument --seconds: expected a time above 0, not '-1'"),
    ("moe_block", "--rivals eagre", "argument --rivals: invalid choice: 'eagre'"),
    ("accuracy", "--model x", "--model and --text go together"),
    ("accuracy", "--formats q5", "argument --formats: invalid choice: 'q5'"),
    ("memory", "--loaded-layers 0", "argument --loaded-layers: expected a number from 1 to 1048576"),
    ("model", "--prefill x", "argument --prefill: expected a number from 1 to 1048576, not 'x'"),
    ("model", "--seconds nan", "argument --seconds: expected a time above 0, not 'nan'"),
    ("model", "--experts-dtype q5", "argument --experts-dtype: invalid choice: 'q5'"),
    ("model", "--thread 2", "unrecognized arguments: --thread 2")))
def test_a_wrong_argument_is_one_line(program, line, message, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCH))
    with pytest.raises(SystemExit) as end:
        importlib.import_module(program).main(line.split())
    said = capsys.readouterr()
    assert end.value.code == 2 and said.out == ""
    assert message in said.err and said.err.count("\n") == 1
