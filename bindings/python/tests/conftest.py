# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # the tests make all their models

import pytest
import torch

import switchyard.transformers


@pytest.fixture(autouse=True)
def _alike():
    """Gives each test the same random seed and number of threads, and shows the warnings of earlier
    tests again."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    switchyard.transformers._warned.clear()
