# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Grades a router: which rows differ from the expected ones, and the probable cause.

    python -m switchyard.grade module:function [--only PATTERN]

calls function(logits, top_k, options, **inputs) once for each case. The arguments:

* logits: a float32 tensor [tokens, num_experts]. With the option shared_logits it has more columns,
  for the shared experts.
* top_k: the number of experts of a token.
* options: a dict with all options of RouteTopK by name: flags are bool, enumerators are texts such
  as "sigmoid". conformance/README.md explains them.
* inputs: only the inputs that the case has. correction_bias is float32 [num_experts], or [num_biases,
  num_experts] with bias_index, int64 [tokens]. expert_scale is float32 [num_experts]. token_mask
  is bool [tokens], False for a padding token.

The function returns ids and weights, each [tokens, top_k + num_shared_experts], as tensors, arrays
or lists. It may return the weights of zero experts, [tokens], as a third value. If it raises
an exception, the report lists the case as unsupported, with the exception.

The exit code is 0 if the router is right, 1 if a row differs, and 2 if the arguments are wrong.
"""

import argparse
import importlib
import sys
import typing

import torch

import switchyard  # loads the operators

_HEADER = "switchyard-router 1"
_INPUTS = {"logits": torch.float32, "correction_bias": torch.float32, "bias_index": torch.int64,
           "expert_scale": torch.float32, "token_mask": torch.bool}
_KINDS = {"flag": lambda text: bool(int(text)), "count": int, "number": float, "name": str}


class Case(typing.NamedTuple):
    """A case: the inputs and options of one call of a router."""

    name: str
    logits: torch.Tensor
    top_k: int
    options: dict
    inputs: dict


class Result(typing.NamedTuple):
    """The report on a router, and whether the router is right."""

    report: str
    is_right: bool


def _options():
    """Returns a dict from each option's name to its kind and its default."""
    lines = (line.split() for line in torch.ops.switchyard.route_options().splitlines())
    return {name: (_KINDS[kind], _KINDS[kind](value)) for name, kind, value in lines
            if not name.startswith("needs_")}


def _read_case(lines, known):
    """Reads a case from the lines after its header."""
    name, top_k = "", 0
    options = {option: default for option, (_, default) in known.items()}
    inputs = {}
    for line in lines:
        key, *words = line.split()
        if key == "end":
            break
        if key == "case":
            name, = words
        elif key == "top_k":
            top_k = int(words[0])
        elif key == "option":
            options[words[0]] = known[words[0]][0](words[1])
        elif key in _INPUTS or key in ("ids", "weights", "identity_weights"):
            rows = [next(lines).split() for _ in range(int(words[0]))]
            if key in _INPUTS:
                values = torch.tensor([[float(value) for value in row] for row in rows],
                                      dtype=torch.float64).to(_INPUTS[key])
                inputs[key] = values if key == "logits" or len(rows) > 1 else values[0]
    return Case(name, inputs.pop("logits"), top_k, options, inputs)


def cases(only="*"):
    """Returns the cases with names that match `only`, a shell pattern."""
    lines = iter(torch.ops.switchyard.conformance_cases(only).splitlines())
    known = _options()
    return [_read_case(lines, known) for line in lines if line == _HEADER]


def _block(name, values):
    """Returns one output of a router as lines of an answer's text."""
    values = torch.as_tensor(values).detach().cpu()
    if values.numel() == 0:
        raise ValueError(f"{name}: the router returned no values")
    if name == "ids" and values.is_floating_point():
        raise ValueError("ids: the router returned floats")
    values = values.float().double() if values.is_floating_point() else values.long()
    values = values.reshape(1, -1) if values.dim() != 2 else values
    return "".join([f"{name} {values.shape[0]} {values.shape[1]}\n"] +
                   [" ".join(map(repr, row)) + "\n" for row in values.tolist()])


def _answer(function, case):
    """Calls the router for a case. Returns the router's answer as text."""
    start = f"{_HEADER}\ncase {case.name}\n"
    try:
        results = function(case.logits.clone(), case.top_k, dict(case.options), **case.inputs)
        blocks = [_block(name, values) for name, values in
                  zip(("ids", "weights", "identity_weights"), results) if values is not None]
    except Exception as error:  # any error that the router raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        blocks = [f"unsupported {reason}\n"]
    return start + "".join(blocks) + "end\n"


def grade(function, only="*"):
    """Grades a router, which is called as this module's docstring says."""
    answers = "".join(_answer(function, case) for case in cases(only))
    return Result(*torch.ops.switchyard.grade(answers, only))


class _Parser(argparse.ArgumentParser):
    def error(self, message):  # one line, as the programs of this repository print
        self.exit(2, f"switchyard.grade: {message}\n")


def _find(name, parser):
    """Imports and returns the function that `name` names as module:function."""
    module, _, path = name.partition(":")
    if not module or not path:
        parser.error(f"{name}: is not module:function")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001  (a module may raise anything while it is imported)
        parser.error(f"{name}: {' '.join(str(error).split())}")
    if not callable(found):
        parser.error(f"{name}: cannot be called")
    return found


def main(arguments=None):
    parser = _Parser(prog="python -m switchyard.grade", description="Grades a router.")
    parser.add_argument("router", metavar="module:function",
                        help="called as function(logits, top_k, options, **inputs)")
    parser.add_argument("--only", default="*", metavar="PATTERN",
                        help="only cases like this, such as 'ties*'")
    given = parser.parse_args(arguments)
    function = _find(given.router, parser)
    try:
        torch.ops.switchyard.conformance_cases(given.only)
    except RuntimeError:
        parser.error(f"--only: '{given.only}' matches no case")
    result = grade(function, given.only)
    print(result.report, end="")
    return 0 if result.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
