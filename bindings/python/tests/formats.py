# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Decodes weights of each format to floats, by the formulas of expert_weights.h. Also defines the
bounds of errors for tests."""

import torch

import switchyard

FORMATS = ("int8", "q8_0", "q4_0", "mxfp4", "q4_K", "q6_K")
# Bounds of the relative error of a layer's output: the RMS of the error divided by the RMS of the
# output. The bounds hold for normally distributed weights and rows. The measured errors are, in
# this order: 0.025, 0.015, 0.15, 0.21, 0.13 and 0.04.
ERRORS = {"int8": 0.04, "q8_0": 0.025, "q4_0": 0.2, "mxfp4": 0.28, "q4_K": 0.18, "q6_K": 0.06}
# The bound of the error if weights are exact and only rows are rounded to int8 codes. 32 columns,
# 256 columns or a whole row share a scale.
ROWS_ERROR = 0.04
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def f16(blocks, at):
    """Returns the f16 at byte `at` of each block, as float."""
    return blocks[..., at:at + 2].contiguous().view(torch.float16).float()


def nibbles(codes):
    """Returns the low nibbles of n bytes, then the high ones: byte i has elements i and i + n."""
    return torch.cat([codes & 15, codes >> 4], -1)


def random_blocks(name, *shape):
    """Returns random blocks, uint8 [*shape, bytes of a block], with small scales and any codes."""
    blocks = torch.randint(0, 256, (*shape, switchyard.weight_formats()[name].bytes),
                           dtype=torch.uint8)
    def scale(at, factor):
        values = (torch.rand(*shape, 1) * factor + factor).half()
        blocks[..., at:at + 2] = values.view(torch.uint8)
    if name == "mxfp4":
        blocks[..., 0] = torch.randint(120, 124, shape)
    elif name == "q6_K":
        scale(208, 0.0001)
    else:
        scale(0, 0.01 if name != "q4_K" else 0.0005)
        if name == "q4_K":
            scale(2, 0.001)
    return blocks


def decode(name, blocks):
    """Decodes GGML's blocks to floats [..., columns of a block]."""
    if name == "q8_0":
        return f16(blocks, 0) * blocks[..., 2:].contiguous().view(torch.int8).float()
    if name == "q4_0":
        return f16(blocks, 0) * (nibbles(blocks[..., 2:]).float() - 8)
    if name == "mxfp4":
        return (blocks[..., :1].float() - 127).exp2() * E2M1[nibbles(blocks[..., 1:]).int()]
    if name == "q4_K":
        packed = blocks[..., 4:16].int()
        low, mid, high = packed[..., :4], packed[..., 4:8], packed[..., 8:]
        s = torch.cat([low & 63, high & 15 | low >> 6 << 4], -1).float()
        m = torch.cat([mid & 63, high >> 4 | mid >> 6 << 4], -1).float()
        codes = nibbles(blocks[..., 16:].unflatten(-1, (4, 32))).unflatten(-1, (2, 32)).flatten(-3, -2)
        values = (f16(blocks, 0) * s)[..., None] * codes - (f16(blocks, 2) * m)[..., None]
        return values.flatten(-2)
    assert name == "q6_K"
    low = nibbles(blocks[..., :128].unflatten(-1, (2, 64)))
    bits = blocks[..., 128:192].unflatten(-1, (2, 1, 32))
    high = bits >> torch.tensor([[0], [2], [4], [6]], dtype=torch.uint8) & 3
    codes = low.int().flatten(-2) + (high.int() * 16).flatten(-3) - 32
    scales = blocks[..., 192:208].contiguous().view(torch.int8).float()
    return (f16(blocks, 208) * scales)[..., None].mul(codes.unflatten(-1, (16, 16))).flatten(-2)
