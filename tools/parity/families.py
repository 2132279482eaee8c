# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the code of transformers that each preset follows, by the preset's source.

A row of src/families.h has all facts, except for the families in SPECIAL and VARIANTS. routers.py
has the arguments and results of routers.
"""

import dataclasses
import functools
import importlib
import inspect
from typing import Any


@dataclasses.dataclass(frozen=True)
class Family:
    preset: str
    folder: str  # the folder in transformers/models
    line: int  # a line of modeling_<folder>.py, in the class of the router
    is_copy: bool = False  # the preset is another name of one with the same source
    has_layer: bool = False  # moe_layer runs the family
    router: str = ""  # the class of the router, if no class has the line
    config: str = ""  # the class in configuration_<folder>.py, if none has the preset as model_type
    # The key in _HOW (routers.py) of the function that runs the router. Most routers need "tuple".
    how: str = "tuple"
    # Values that the configuration needs in addition to experts, top_k and width.
    config_says: dict[str, Any] = dataclasses.field(default_factory=dict)
    # A checkpoint's shape, or 0 to use the configuration's default. It is set if there is no
    # default, or if no checkpoint has the default shape.
    experts: int = 0
    top_k: int = 0
    # The factor of the router's matrix, for routers that normalise their input.
    gain: float = 1.0
    # The parameters stay f32 in a model of another type.
    keeps_f32: bool = False
    # The weights are exp() of differences of logarithms as large as 45.
    logarithms: bool = False
    label: str = ""  # the name in the table, if it is not the preset
    names: dict = dataclasses.field(default_factory=dict)  # Library.names()

    @property
    def name(self):
        return self.label or self.preset

    @functools.cached_property
    def code(self):
        return importlib.import_module(f"transformers.models.{self.folder}.modeling_{self.folder}")

    @functools.cached_property
    def router_class(self):
        if self.router:
            return getattr(self.code, self.router)
        for found in vars(self.code).values():
            if inspect.isclass(found) and found.__module__ == self.code.__name__:
                lines, first = inspect.getsourcelines(found)
                if first <= self.line < first + len(lines):
                    return found
        raise ValueError(f"{self.preset}: no class has line {self.line} of {self.code.__file__}")

    @functools.cached_property
    def config_class(self):
        module = importlib.import_module(
            f"transformers.models.{self.folder}.configuration_{self.folder}")
        if self.config:
            return getattr(module, self.config)
        for model_type in (f"{self.preset}_text", self.preset):
            for found in vars(module).values():
                if getattr(found, "model_type", "") == model_type:
                    return found
        raise ValueError(f"{self.preset}: no class of {module.__file__} has it as model_type")


SPECIAL = {
    "afmoe": {"how": "batch"},
    "cohere2_moe_sigmoid": {"label": "cohere2_moe, sigmoid", "config": "Cohere2MoeConfig",
                            "config_says": {"expert_selection_fn": "sigmoid"}},
    "dbrx": {"config": "DbrxFFNConfig", "how": "dbrx"},
    "deepseek_ocr2": {"top_k": 6},
    "deepseek_v2": {"top_k": 6},
    "diffusion_gemma": {"experts": 128, "top_k": 8, "gain": 16},
    "dots1": {"experts": 128, "top_k": 6},
    "dots3_note_vision_encoder": {"label": "dots3_note, vision", "experts": 16},
    "gemma4": {"experts": 128, "top_k": 8, "gain": 16},
    "hunyuan_v1_moe": {"keeps_f32": True},
    "inkling": {"how": "shared", "logarithms": True},
    "inkling2": {"keeps_f32": True},
    "jetmoe": {"how": "sorted_pairs"},
    "llama4": {"how": "all_experts"},
    "muse_spark": {"gain": 2.5},
    "phimoe": {"router": "PhimoeTopKRouter", "how": "rounds"},
    "qwen3_omni_moe_talker_text": {"label": "qwen3_omni_moe, talker"},
    "step3p7": {"config": "Step3p7TextConfig"},
    "zaya": {"how": "skip"},
}
# Other configurations and routers for these presets.
VARIANTS = {
    "deepseek_v2": {"label": "deepseek_v2, groups", "experts": 160,
                    "config_says": {"topk_method": "group_limited_greedy", "n_group": 8,
                                    "topk_group": 3, "routed_scaling_factor": 16.0}},
    "deepseek_v4": {"label": "deepseek_v4, hash layers", "router": "DeepseekV4HashRouter",
                    "how": "hash"},
    "laguna": {"label": "laguna, soft-cap", "config_says": {"moe_router_logit_softcapping": 4.0}},
}


def all_of(lib):
    """A Family for each preset that follows a file of transformers."""
    names = lib.names()
    return [dataclasses.replace(family, names=names, **SPECIAL.get(family.preset, {}))
            for family in (Family(preset, folder, int(line), is_copy == "1", has_layer == "1")
                           for preset, folder, line, is_copy, has_layer in lib.families())]


def routers_of(lib):
    """A Family for each router, and its variants."""
    found = []
    for family in all_of(lib):
        if not family.is_copy:
            found.append(family)
        if family.preset in VARIANTS:
            found.append(dataclasses.replace(family, **VARIANTS[family.preset]))
    return found
