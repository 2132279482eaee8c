# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a Python function a router for `swy grade`: reads cases, and writes answers.

A router raises Unsupported if it does not compute a case. Other exceptions of a router are
reported as unsupported, too, with the exception.
"""

import argparse
import importlib.util
import math
import pathlib
import sys

_READER = pathlib.Path(__file__).parents[2] / "conformance/readers/routing.py"
_spec = importlib.util.spec_from_file_location("routing", _READER)
routing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(routing)


class Parser(argparse.ArgumentParser):
    """Prints errors as one line, without the usage."""

    def __init__(self, description):
        super().__init__(description=description, allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


class Unsupported(Exception):
    """The router has no such option or input."""


def need(case, inputs=(), **options):
    """Raises Unsupported if the case has an option or an input that the router does not have.

    Each keyword is an option of the router. Its value is None if the router has all values of the
    option, otherwise a tuple of the values. `inputs` are the blocks that the router reads, besides
    logits.
    """
    for name, value in case["options"].items():
        allowed = options.get(name, ())
        if allowed is not None and value not in allowed:
            raise Unsupported(f"option {name} {value}")
    for name in ("correction_bias", "bias_index", "expert_scale", "token_mask"):
        if name in case and name not in inputs:
            raise Unsupported(name)


def option(case, name, default):
    """The value of an option as a number."""
    return type(default)(float(case["options"].get(name, default)))


def in_order_of(expected, ids, weights):
    """Puts the slots of rows in the order of the expected ids, if they have the same ids.

    For routers that do not promise an order, such as torch.topk(sorted=False).
    """
    rows = [(ids[t], weights[t]) for t in range(len(ids))]
    for t, want in enumerate(expected):
        # A row with an id twice stays as it is, because -1 stands for several zero experts.
        slots = sorted(range(len(want)), key=lambda s: (ids[t][s], -_rank(weights[t][s])))
        places = sorted(range(len(want)), key=lambda s: want[s])
        if [ids[t][s] for s in slots] == [want[p] for p in places]:
            order = [slot for _, slot in sorted(zip(places, slots))]
            rows[t] = [ids[t][s] for s in order], [weights[t][s] for s in order]
    return [row for row, _ in rows], [row for _, row in rows]


def _rank(weight):
    return -math.inf if math.isnan(weight) else weight


def _block(name, rows, text):
    lines = [f"{name} {len(rows)} {len(rows[0])}", *(" ".join(map(text, row)) for row in rows)]
    return "\n".join(lines) + "\n"


def answer(route, case):
    """The text of an answer. `route` returns ids and weights as lists of rows, and may return the
    identity weights as a third list.
    """
    try:
        blocks = [_block(name, rows, text) for name, rows, text in
                  zip(("ids", "weights", "identity_weights"), route(case),
                      (lambda i: str(int(i)), lambda w: repr(float(w)),
                       lambda w: repr(float(w)))) if rows is not None]
    except Unsupported as reason:
        blocks = [f"unsupported {reason}\n"]
    except Exception as error:  # the router's own
        blocks = [f"unsupported {type(error).__name__}: {' '.join(str(error).split())[:200]}\n"]
    return f"{routing.HEADER}\ncase {case['case']}\n{''.join(blocks)}end\n"


def serve(route):
    """Answers the cases on stdin."""
    for case in routing.cases(sys.stdin.read(), "stdin"):
        sys.stdout.write(answer(route, case))
