#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Answers conformance cases with the router classes of transformers.

    swy grade tools/grades/transformers_routers.py LIBRARY [--family NAME]

LIBRARY is the shared library made of tools/parity/parity.cc. It says which configuration of a
family has a case's options. A family's class answers all cases of the family. The first class that has
such a configuration answers every other case. With --family, one class answers all
cases that it can compute. With --each FOLDER, every class answers all cases that it can compute,
in a file of its own in FOLDER.

The case's logits replace the result of the router's last linear(). The slots are in the
case's order, because most of these routers call topk(sorted=False).
"""

import pathlib
import sys

sys.dont_write_bytecode = True  # to write nothing to the sources' folder
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "parity"))

import torch

import answers
import families
import library
import routers

# The fields of a configuration that set an option, and the value without it.
FIELDS = {"norm_topk_prob": ("renormalize", 1), "routed_scaling_factor": ("routed_scaling_factor", 1),
          "n_group": ("num_expert_group", 0), "topk_group": ("topk_group", 0),
          "zero_expert_num": ("num_zero_experts", 0), "moe_norm_min": ("eps", 0),
          "moe_router_logit_softcapping": ("logit_softcap", 0)}
# Each condition on the options, and the options that then have no effect.
UNUSED = [
    (lambda o: o["num_expert_group"] <= 1,
     ("num_expert_group", "topk_group", "group_score_of", "dropped_key_is_zero")),
    (lambda o: not o["renormalize"],
     ("renormalize", "divisor", "eps", "clamp", "zero_sum_is_zero")),
    (lambda o: o["divisor"] != 0, ("clamp",)),
    (lambda o: not o["num_shared_experts"], ("shared_weight", "shared_logits")),
]


def used(options, softmax_of_selected):
    """Returns the options that matter. `softmax_of_selected` is the number of that enumerator."""
    left = {name: value for name, value in options.items()
            if "." not in name and not name.startswith("needs_") and name not in NOT_COMPARED}
    for is_unused, names in UNUSED:
        if is_unused(options) or (options["weight_of"] == softmax_of_selected
                                  and "divisor" in names):
            left = {name: value for name, value in left.items() if name not in names}
    return left


# Names that describe a preset. They are not options of a call.
NOT_COMPARED = {"correction_bias", "expert_scale", "norm_topk_prob", "in_model_type",
                "num_experts", "top_k"}


def tensor(case, name):
    return torch.tensor(case[name], dtype=torch.float32) if name in case else None


class Routers:
    def __init__(self, lib):
        self._lib = lib
        self._of_selected = lib.options({"weight_of": "softmax_of_selected"})["weight_of"]
        self.all = [family for family in families.routers_of(lib) if family.how != "hash"]

    def named(self, name):
        found = [family for family in self.all if name in (family.preset, family.name)]
        if not found:
            raise answers.Unsupported(f"{name} is no family of transformers")
        return found[0]

    def configured(self, family, case):
        """Returns the router's module with the options of the case."""
        options = self._lib.options(case["options"])
        config = routers.Configuration(family)
        for field, (option, unset) in FIELDS.items():
            value = options.get(option, unset)
            if option == "renormalize":
                value = bool(value)
            elif option in ("num_expert_group", "topk_group"):
                value = max(1, int(value))
            config.vary(field, int(value) if option == "num_zero_experts" else value)
        zero = int(options["num_zero_experts"])
        config.say("num_experts", case["num_experts"] - zero)
        config.say("num_experts_per_tok", case["top_k"])
        preset = self._lib.preset(family.preset, config.fields())
        has, needs = (used(o, self._of_selected) for o in (preset, options))
        if family.how == "shared":  # a parameter of the router multiplies the factor
            has["routed_scaling_factor"] = needs["routed_scaling_factor"]
        differ = sorted(n for n in has.keys() | needs.keys() if has.get(n) != needs.get(n))
        if differ:
            raise answers.Unsupported(f"{family.name} has another {', '.join(differ)}")
        module = routers.make(family, config)
        if family.how == "shared":
            module.global_scale.data.fill_(options["routed_scaling_factor"]
                                           / preset["routed_scaling_factor"])
        return module

    def route(self, family, case):
        for name in ("bias_index", "token_mask"):
            if name in case:
                raise answers.Unsupported(name)
        try:
            module = self.configured(family, case)
            ids, weights = routers.route(family, module, tensor(case, "logits"),
                                         tensor(case, "correction_bias"),
                                         tensor(case, "expert_scale"))
        except ValueError as error:
            raise answers.Unsupported(f"{family.name} {error}") from None
        zero = int(self._lib.options(case["options"])["num_zero_experts"])
        identity = None
        if zero:
            is_zero = (ids >= case["num_experts"] - zero) & (ids < case["num_experts"])
            if family.how != "skip":  # that router has set the weight to 0
                identity = [torch.where(is_zero, weights, 0).sum(1).tolist()]
            ids, weights = ids.masked_fill(is_zero, -1), weights.masked_fill(is_zero, 0)
        return *answers.in_order_of(case["ids"], ids.tolist(), weights.tolist()), identity

    def route_by_any(self, case):
        """Routes by the class of the case's family, or by the first class with such a configuration."""
        names = case.get("families", "").split()
        own = [family for family in self.all if family.preset in names]
        if names and not own:
            raise answers.Unsupported("transformers has none of the families")
        for family in own or self.all:
            try:
                return self.route(family, case)
            except answers.Unsupported as reason:
                last = reason
        raise last if own else answers.Unsupported("no family of transformers has these options")


def _arguments(argv):
    parser = answers.Parser(__doc__)
    parser.add_argument("library", help="the shared library made of parity.cc")
    parser.add_argument("--family", help="the only family")
    parser.add_argument("--each", metavar="FOLDER", type=pathlib.Path,
                        help="write the answers of each class here")
    arguments = parser.parse_args(argv)
    try:
        found = Routers(library.Library(arguments.library))
        family = found.named(arguments.family) if arguments.family else None
    except (OSError, answers.Unsupported) as error:
        parser.error(str(error))
    return arguments, found, family


def main(argv):
    arguments, found, family = _arguments(argv)
    torch.set_num_threads(1)
    if arguments.each:
        cases = answers.routing.cases(sys.stdin.read(), "stdin")
        for each in found.all:
            text = "".join(answers.answer(lambda c: found.route(each, c), case) for case in cases)
            (arguments.each / each.name.replace(" ", "_")).write_text(text)
        return 0
    if family:
        answers.serve(lambda case: found.route(family, case))
    else:
        answers.serve(found.route_by_any)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
