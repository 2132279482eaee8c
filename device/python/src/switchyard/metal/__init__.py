# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs Metal compute kernels on Linux over NumPy arrays, and finds races, wrong accesses and missing barriers."""

from ._mlx import metal_kernel
from ._run import Finding, FindingsError, MetalError, Place, Settings, assert_clean, run, settings
from ._torch import compile_shader

__all__ = [
    "Finding",
    "FindingsError",
    "MetalError",
    "Place",
    "Settings",
    "assert_clean",
    "compile_shader",
    "metal_kernel",
    "run",
    "settings",
]
