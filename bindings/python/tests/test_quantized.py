# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests the operators for experts with quantised weights."""

import threading

import pytest
import torch
from formats import ERRORS, FORMATS, ROWS_ERROR, decode, random_blocks
from test_ops import expected

import switchyard

T, E, K, H, I = 9, 6, 2, 256, 512
BLOCKS = [name for name in FORMATS if name != "int8"]


def rows_of(tokens=T, dtype=torch.float32):
    weights, ids = torch.randn(tokens, E).softmax(-1).topk(K)
    return {"hidden": torch.randn(tokens, H, dtype=dtype), "topk_ids": ids, "topk_weights": weights}


def floats(dtype=torch.float32):
    return {"up": torch.randn(E, 2 * I, H, dtype=dtype) / 16,
            "down": torch.randn(E, H, I, dtype=dtype) / 16}


def quantized(rows, up, down, name, down_name=None, **more):
    return switchyard.quantized_experts(**rows, up=up, down=down, up_format=name,
                                        down_format=down_name or name, intermediate=I, **more)


def error(got, want):
    return ((got.double() - want).square().mean() / want.square().mean()).sqrt().item()


def test_names_and_blocks():
    formats = switchyard.weight_formats()
    assert {name: tuple(f) for name, f in formats.items()} == {
        "int8": (1, 1), "q8_0": (32, 34), "q4_0": (32, 18), "mxfp4": (32, 17), "q4_K": (256, 144),
        "q6_K": (256, 210), "f32": (1, 4), "bf16": (1, 2), "f16": (1, 2)}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_floats_are_packed_and_multiplied(name, dtype):
    rows, weights = rows_of(dtype=dtype), floats(dtype)
    packed = {n: switchyard.pack_weights(w, name) for n, w in weights.items()}
    assert all(p.dtype == torch.uint8 and len(p) == E for p in packed.values())
    got = quantized(rows, **packed, name=name)
    assert got.dtype == dtype
    assert error(got, expected(**rows, **weights)) < ERRORS[name]


@pytest.mark.parametrize("name", BLOCKS)
def test_stored_blocks_are_multiplied_as_they_are(name):
    """Checks that a GGUF's bytes give the right values as stored, and the same bits after packing."""
    block = switchyard.weight_formats()[name]
    stored = {"up": random_blocks(name, E, 2 * I, H // block.columns),
              "down": random_blocks(name, E, H, I // block.columns)}
    weights = {n: decode(name, b).flatten(2) for n, b in stored.items()}
    stored = {n: b.flatten(2) for n, b in stored.items()}
    rows = rows_of()
    got = quantized(rows, **stored, name=name)
    assert error(got, expected(**rows, **weights)) < ROWS_ERROR
    packed = {n: switchyard.pack_weights(b, name) for n, b in stored.items()}
    assert torch.equal(quantized(rows, **packed, name=name), got)
    wide = torch.zeros(2 * E, *stored["up"].shape[1:], dtype=torch.uint8)[::2].copy_(stored["up"])
    assert torch.equal(quantized(rows, wide, packed["down"], name), got)


def test_int8_codes_with_scales():
    codes = torch.randint(-127, 128, (E, 2 * I, H), dtype=torch.int8)
    scales = torch.rand(E, 2 * I) / 1000
    up = switchyard.pack_weights(codes, "int8", scales=scales)
    rows, down = rows_of(), floats()["down"]
    got = quantized(rows, up, switchyard.pack_weights(down, "int8"), "int8")
    assert error(got, expected(**rows, up=codes * scales[..., None], down=down)) < ROWS_ERROR


@pytest.mark.parametrize("name, dtype", [("f32", torch.float32), ("bf16", torch.bfloat16),
                                         ("f16", torch.float16)])
def test_floats_as_they_are(name, dtype):
    rows, weights = rows_of(dtype=dtype), floats(dtype)
    want = expected(**rows, **weights)
    stored = quantized(rows, **weights, name=name)
    packed = quantized(rows, *[switchyard.pack_weights(w, name) for w in weights.values()], name=name)
    assert torch.equal(stored, packed)
    assert error(stored, want) < 8 * torch.finfo(dtype).eps


def test_layouts_biases_and_two_formats():
    rows, weights = rows_of(), floats()
    biases = {"up_bias": torch.randn(E, 2 * I).bfloat16(), "down_bias": torch.randn(E, H)}
    want = expected(**rows, **weights, **biases)
    up, down = switchyard.pack_weights(weights["up"], "q6_K"), switchyard.pack_weights(
        weights["down"], "q8_0")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        more = {n: b.to(dtype) for n, b in biases.items()}
        got = quantized(rows, up, down, "q6_K", "q8_0", **more)
        assert error(got, want) < ERRORS["q6_K"]
    gate, value = weights["up"].chunk(2, 1)
    one = torch.stack([gate, value], 2).flatten(1, 2)
    got = quantized(rows, switchyard.pack_weights(one, "q6_K"), down, "q6_K", "q8_0",
                    layout="interleaved")
    two = quantized(rows, switchyard.pack_weights(value, "q6_K"), down, "q6_K", "q8_0",
                    layout="split", gate=switchyard.pack_weights(gate, "q6_K"))
    plain = quantized(rows, up, down, "q6_K", "q8_0")
    assert torch.equal(got, plain) and torch.equal(two, plain)


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_alone_has_the_bits_of_the_batch(name):
    """Checks, on 1 to 64 threads, that each of 64 tokens has the same bits alone and in the batch, as
    docs/conformance.md promises."""
    before = torch.get_num_threads()
    rows, weights = rows_of(64, torch.bfloat16), floats(torch.bfloat16)
    packed = [switchyard.pack_weights(w, name) for w in weights.values()]
    biases = {"up_bias": torch.randn(E, 2 * I), "down_bias": torch.randn(E, H)}
    try:
        torch.set_num_threads(1)
        want = quantized(rows, *packed, name=name, **biases)
        for threads in (1, 2, 3, 8, 64):
            torch.set_num_threads(threads)
            assert torch.equal(quantized(rows, *packed, name=name, **biases), want)
            for t in range(64) if threads == 1 else (0, 31, 63):
                one = {n: x[t:t + 1] for n, x in rows.items()}
                assert torch.equal(quantized(one, *packed, name=name, **biases), want[t:t + 1])
            some = {n: x[5:22] for n, x in rows.items()}
            assert torch.equal(quantized(some, *packed, name=name, **biases), want[5:22])
    finally:
        torch.set_num_threads(before)


def test_several_threads_call_at_once():
    torch.set_num_threads(2)
    weights = floats()
    packed = [switchyard.pack_weights(w, "q4_K") for w in weights.values()]
    rows = [rows_of(tokens) for tokens in (1, 9, 64, 70)]
    want = [quantized(r, *packed, name="q4_K") for r in rows]
    same = [0] * len(rows)

    def run(i):
        for _ in range(20):
            same[i] += torch.equal(quantized(rows[i], *packed, name="q4_K"), want[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(rows))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert same == [20] * len(rows)


def test_any_bytes_are_weights():
    """Checks that the codes and scales of a broken file, even NaN and infinity, never crash."""
    rows = rows_of()
    for name in BLOCKS:
        block = switchyard.weight_formats()[name]
        up, down = (torch.randint(0, 256, (E, r, c // block.columns * block.bytes), dtype=torch.uint8)
                    for r, c in ((2 * I, H), (H, I)))
        up[0] = 255
        down[1, :, :2] = torch.tensor([0, 0x7c], dtype=torch.uint8)  # an f16 infinity
        assert quantized(rows, up, down, name).shape == (T, H)
        packed = [switchyard.pack_weights(w, name) for w in (up, down)]
        assert quantized(rows, *packed, name=name).shape == (T, H)


def test_a_NaN_scale_makes_NaN():
    weights = floats()
    weights["down"][:, 3, 5] = float("nan")
    rows = rows_of()
    got = quantized(rows, *[switchyard.pack_weights(w, "q8_0") for w in weights.values()], name="q8_0")
    assert got[:, 3].isnan().all() and got[:, :3].isfinite().all() and got[:, 4:].isfinite().all()


@pytest.mark.parametrize("change, message", [
    *(({name: None}, f"{name}: None, and not a tensor")
      for name in ("hidden", "topk_ids", "topk_weights", "up", "down")),
    ({"up_format": "q5_1"}, "up_format: unknown: 'q5_1'; there are int8, q8_0, q4_0, mxfp4"),
    ({"intermediate": 0}, "intermediate: not above zero"),
    ({"intermediate": I - 8, "up": lambda up: switchyard.pack_weights(
        torch.zeros(E, 2 * I - 16, H), "q8_0")},
     f"down: {I - 8} columns, where the format takes multiples of 32"),
    ({"intermediate": 2 * I}, "up: packed weights of this format and shape are uint8"),
    ({"up": lambda up: up[:, :-64]}, "up: packed weights of this format and shape are uint8"),
    ({"up": lambda up: up[:2]}, "down: not as many experts as up"),
    ({"up": lambda up: up[:0]}, "up: no experts"),
    ({"up": lambda up: up[0]}, "up: not of two dimensions"),
    ({"up": lambda up: up.view(torch.int8)}, "up: packed weights of this format and shape are uint8"),
    ({"up": lambda up: up[:, None]}, "up: weights as this format stores them are"),
    ({"up": lambda up: up.expand(1, *up.shape).transpose(0, 1)}, "up: weights as this format stores"),
    ({"up": lambda up: up[:1].expand(E, -1)}, "up: its experts overlap"),
    ({"gate": lambda up: up}, "gate: given, and the layout is not 'split'"),
    ({"layout": "split"}, "up: packed weights of this format and shape"),
    ({"layout": "ungated", "up": lambda up: up[:, :up.shape[1] // 2].contiguous(), "topk_ids":
      lambda up: torch.full((T, K), E)}, "topk_ids: an id outside"),
    ({"down_bias": lambda up: torch.zeros(E, H - 1)}, "down_bias: not .experts, columns"),
    ({"up_bias": lambda up: torch.zeros(E, 2 * I, dtype=torch.int32)}, "up_bias: not float32"),
])
def test_wrong_arguments_are_named(change, message):
    weights = floats()
    named = rows_of() | {"up": switchyard.pack_weights(weights["up"], "q8_0"),
                         "down": switchyard.pack_weights(weights["down"], "q8_0"),
                         "up_format": "q8_0", "down_format": "q8_0", "intermediate": I}
    for name, value in change.items():
        change[name] = value(named["up"]) if callable(value) else value
    with pytest.raises(RuntimeError, match=f"switchyard::quantized_experts: {message}"):
        switchyard.quantized_experts(**(named | change))


@pytest.mark.parametrize("source, format, scales, message", [
    (torch.zeros(2, 3, 32), "q3_K", None, "format: unknown: 'q3_K'"),
    (torch.zeros(3, 32), "q8_0", None, "source: not a tensor of three dimensions"),
    (torch.zeros(2, 3, 33), "q8_0", None, "source: 33 columns, where the format takes multiples of 32"),
    (torch.zeros(2, 0, 32), "q8_0", None, "source: empty"),
    (torch.zeros(2, 3, 35, dtype=torch.uint8), "q8_0", None, "source: rows of 35 bytes"),
    (torch.zeros(2, 3, 32, dtype=torch.int8), "q8_0", None, "source: neither floats nor weights"),
    (torch.zeros(2, 3, 32, dtype=torch.int8), "int8", None, "scales: missing"),
    (torch.zeros(2, 3, 32, dtype=torch.int8), "int8", torch.zeros(2, 4), "library: PackWeights"),
    (torch.zeros(2, 3, 32), "int8", torch.zeros(2, 3), "scales: given"),
])
def test_what_cannot_be_packed_is_named(source, format, scales, message):
    with pytest.raises(RuntimeError, match=f"switchyard::pack_weights: {message}"):
        switchyard.pack_weights(source, format, scales=scales)


def test_fake_tensors():
    rows, weights = rows_of(), floats()
    packed = {n: switchyard.pack_weights(w, "q4_0") for n, w in weights.items()}
    tests = ("test_schema", "test_faketensor")
    named = rows | packed | {"up_format": "q4_0", "down_format": "q4_0", "intermediate": I}
    torch.library.opcheck(torch.ops.switchyard.quantized_experts, (), named, test_utils=tests)
    torch.library.opcheck(switchyard.pack_weights, (weights["up"], "q4_0"), test_utils=tests)
    stored = torch.zeros(E, H, I // 32 * 18, dtype=torch.uint8)
    torch.library.opcheck(switchyard.pack_weights, (stored, "q4_0"), test_utils=tests)
    with pytest.raises(RuntimeError, match="autograd: has no derivative"):
        switchyard.quantized_experts(**(named | {"hidden": rows["hidden"].requires_grad_()}))


def test_flops():
    from torch.utils.flop_counter import FlopCounterMode

    rows, weights = rows_of(), floats()
    packed = [switchyard.pack_weights(w, "q8_0") for w in weights.values()]
    with FlopCounterMode(display=False) as counter:
        quantized(rows, *packed, name="q8_0")
    assert counter.get_total_flops() == 6 * T * K * H * I
