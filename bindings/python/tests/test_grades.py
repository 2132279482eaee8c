# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Grades transformers' routers and plain torch code by tools/grades, as docs/conformance.md does."""

import math
import os
import pathlib
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).parents[3]
sys.path.append(str(REPOSITORY / "tools/grades"))

import answers
import engine_routers
import summary

FILES = sorted((REPOSITORY / "conformance/routing").glob("*.txt"))
CASES = {file.stem: answers.routing.cases(file.read_text(), file.name)[0] for file in FILES}
OF_FAMILIES = {name: case for name, case in CASES.items() if "families" in case}


def kind(route, case):
    (answer,) = answers.routing.cases(answers.answer(route, case))
    return summary.kind_of(case, answer), answer.get("unsupported")


@pytest.fixture(scope="module")
def transformers_routers():
    if "SWITCHYARD_PARITY" not in os.environ:
        pytest.skip("scripts/setup.sh engines builds the library that has the presets")
    import transformers_routers as found

    return found.Routers(found.library.Library(os.environ["SWITCHYARD_PARITY"]))


def test_transformers_are_right_for_each_family(transformers_routers):
    kinds = {name: kind(transformers_routers.route_by_any, case)
             for name, case in OF_FAMILIES.items()}
    others = {name: got for name, got in kinds.items() if got[0] != "right"}
    assert all(got == ("unsupported", "transformers has none of the families")
               for got in others.values()), others
    assert len(kinds) - len(others) >= 29


def test_a_class_refuses_another_recipe(transformers_routers):
    family = transformers_routers.named("deepseek_v3")
    got, reason = kind(lambda c: transformers_routers.route(family, c), CASES["qwen3_moe"])
    assert got == "unsupported" and "score" in reason


def test_plain_torch():
    route = engine_routers.ENGINES["torch"](None)
    kinds = {name: kind(route, case)[0] for name, case in CASES.items()}
    assert {kinds[name] for name in OF_FAMILIES} == {"right", "unsupported"}
    assert kinds["qwen3_moe"] == kinds["bailing_hybrid"] == kinds["gpt_oss"] == "right"
    assert kinds["groups_negative_keys"] == "right"
    assert kinds["divisor_sum_plus_eps"] == "other"  # this router has no eps
    assert kinds["plus_infinity"] == "infinity" and kinds["nan_bias"] == "NaN"


def test_the_kinds():
    case = {"case": "x", "tokens": 1, "tolerance": 1e-6, "logits": [[2, 1, 1]],
            "ids": [[0, 1]], "weights": [[0.6, 0.2]]}

    def of(ids, weights, logits=(2, 1, 1)):
        return summary.kind_of({**case, "logits": [logits]}, {"ids": [ids], "weights": [weights]})

    assert of([0, 1], [0.6, 0.2]) == "right"
    assert of([0, 2], [0.6, 0.2]) == "equal keys"
    assert of([0, 1], [0.2, 0.6]) == "equal keys"  # the ids are the same and have other weights
    assert of([0, 0], [0.6, 0.2]) == of([0, 1], [0.6, 0.3]) == "other"
    assert of([0, 1], [0.6, 0.3], (math.nan, 1, 1)) == "NaN"
    assert of([0, 1], [0.6, 0.3], (math.inf, 1, 1)) == "infinity"
    assert summary.kind_of(case, None) == "missing"
    assert summary.kind_of(case, {"unsupported": "no"}) == "unsupported"


def test_the_order_of_slots():
    assert answers.in_order_of([[3, 1, -1]], [[1, -1, 3]], [[0.1, 0.0, 0.3]]) == (
        [[3, 1, -1]], [[0.3, 0.1, 0.0]])
    assert answers.in_order_of([[3, 1]], [[2, 1]], [[0.3, 0.1]]) == ([[2, 1]], [[0.3, 0.1]])


def test_options_that_a_router_lacks_are_refused():
    with pytest.raises(answers.Unsupported, match="option eps 0.5"):
        answers.need({"options": {"eps": "0.5"}}, eps=("0", "1"))
    with pytest.raises(answers.Unsupported, match="token_mask"):
        answers.need({"options": {}, "token_mask": [[1]]}, ["correction_bias"])
    answers.need({"options": {"eps": "0.5"}, "token_mask": [[1]]}, ["token_mask"], eps=None)
