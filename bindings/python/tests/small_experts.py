# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes small modules of the classes with the decorator use_experts_implementation.

transformers lets other code run the experts of these classes.
"""

import importlib
import inspect
import pathlib
import re

import torch
import transformers

MODELS = pathlib.Path(transformers.__file__).parent / "models"
_DECORATED = re.compile(r"^@use_experts_implementation.*\nclass (\w+)", re.MULTILINE)
EXPERTS, HIDDEN, INTERMEDIATE = 8, 64, 48
# The names that the fields for a size have in configurations, and the size in these tests.
_SAYS = (
    (("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), EXPERTS),
    (("hidden_size", "moe_hidden_size", "moe_latent_size"), HIDDEN),
    (("intermediate_size", "moe_intermediate_size", "expert_ffn_hidden_size", "mlp_ffn_hidden_size"),
     INTERMEDIATE),
)


def decorated():
    """Returns (family, class) for each class of experts with the decorator."""
    found = []
    for path in sorted(MODELS.glob("*/modeling_*.py")):
        found += [(path.parent.name, name) for name in _DECORATED.findall(path.read_text())]
    return found


class _Small:
    """Makes a default configuration, but with small sizes."""

    def __init__(self, default):
        self._default = default
        self._says = {name: value for names, value in _SAYS for name in names}
        self._experts_implementation = "eager"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._says:
            return getattr(self._default, name)
        try:
            many = isinstance(getattr(self._default, name), list)
        except AttributeError as error:
            # If the error says that the field has a value for each layer, the class has this
            # field. Otherwise the class has another name for the size.
            if "per-layer" not in str(error):
                raise
            many = False
        return [self._says[name]] * 99 if many else self._says[name]


def _configurations(family, name):
    """Returns the configuration classes of the family, the likeliest one for class `name` first."""
    module = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
    classes = [c for n, c in vars(module).items() if n.endswith("Config") and isinstance(c, type)
               and c.__module__ == module.__name__]
    return sorted(classes, key=lambda c: (-len(_common(name, c.__name__)), "Text" not in c.__name__))


def _common(a, b):
    return a[:next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))]


def make(family, name, dtype=torch.float32):
    """Makes an experts module with random parameters."""
    code = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    cls = getattr(code, name)
    # Ernie's vision experts have another width than its text experts, so its class takes the width
    # as an argument.
    asked = "intermediate_size" in inspect.signature(cls).parameters
    more = {"intermediate_size": INTERMEDIATE} if asked else {}
    for config in _configurations(family, name):
        try:
            module = cls(_Small(config()), **more).eval()
            break
        except (AttributeError, TypeError):  # a configuration of another part of the model
            continue
    else:
        raise ValueError(f"{family}: no configuration makes a {name}")
    with torch.no_grad():
        for p in module.parameters():
            # Values are so large that activations reach their limits.
            p.normal_(std=3.0 / HIDDEN ** 0.5 if p.dim() == 3 else 0.5)
    return module.to(dtype)
