# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # all models are made here

import pytest
import torch

import switchyard.transformers


@pytest.fixture(autouse=True)
def _alike():
    """The same numbers and threads for each test, and warnings as if it were the first."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    switchyard.transformers._warned.clear()
