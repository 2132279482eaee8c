# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Implements the interface of `mx.fast.metal_kernel`."""

import re
import sys
from typing import Sequence

import numpy as np

from ._run import assert_clean, run

_METAL_TYPES = {
    "bool": "bool", "bool_": "bool", "float16": "half", "float32": "float", "bfloat16": "bfloat",
    **{f"{u}int{bits}": f"{u}int{bits}_t" for u in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

# Names of Metal's attributes. If the source uses one of them, MLX adds a parameter for it to the kernel.
_VECTORS = (
    "dispatch_threads_per_threadgroup grid_origin grid_size thread_position_in_grid "
    "thread_position_in_threadgroup threadgroup_position_in_grid threadgroups_per_grid threads_per_grid "
    "threads_per_threadgroup"
).split()
_SCALARS = (
    "dispatch_quadgroups_per_threadgroup dispatch_simdgroups_per_threadgroup quadgroup_index_in_threadgroup "
    "quadgroups_per_threadgroup simdgroup_index_in_threadgroup simdgroups_per_threadgroup "
    "thread_execution_width thread_index_in_quadgroup thread_index_in_simdgroup thread_index_in_threadgroup "
    "threads_per_simdgroup"
).split()

# MLX puts declarations like these before the caller's header.
_PRELUDE = """#include <metal_stdlib>
using namespace metal;
typedef half float16_t;
typedef bfloat bfloat16_t;
template <typename Index = int64_t, typename Shape, typename Strides>
Index elem_to_loc(Index elem, Shape shape, Strides strides, int ndim) {
  Index at = 0;
  for (int d = ndim - 1; d >= 0; --d) {
    at += Index(elem % shape[d]) * Index(strides[d]);
    elem /= shape[d];
  }
  return at;
}
"""

# MLX puts inputs with fewer elements than this into constant memory, and all others into device
# memory.
_DEVICE_SIZE = 8


def _dtype_name(dtype) -> str:
    """Returns the name of a dtype of NumPy, MLX (mlx.core.float32) or torch (torch.float32)."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype).rsplit(".", 1)[-1]


def _metal_type(name: str) -> str:
    if name not in _METAL_TYPES:
        raise TypeError(f"Metal has no {name}")
    return _METAL_TYPES[name]


def _bfloat16():
    import ml_dtypes

    return ml_dtypes.bfloat16


def _numpy(value, mx) -> np.ndarray:
    if mx and isinstance(value, mx.array) and value.dtype == mx.bfloat16:
        return np.array(value.view(mx.uint16)).view(_bfloat16())
    return np.asarray(value)


def _template(name: str, value) -> str:
    if isinstance(value, (bool, np.bool_)):
        return f"constexpr bool {name} = {str(bool(value)).lower()};"
    if isinstance(value, (int, np.integer)):
        return f"constexpr int {name} = {int(value)};"
    return f"typedef {_metal_type(_dtype_name(value))} {name};"


class _Kernel:
    def __init__(self, name, input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs):
        self.name, self.source, self.header = name, source, header
        self.input_names, self.output_names = list(input_names), list(output_names)
        self.ensure_row_contiguous, self.atomic_outputs = ensure_row_contiguous, atomic_outputs

    def _uses(self, name: str) -> bool:
        return re.search(rf"\b{name}\b", self.source) is not None

    def __call__(
        self, *, inputs, output_shapes, output_dtypes, grid, threadgroup,
        template=(), init_value=None, verbose=False, stream=None,
    ):  # fmt: skip
        """Runs the kernel. Raises FindingsError for findings of the checks in `settings`."""
        __tracebackhide__ = True
        for what, names, values in (
            ("inputs", self.input_names, inputs),
            ("output_shapes", self.output_names, output_shapes),
            ("output_dtypes", self.output_names, output_dtypes),
        ):
            if len(names) != len(values):
                raise ValueError(f"{self.name}: {what}: {len(values)} for {len(names)} names")
        mx = sys.modules.get("mlx.core")
        is_mlx = mx and any(isinstance(v, (mx.array, mx.Dtype)) for v in [*inputs, *output_dtypes])
        parameters, buffers = [], []

        def bind(declared: str, buffer) -> None:
            parameters.append(f"{declared} [[buffer({len(buffers)})]]")
            buffers.append(buffer)

        for name, value in zip(self.input_names, inputs):
            if isinstance(value, float):
                value = np.float32(value)
            elif isinstance(value, int) and not isinstance(value, bool):
                value = np.int32(value)
            array = _numpy(value, mx)
            shape, strides = array.shape, [s // array.itemsize for s in array.strides]
            if self.ensure_row_contiguous or array.flags.c_contiguous:
                array = np.array(array, order="C")
                strides = [s // array.itemsize for s in array.strides]
            else:
                array = _memory_of(name, array)
            array.flags.writeable = False
            space = "constant" if array.size < _DEVICE_SIZE else "device"
            bind(f"const {space} {_metal_type(array.dtype.name)}{'*' if shape else '&'} {name}", array)
            if shape and self._uses(f"{name}_shape"):
                bind(f"const constant int* {name}_shape", np.array(shape, np.int32))
            if shape and self._uses(f"{name}_strides"):
                bind(f"const constant int64_t* {name}_strides", np.array(strides, np.int64))
            if shape and self._uses(f"{name}_ndim"):
                bind(f"const constant int& {name}_ndim", np.int32(len(shape)))
        outputs, unwritten = [], []
        for name, shape, dtype in zip(self.output_names, output_shapes, output_dtypes):
            dtype = _dtype_name(dtype)
            scalar = _metal_type(dtype)
            output = np.empty(shape, _bfloat16() if dtype == "bfloat16" else dtype)
            if init_value is None:
                unwritten.append(len(buffers))
            else:
                output[...] = init_value
            bind(f"device {f'atomic<{scalar}>' if self.atomic_outputs else scalar}* {name}", output)
            outputs.append(output)
        parameters += [f"uint3 {a} [[{a}]]" for a in _VECTORS if self._uses(a)]
        parameters += [f"uint {a} [[{a}]]" for a in _SCALARS if self._uses(a)]
        # This is one line, so that findings have the line numbers of `source`.
        kernel = f"custom_kernel_{self.name}"
        constants = " ".join(_template(*pair) for pair in template)
        text = f"kernel void {kernel}({', '.join(parameters)}) {{ {constants} {self.source}\n}}\n"
        if verbose:
            print(f"{self.header}\n{text}")
        size = [min(g, t) for g, t in zip(grid, threadgroup)]
        prepend = [_PRELUDE, self.header + "\n"] if self.header else [_PRELUDE]
        assert_clean(run(text, kernel, grid, size, buffers, unwritten=unwritten, prepend=prepend))
        if not is_mlx:
            return outputs
        return [
            mx.array(o.view(np.uint16)).view(mx.bfloat16) if o.dtype.name == "bfloat16" else mx.array(o)
            for o in outputs
        ]


def _memory_of(name: str, array: np.ndarray) -> np.ndarray:
    """Returns a copy of the memory from the array's first element to its last, with the gaps between them."""
    if any(s < 0 for s in array.strides):
        raise ValueError(f"{name}: has a negative stride")
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides)) // array.itemsize
    return np.lib.stride_tricks.as_strided(array, (last + 1,), (array.itemsize,)).copy()


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
):
    """`mx.fast.metal_kernel`: makes a kernel from a function's body, for arrays of NumPy or MLX."""
    return _Kernel(name, input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs)
