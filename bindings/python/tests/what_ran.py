# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls of Switchyard's operators."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class _Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.counts = {"experts": 0, "route": 0}
        self._names = {torch.ops.switchyard.experts.default: "experts",
                       torch.ops.switchyard.quantized_experts.default: "experts",
                       torch.ops.switchyard.route.default: "route"}

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op in self._names:
            self.counts[self._names[op]] += 1
        return op(*args, **(kwargs or {}))


def what_ran(call):
    """Returns the numbers of experts and routers that Switchyard ran in call(), and its result."""
    with torch.no_grad(), _Count() as count:
        result = call()
    return tuple(count.counts.values()), result
