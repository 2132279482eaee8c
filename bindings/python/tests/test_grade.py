# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Grades routers in plain torch: a right one, and one with each of the known mistakes."""

import runpy
import sys

import pytest
import torch

import switchyard
from switchyard import grade

SUPPORTED = {"renormalize", "score", "divisor", "eps", "clamp", "routed_scaling_factor",
             "num_expert_group", "topk_group", "group_score_of"}


class Router:
    """A router for softmax and sigmoid scores with bias and groups. Subclasses make mistakes."""

    def __call__(self, logits, top_k, options, correction_bias=None, **others):
        defaults = {name: default for name, (_, default) in grade._options().items()}
        changed = {name for name in options if options[name] != defaults[name]}
        if others or changed - SUPPORTED or options["score"] not in ("softmax", "sigmoid"):
            raise NotImplementedError("an option or an input that this router does not have")
        if not torch.isfinite(logits).all() or (
                correction_bias is not None and correction_bias.isnan().any()):
            raise NotImplementedError("only finite logits, and no NaN in the bias")
        self.options = options
        scores = self.scores(logits)
        keys = logits if correction_bias is None else scores + correction_bias
        if options["num_expert_group"] > 1:
            keys = self.drop_groups(scores if correction_bias is None else keys)
        ids = self.select(keys, top_k)
        weights = scores.gather(1, ids)
        if options["renormalize"]:
            weights = weights / self.divisor(weights.sum(1, keepdim=True), scores)
        return ids, weights * options["routed_scaling_factor"]

    def scores(self, logits):
        if self.options["score"] == "softmax":
            return logits.double().softmax(1).float()
        scores = logits.double().sigmoid().float()
        return scores.where(scores >= 2**-126, 0.0)  # the reference has no denormal scores

    def drop_groups(self, keys):
        groups = keys.unflatten(1, (self.options["num_expert_group"], -1))
        best = self.score_groups(groups).sort(dim=1, descending=True, stable=True).indices
        dropped = best[:, self.options["topk_group"]:]
        return groups.scatter(1, dropped[..., None].expand(-1, -1, groups.shape[2]),
                              -torch.inf).flatten(1)

    def score_groups(self, groups):
        return groups.topk(self.options["group_score_of"], 2).values.sum(2)

    def select(self, keys, top_k):
        return keys.sort(dim=1, descending=True, stable=True).indices[:, :top_k]

    def divisor(self, total, scores):
        if self.options["divisor"] == "sum_plus_eps":
            return total + self.options["eps"]
        if self.options["divisor"] == "max_of_sum_and_eps":
            return total.clamp(min=self.options["eps"])
        if self.options["divisor"] == "max_of_sum_and_share":
            return total.maximum(self.options["clamp"] * scores.sum(1, keepdim=True))
        return total


class SelectsTwice(Router):
    def select(self, keys, top_k):  # as in vllm-omni #7175
        keys, ids = keys.clone(), []
        for _ in range(top_k):
            ids.append(keys.argmax(1))
            keys.scatter_(1, ids[-1][:, None], -torch.inf)
        return torch.stack(ids, 1)


class SubtractsNoise(Router):
    def select(self, keys, top_k):  # as in sglang #31768
        noise = torch.arange(keys.shape[1]) * 3e-7
        return super().select(keys.double() - noise, top_k)


class RefusesSizes(Router):
    def __call__(self, logits, *arguments, **inputs):  # as in vllm #51521
        if logits.shape[1] == 144:
            raise ValueError("144 experts are not supported")
        return super().__call__(logits, *arguments, **inputs)


class RanksGroupsByMaximum(Router):
    def score_groups(self, groups):
        return groups.amax(2)


class IgnoresGroups(Router):
    def drop_groups(self, keys):  # as in the perplexity tables of ik_llama.cpp #836
        return keys


class TakesSoftmaxForSigmoid(Router):
    def scores(self, logits):  # as in llama.cpp #18980
        return logits.double().softmax(1).float()


def test_a_right_router_passes():
    result = grade.grade(Router())
    assert result.is_right, result.report
    assert "unsupported" in result.report and " differs" not in result.report


# Each mistake has a conformance case. The first cause that the report gives for the case is the mistake.
@pytest.mark.parametrize("router, case, cause", [
    (SelectsTwice, "bias_minus_infinity_all", "selects an expert twice, because"),
    (SubtractsNoise, "near_ties_sglang_31768", "subtracts 3e-7 * index"),
    (RefusesSizes, "experts_144_vllm_51521", "refuses 144 experts"),
    (RanksGroupsByMaximum, "groups_ik_llama_836", "ranks groups by their largest key"),
    (IgnoresGroups, "groups_ik_llama_836", "selects from all groups"),
    (TakesSoftmaxForSigmoid, "sigmoid_llama_cpp_18980", "computes scores by softmax"),
])
def test_each_known_bug_is_named(router, case, cause):
    result = grade.grade(router())
    assert not result.is_right
    start = result.report.index(f"  {case}: ")
    assert result.report[:start].rpartition("\n\n")[2].startswith(f"It {cause}"), result.report


def library(logits, top_k, options, correction_bias=None, expert_scale=None, **others):
    """Routes with Switchyard's operator."""
    if others or options["num_shared_experts"]:
        raise NotImplementedError("an input that the operator does not have")
    return switchyard.route(logits, "mixtral", top_k, correction_bias, expert_scale,
                            options=switchyard.options_text(**options, needs_config=False))[:2]


def test_the_operator_passes():
    result = grade.grade(library)
    assert result.is_right, result.report


def test_cases_have_typed_options_and_inputs():
    case, = grade.cases("bias_per_token")
    assert case.options["score"] == "sqrt_softplus" and case.options["renormalize"] is True
    assert case.options["eps"] == 0.0 and case.options["num_zero_experts"] == 0
    assert case.inputs["bias_index"].dtype == torch.int64
    assert case.inputs["correction_bias"].shape == (2, case.logits.shape[1])
    case, = grade.cases("token_mask")
    assert case.inputs["token_mask"].dtype == torch.bool and case.logits.dtype == torch.float32
    with pytest.raises(RuntimeError, match="'none' matches no case"):
        grade.cases("none")


def test_lists_and_wrong_shapes():
    ids, weights = Router()(*grade.cases("ties")[0][1:4])
    assert grade.grade(lambda *_: (ids.tolist(), weights.tolist()), "ties").is_right
    result = grade.grade(lambda *_: (ids[:, :2], weights), "ties")
    assert "results of another shape" in result.report and not result.is_right
    assert "ValueError: ids: " in grade.grade(lambda *_: (ids[:, :0], weights), "ties").report
    result = grade.grade(lambda *_: (ids + 0.5, weights), "ties")
    assert "ValueError: ids: the router returned floats" in result.report and not result.is_right


def test_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["grade", f"{__name__}:library", "--only", "ties"])
    monkeypatch.delitem(sys.modules, "switchyard.grade")  # as in a new process
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("switchyard.grade", run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out) == (0, "1 case: all pass\n")


def test_wrong_arguments_are_one_line(capsys):
    for arguments, line in [
            (["json"], "json: is not module:function"),
            (["json:no"], "json:no: module 'json' has no attribute 'no'"),
            (["no_such_module:x"], "no_such_module:x: No module named 'no_such_module'"),
            (["json:__name__"], "json:__name__: cannot be called"),
            (["json:dumps", "--only", "tie["], "--only: 'tie[' matches no case")]:
        with pytest.raises(SystemExit) as refused:
            grade.main(arguments)
        assert refused.value.code == 2
        assert capsys.readouterr().err == f"switchyard.grade: {line}\n"


def test_a_module_that_raises_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "raises_when_imported.py").write_text('raise ValueError("no\\nweights")\n')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as refused:
        grade.main(["raises_when_imported:router"])
    assert refused.value.code == 2
    assert capsys.readouterr().err == (
        "switchyard.grade: raises_when_imported:router: no weights\n")


def test_main_returns_the_exit_code(capsys):
    assert grade.main(["json:dumps", "--only", "ties"]) == 1
    assert "Unsupported: TypeError: " in capsys.readouterr().out
