# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Implements the interface of `torch.mps.compile_shader`."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from ._run import assert_clean, run, settings

_CASTS = {"fp16": "float16", "fp32": "float32"}
_MOST_THREADS = 1024  # the limit for a threadgroup


def _is_tensor(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _array(position: int, value, cast: str | None):
    """Returns the array to bind for an argument. The array of a tensor shares the tensor's memory."""
    if value is None or isinstance(value, np.ndarray):
        return value
    if _is_tensor(value):
        value = value.detach()
        torch = sys.modules["torch"]
        return (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
    values = np.atleast_1d(value)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"argument {position}: {type(value).__name__} is no tensor, number or list of numbers")
    return values.astype(_CASTS.get(cast, cast) if cast else np.float32 if values.dtype.kind == "f" else np.int64)


class _Function:
    def __init__(self, source: str, name: str, include_folders):
        self._source, self._name, self._include_folders = source, name, include_folders

    def __call__(self, *args, threads=None, group_size=None, arg_casts=None):
        """Runs the kernel. Raises FindingsError for findings of the checks in `settings`."""
        __tracebackhide__ = True
        buffers = [
            _array(i, a, arg_casts if isinstance(arg_casts, str) else (arg_casts or {}).get(i))
            for i, a in enumerate(args)
        ]
        if threads is None:
            first = next((b for a, b in zip(args, buffers) if isinstance(a, np.ndarray) or _is_tensor(a)), None)
            if first is None:
                raise ValueError(f"{self._name}: threads: how many, where no argument is a tensor?")
            threads = first.size
        if group_size is None:
            group_size = min(int(np.atleast_1d(threads)[0]), _MOST_THREADS)
        assert_clean(
            run(self._source, self._name, threads, group_size, buffers, include_folders=self._include_folders)
        )


class _Library:
    def __init__(self, source: str):
        self._source = source
        # An installed torch brings <c10/metal/utils.h> and similar headers.
        spec = importlib.util.find_spec("torch")
        folders = [Path(f, "include") for f in (spec.submodule_search_locations if spec else ())]
        self._folders = [f for f in folders if Path(f, "c10", "metal").is_dir()]

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Function(self._source, name, [*settings.include_folders, *self._folders])


def compile_shader(source: str):
    """`torch.mps.compile_shader`: `lib.kernel(args..., threads=, group_size=, arg_casts=)` over
    tensors on the CPU or arrays. Clang compiles a kernel at its first call."""
    return _Library(source)
