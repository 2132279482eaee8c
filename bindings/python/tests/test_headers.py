# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that the binding compiles with the headers of each torch that pyproject.toml promises.

The newest version is the installed torch. The headers of the older versions are in the folder
SWITCHYARD_TORCH_HEADERS, as VERSION/torch/include (scripts/setup.sh engines).
"""

import concurrent.futures
import os
import pathlib
import subprocess

import pytest
import torch

PYTHON = pathlib.Path(__file__).parents[1]
VERSIONS = ("2.10.0", "2.11.0", "installed")


@pytest.mark.parametrize("version", VERSIONS)
def test_compiles(version):
    folder = os.environ.get("SWITCHYARD_TORCH_HEADERS")
    if version == "installed":
        headers = pathlib.Path(torch.__file__).parent / "include"
    elif folder:
        headers = pathlib.Path(folder, version, "torch", "include")
    else:
        pytest.skip("SWITCHYARD_TORCH_HEADERS is not set")
    assert (headers / "torch/csrc/stable/ops.h").exists(), headers

    def check(source):
        return subprocess.run(
            ["c++", "-std=c++17", "-fsyntax-only", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
             "-DTORCH_TARGET_VERSION=0x020a000000000000", "-I", PYTHON.parents[1] / "include",
             "-I", PYTHON.parents[1], "-isystem", headers, source], capture_output=True, text=True)

    sources = sorted((PYTHON / "csrc").glob("*.cc"))
    assert sources
    # Torch's headers take two seconds per source, so all cores compile.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(check, sources):
            assert done.returncode == 0, done.stderr[:2000]
