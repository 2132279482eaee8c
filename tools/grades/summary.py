#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts answers by kind: summary.py ANSWERS CASE...

Prints a row of the table of grades in docs/conformance.md, and a line for each case that differs.
Each wrong row has the first kind of this list that fits it. If the wrong rows of a case have several
kinds, the case has the last of these kinds.

* equal keys: the row has the expected weights, but other ids, so the router selected another
  expert of the same weight;
* NaN, infinity: the row or its bias has a NaN, or an infinity;
* other: `swy grade` names the probable cause.
"""

import math
import sys

sys.dont_write_bytecode = True  # to write nothing to the sources' folder

import answers

KINDS = ("right", "equal keys", "NaN", "infinity", "other", "unsupported", "missing")


def kind_of_row(case, answer, token):
    """Returns the kind of a row, or None if the row is right."""
    def row(of):
        blocks = {key: [of[key][token]] for key in ("ids", "weights") if key in of}
        if "identity_weights" in of:
            blocks["identity_weights"] = [[of["identity_weights"][0][token]]]
        return {"tolerance": case["tolerance"], **blocks}

    if answers.routing.wrong(row(case), row(answer)) is None:
        return None
    by_size = [sorted(row, key=lambda w: (math.isnan(w), w))
               for row in (answer["weights"][token], case["weights"][token])]
    if (len(set(answer["ids"][token])) == len(answer["ids"][token])
            and all(answers.routing.is_right(g, e, case["tolerance"]) for g, e in zip(*by_size))
            and not any(map(math.isnan, by_size[1]))):
        return "equal keys"
    inputs = [x for row in (case["logits"][token], *case.get("correction_bias", [])) for x in row]
    if any(map(math.isnan, inputs)):
        return "NaN"
    return "infinity" if any(map(math.isinf, inputs)) else "other"


def kind_of(case, answer):
    if answer is None:
        return "missing"
    if "unsupported" in answer:
        return "unsupported"
    if any(len(answer.get(key, [])) != case["tokens"] for key in ("ids", "weights")):
        return "other"
    rows = {kind_of_row(case, answer, token) for token in range(case["tokens"])} - {None}
    # Returns the last of the rows' kinds, because it needs the most explanation.
    return max(rows, key=KINDS.index) if rows else "right"


def main(arguments):
    if len(arguments) < 2:
        print("summary.py: usage: summary.py ANSWERS CASE...", file=sys.stderr)
        return 2
    read = answers.routing.cases
    found = {answer["case"]: answer for answer in read(open(arguments[0]).read(), arguments[0])}
    names = {kind: [] for kind in KINDS}
    for file in arguments[1:]:
        for case in read(open(file).read(), file):
            names[kind_of(case, found.get(case["case"]))].append(case["case"])
    print(f"| {' | '.join(KINDS)} |")
    print(f"| {' | '.join(str(len(names[kind])) for kind in KINDS)} |")
    for kind in KINDS[1:-2]:
        print(f"{kind}: {', '.join(names[kind])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
