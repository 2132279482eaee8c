# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # tests make all models themselves

import pytest
import torch

import switchyard.transformers


@pytest.fixture(autouse=True)
def _alike():
    """Each test has the same random numbers and threads, and warnings are shown again."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    switchyard.transformers._warned.clear()
