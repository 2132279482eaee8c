#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Answers conformance cases with the router functions of another engine's package.

    swy grade tools/grades/engine_routers.py ENGINE [WHEEL]

ENGINE is one of torch, sglang, vllm, megatron and mlx_lm. WHEEL is the package, as `pip download --no-deps`
fetches it. Its functions run as they are, without their decorators and without the rest of the
package, because most of a package needs a GPU. mlx_lm needs the packages mlx and mlx_cpu. torch
is a router of plain torch operators, as model code often has it, and needs no WHEEL.

The slots are in the case's order, because these functions call topk(sorted=False) or argpartition().
"""

import ast
import pathlib
import sys
import typing
import zipfile

sys.dont_write_bytecode = True  # to write nothing to the sources' folder

import answers
from answers import Unsupported, need, option


class Missing(Exception):
    """The package has another version, without these functions."""


def functions(wheel, path, names, **known):
    """Returns functions of a file in a wheel, as a dict.

    The functions may use the names in `known`, and call each other.
    """
    with zipfile.ZipFile(wheel) as file:
        tree = ast.parse(file.read(path), path)
    body = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.decorator_list = []
            body.append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            body.append(node)
    missing = set(names) - {node.name for node in body if isinstance(node, ast.FunctionDef)}
    if missing:
        raise Missing(f"{path} in {wheel} has no {', '.join(sorted(missing))}")
    found = dict(known)
    exec(compile(ast.Module(body, []), path, "exec"), found)
    return found


def need_infinity_for_dropped(case):
    """Raises Unsupported if a dropped group's key of 0 matters, because these functions set -inf."""
    if option(case, "dropped_key_is_zero", 0) and "correction_bias" in case:
        raise Unsupported("option dropped_key_is_zero 1")


def torch_inputs(case):
    import torch

    torch.set_num_threads(1)
    bias = torch.tensor(case["correction_bias"][0]) if "correction_bias" in case else None
    return torch.tensor(case["logits"]), bias


def score_of(case, **names):
    """Returns the engine's name of the case's score."""
    score = case["options"].get("score", "softmax")
    if score not in names:
        raise Unsupported(f"option score {score}")
    return names[score]


# An engine adds the same eps, or none, for all models, so these options may have any value.
DIVISION = {"renormalize": None, "divisor": None, "eps": None, "clamp": ("0", "6.1035156e-05")}
GROUPS = {"num_expert_group": None, "topk_group": None}


def plain_torch(wheel):
    import torch

    def route(case):
        need(case, ["correction_bias"], score=None, weight_of=("softmax_of_selected",),
             routed_scaling_factor=None, group_score_of=None, dropped_key_is_zero=None,
             select_on_rounded_score=None, **DIVISION, **GROUPS)
        need_infinity_for_dropped(case)
        logits, bias = torch_inputs(case)
        groups, factor = option(case, "num_expert_group", 0), option(case, "routed_scaling_factor", 1.0)
        if "weight_of" in case["options"]:
            weights, ids = torch.topk(logits, case["top_k"], dim=-1)
            return weights.softmax(-1) * factor, ids
        score = score_of(case, softmax="softmax", sigmoid="sigmoid")
        scores = logits.softmax(-1) if score == "softmax" else logits.sigmoid()
        keys = scores if bias is None else scores + bias
        if groups > 1:
            of_groups = keys.view(len(keys), groups, -1)
            sums = of_groups.topk(option(case, "group_score_of", 2), dim=-1)[0].sum(-1)
            kept = torch.zeros_like(sums).scatter_(
                1, sums.topk(option(case, "topk_group", 0), dim=-1)[1], 1)
            keys = of_groups.masked_fill(kept[..., None] == 0, float("-inf")).flatten(1)
        ids = keys.topk(case["top_k"], dim=-1)[1]
        weights = scores.gather(1, ids)
        if option(case, "renormalize", 1):
            weights = weights / weights.sum(-1, keepdim=True)
        return weights * factor, ids
    return in_order(route)


def sglang(wheel):
    import torch

    call = functions(wheel, "sglang/srt/layers/moe/topk.py",
                     ["fused_topk_torch_native", "grouped_topk_gpu", "biased_grouped_topk_impl"],
                     torch=torch, F=torch.nn.functional, Optional=typing.Optional)

    def route(case):
        need(case, ["correction_bias"], score=None, routed_scaling_factor=None, group_score_of=("1",),
             dropped_key_is_zero=None, select_on_rounded_score=None, **DIVISION, **GROUPS)
        need_infinity_for_dropped(case)
        logits, bias = torch_inputs(case)
        top_k, renormalize = case["top_k"], bool(option(case, "renormalize", 1))
        groups, factor = option(case, "num_expert_group", 0), option(case, "routed_scaling_factor", 1.0)
        of = option(case, "group_score_of", 2)
        if groups > 1:
            group = {"num_expert_group": groups, "topk_group": option(case, "topk_group", 0),
                     "routed_scaling_factor": factor,
                     "apply_routed_scaling_factor_on_output": True}
            score = score_of(case, softmax="softmax", sigmoid="sigmoid")
            if bias is not None and (score != "sigmoid" or of != 2):
                raise Unsupported("a bias with groups, without sigmoid and sums of 2")
            if bias is None and of != 1:
                raise Unsupported("sums of keys without a bias")
            if bias is not None:
                return call["biased_grouped_topk_impl"](logits, logits, bias, top_k, renormalize,
                                                        **group)
            return call["grouped_topk_gpu"](logits, logits, top_k, renormalize, scoring_func=score,
                                            **group)
        score = score_of(case, softmax="softmax", sigmoid="sigmoid", sqrt_softplus="sqrtsoftplus")
        weights, ids = call["fused_topk_torch_native"](logits, logits, top_k, renormalize, bias, score)
        return weights * factor, ids  # the function leaves the factor to its caller
    return in_order(route)


def vllm(wheel):
    import torch

    call = functions(wheel, "vllm/model_executor/layers/fused_moe/router/cpu_router.py",
                     ["_grouped_topk", "_softmax_topk"], torch=torch)

    def route(case):
        need(case, ["correction_bias"], score=None, routed_scaling_factor=None, group_score_of=("1",),
             dropped_key_is_zero=None, select_on_rounded_score=None, **DIVISION, **GROUPS)
        need_infinity_for_dropped(case)
        logits, bias = torch_inputs(case)
        top_k, renormalize = case["top_k"], bool(option(case, "renormalize", 1))
        groups, factor = option(case, "num_expert_group", 0), option(case, "routed_scaling_factor", 1.0)
        score = score_of(case, softmax="softmax", sigmoid="sigmoid")
        if groups <= 1 and score == "softmax" and bias is None:
            weights, ids = call["_softmax_topk"](logits, top_k, renormalize)
            return weights * factor, ids  # the function leaves the factor to its caller
        if groups > 1 and option(case, "group_score_of", 2) != (1 if bias is None else 2):
            raise Unsupported("another rule for the score of a group")
        return call["_grouped_topk"](logits, top_k, renormalize, max(1, groups),
                                     max(1, option(case, "topk_group", 0)), score, factor, bias)
    return in_order(route)


def megatron(wheel):
    import torch

    call = functions(wheel, "megatron/core/transformer/moe/moe_utils.py",
                     ["group_limited_topk", "topk_routing_with_score_function"], torch=torch,
                     Optional=typing.Optional, Tuple=tuple)

    def route(case):
        # A softmax of the selected logits equals the softmax of all logits, divided by the sum of
        # the selected values.
        # These functions score groups by a fixed rule, so the options of the rule may have any value.
        need(case, ["correction_bias"], score=None, weight_of=("softmax_of_selected",),
             routed_scaling_factor=None, group_score_of=None, dropped_key_is_zero=None,
             select_on_rounded_score=None, **DIVISION, **GROUPS)
        need_infinity_for_dropped(case)
        logits, bias = torch_inputs(case)
        divides = "weight_of" in case["options"] or option(case, "renormalize", 1)
        score = "softmax" if "weight_of" in case["options"] else score_of(
            case, softmax="softmax", sigmoid="sigmoid")
        groups, kept = option(case, "num_expert_group", 0), option(case, "topk_group", 0)
        if score == "sigmoid" and not divides:
            raise Unsupported("option renormalize 0 with sigmoid")
        if score == "softmax" and (bias is not None or (divides and groups > 1)):
            raise Unsupported("softmax with a bias, or before the groups and with a division")
        if groups > 1 and case["top_k"] < kept:
            raise Unsupported("a top_k below topk_group")
        dense, taken = call["topk_routing_with_score_function"](
            logits, case["top_k"], use_pre_softmax=not divides,
            num_groups=groups if groups > 1 else None, group_topk=kept if groups > 1 else None,
            scaling_factor=option(case, "routed_scaling_factor", 1.0), score_function=score,
            expert_bias=bias)
        ids = taken.nonzero()[:, 1].reshape(len(logits), -1)
        return dense.gather(1, ids), ids
    return in_order(route)


def mlx_lm(wheel):
    import mlx.core as mx

    call = functions(wheel, "mlx_lm/models/deepseek_v3.py", ["group_expert_select"], mx=mx)

    def route(case):
        need(case, ["correction_bias"], score=("sigmoid",), routed_scaling_factor=None,
             dropped_key_is_zero=None, **DIVISION, **GROUPS)
        score_of(case, sigmoid="sigmoid")
        if "correction_bias" not in case:
            raise Unsupported("it always has a bias")
        ids, weights = call["group_expert_select"](
            mx.array(case["logits"]), mx.array(case["correction_bias"][0]), case["top_k"],
            max(1, option(case, "num_expert_group", 0)), max(1, option(case, "topk_group", 0)),
            option(case, "routed_scaling_factor", 1.0), bool(option(case, "renormalize", 1)))
        return weights, ids
    return in_order(route)


def in_order(route):
    """Makes a router that returns ids and weights as lists, with the slots in the case's order."""
    def routed(case):
        weights, ids = route(case)
        return answers.in_order_of(case["ids"], ids.tolist(), weights.tolist())
    return routed


ENGINES = {"torch": plain_torch, "sglang": sglang, "vllm": vllm, "megatron": megatron,
           "mlx_lm": mlx_lm}


def main(argv):
    parser = answers.Parser(__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("wheel", type=pathlib.Path, nargs="?")
    arguments = parser.parse_args(argv)
    if arguments.engine != "torch" and arguments.wheel is None:
        parser.error(f"{arguments.engine} needs a WHEEL")
    try:
        route = ENGINES[arguments.engine](arguments.wheel)
    except (OSError, ImportError, KeyError, zipfile.BadZipFile, Missing) as error:
        parser.error(f"{arguments.engine}: {error}")
    answers.serve(route)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
