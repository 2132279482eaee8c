# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that weights packed by oneDNN give the same results, and never results of old weights."""

import copy
import gc
import logging
import pickle
import threading

import pytest
import torch
from test_models import make
from test_ops import E, H, I, arguments, check, expected

import switchyard
import switchyard.transformers
from switchyard._experts import Packed, Unsupported, Weights
from switchyard.transformers import _packed

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def packed_of(named, transposed=False):
    try:
        return Packed(Weights(named["up"], named["down"]), transposed)
    except Unsupported as why:
        # oneDNN packs f32 on every CPU, but bf16 and f16 only on some.
        assert named["up"].dtype != torch.float32, why
        pytest.skip(str(why))


@pytest.mark.parametrize("tokens", [1, 2, 9, 300])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("biased", [False, True])
def test_the_same_products(tokens, dtype, biased):
    torch.set_num_threads(2)
    named = arguments(dtype, tokens)
    if biased:
        named["up_bias"] = torch.randn(E, 2 * I, dtype=dtype)
        named["down_bias"] = torch.randn(E, H, dtype=dtype)
    packed = packed_of(named)
    got = switchyard.experts(**named, packed=packed.number)
    check(got, expected(**named), max(2e-6, torch.finfo(dtype).eps))


def test_transposed_weights():
    named = arguments()
    want = expected(**named)
    named["up"] = named["up"].transpose(1, 2).contiguous()
    named["down"] = named["down"].transpose(1, 2).contiguous()
    packed = packed_of(named, transposed=True)
    check(switchyard.experts(**named, transposed=True, packed=packed.number), want)


def test_several_threads():
    torch.set_num_threads(2)
    named = arguments(tokens=64)
    packed, want = packed_of(named), expected(**named)
    results = [None] * 4

    def run(i):
        for _ in range(20):
            results[i] = switchyard.experts(**named, packed=packed.number)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for got in results:
        check(got, want)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_product_raises_is_told(threads):
    """Checks that the error of a product is raised. Packed f16 gives an error, because oneDNN multiplies
    f16 only on few CPUs."""
    torch.set_num_threads(threads)
    named = arguments(torch.float16, tokens=64)
    number = torch.ops.switchyard.keep_packed(
        *[[expert.to_mkldnn() for expert in named[n]] for n in ("up", "down")])
    weight = named["up"][0].to_mkldnn()
    try:
        torch.ops.mkldnn._linear_pointwise(named["hidden"], weight, None, "none", [], "")
        pytest.skip("oneDNN multiplies f16 here")
    except RuntimeError as error:
        own = str(error).split(".")[0]
    for _ in range(20):
        with pytest.raises(RuntimeError) as told:
            switchyard.experts(**named, packed=number)
        assert own in str(told.value)
    torch.ops.switchyard.drop_packed(number)
    check(switchyard.experts(**named), expected(**named), torch.finfo(torch.float16).eps)


def test_memory_goes_with_its_owner():
    named = arguments()
    packed = packed_of(named)
    number = packed.number
    del packed
    gc.collect()
    with pytest.raises(RuntimeError, match="experts: packed: no such number"):
        switchyard.experts(**named, packed=number)


def test_wrong_numbers():
    few, named = arguments(), arguments()
    few["up"], few["down"] = few["up"][:2], few["down"][:2]
    packed = packed_of(few)
    with pytest.raises(RuntimeError, match="experts: packed: not of as many experts"):
        switchyard.experts(**named, packed=packed.number)
    with pytest.raises(RuntimeError, match="experts: packed: no such number"):
        switchyard.experts(**named, packed=-1)
    with pytest.raises(RuntimeError, match="keep_packed: down: not a tensor for each of up"):
        torch.ops.switchyard.keep_packed([torch.zeros(1, 1)], [])


def _one_packed(out, cols, dtype=torch.float32):
    return torch.ops.mkldnn._reorder_linear_weight(torch.randn(out, cols, dtype=dtype), None)


@pytest.mark.parametrize("up, down, message", [
    ([], [], "up: no experts"),
    ([torch.zeros(2, 3)], [torch.zeros(3, 2)], "up: not packed by oneDNN"),
    ([torch.zeros(0)], [torch.zeros(0)], "up: not packed by oneDNN"),
    ([torch.zeros(2, 3, device="meta")], [torch.zeros(3, 2)], "up: not packed by oneDNN"),
    ([_one_packed(4, 3)], [torch.zeros(3, 2)], "down: not packed by oneDNN"),
    ([torch.randn(0, 4).to_mkldnn()], [_one_packed(4, 3)], "up: empty"),
    ([torch.randn(2, 4, 3).to_mkldnn()], [_one_packed(4, 3)], "up: not of two dimensions"),
    ([_one_packed(4, 3), _one_packed(4, 5)], [_one_packed(3, 2)] * 2, "up: not of one shape and dtype"),
])
def test_what_oneDNN_did_not_pack_is_refused(up, down, message):
    with pytest.raises(RuntimeError, match=f"switchyard::keep_packed: {message}"):
        torch.ops.switchyard.keep_packed(up, down)


@pytest.mark.parametrize("name, shape", [
    ("up", (2 * I, H - 16)), ("up", (2 * I + 2, H)), ("up", (16, 16)), ("down", (H, I // 2)),
    ("down", (H // 2, I))])
def test_packed_weights_of_another_shape_are_refused(name, shape):
    named = arguments()
    shapes = {"up": (2 * I, H), "down": (H, I)} | {name: shape}
    number = torch.ops.switchyard.keep_packed(
        *[[_one_packed(*shapes[n]) for _ in range(E)] for n in ("up", "down")])
    with pytest.raises(RuntimeError,
                       match="experts: packed: not of the shape and dtype of up and down"):
        switchyard.experts(**named, packed=number)
    torch.ops.switchyard.drop_packed(number)


@pytest.fixture
def heard(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    caplog.set_level(logging.WARNING)
    return lambda: [r.getMessage() for r in caplog.records
                    if "have changed since" in r.getMessage()]


def logits_of(model, tokens):
    with torch.inference_mode():
        return model(tokens).logits.clone()


def experts_of(model):
    return model.model.layers[0].mlp.experts


@pytest.mark.parametrize("family", ["qwen3_moe", "gpt_oss"])
def test_patch(family, heard):
    model = make(family)
    tokens = torch.randint(2, 97, (2, 9))
    done = switchyard.transformers.patch(model)
    want = logits_of(model, tokens)
    assert not done.packed and "packed" not in str(done)
    done = switchyard.transformers.patch(model, pack_weights=True)
    assert done.packed == done.experts and not done.unpacked
    assert f"{len(done.experts)} x {type(experts_of(model)).__name__}: by switchyard, " \
        "its weights packed for oneDNN, beside their own memory" in str(done)
    torch.testing.assert_close(logits_of(model, tokens), want)
    # Copying a model does not copy its packed weights.
    experts = experts_of(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(experts))):
        assert not [m for m in other.modules() if m in _packed]
    assert len([m for m in model.modules() if m in _packed]) == len(done.packed)
    switchyard.transformers.patch(model)
    assert not [m for m in model.modules() if m in _packed]
    torch.testing.assert_close(logits_of(model, tokens), want)
    assert not heard()


def test_changed_weights_are_read_as_they_lie(heard):
    model = make("qwen3_moe")
    tokens = torch.randint(2, 97, (2, 9))
    switchyard.transformers.patch(model, pack_weights=True)
    before = logits_of(model, tokens)
    with torch.no_grad():
        model.model.layers[0].mlp.experts.down_proj.mul_(-3)
    after = logits_of(model, tokens)
    assert len(heard()) == 1
    model.set_experts_implementation("eager")
    torch.testing.assert_close(after, logits_of(model, tokens))
    assert not torch.allclose(before, after)


def test_writes_through_data_are_seen_where_they_change_experts(heard):
    """Tests writes that torch does not count, such as peft's merge()."""
    model = make("qwen3_moe")
    tokens = torch.randint(2, 97, (2, 9))
    switchyard.transformers.patch(model, pack_weights=True)
    before = logits_of(model, tokens)
    model.model.layers[0].mlp.experts.down_proj.data.mul_(-3)
    after = logits_of(model, tokens)
    assert len(heard()) == 1 and not torch.allclose(before, after)
    model.set_experts_implementation("eager")
    torch.testing.assert_close(after, logits_of(model, tokens))


def test_a_call_packs_anew():
    model = make("qwen3_moe")
    tokens = torch.randint(2, 97, (2, 9))
    switchyard.transformers.patch(model, pack_weights=True)
    model.model.layers[0].mlp.experts.down_proj.data[:, 0].mul_(-30)  # a write that is not noticed
    done = switchyard.transformers.patch(model, pack_weights=True)
    assert len(done.packed) == 2
    after = logits_of(model, tokens)
    model.set_experts_implementation("eager")
    torch.testing.assert_close(after, logits_of(model, tokens), rtol=1e-4, atol=1e-4)


def test_compiles_in_one_piece():
    model = make("qwen3_moe")
    tokens = torch.randint(2, 97, (2, 9))
    switchyard.transformers.patch(model, pack_weights=True)
    with torch.no_grad():
        want = model(tokens).logits
        torch._dynamo.reset()
        got = torch.compile(model, fullgraph=True, backend="aot_eager")(tokens).logits
    torch.testing.assert_close(got, want)


def test_what_cannot_be_packed_is_said():
    with torch.device("meta"):
        named = {"up": torch.empty(E, 2 * I, H), "down": torch.empty(E, H, I)}
    with pytest.raises(Unsupported, match="not on the CPU"):
        Packed(Weights(**named), transposed=False)
    with pytest.raises(Unsupported, match="oneDNN does not pack its weights"):
        Packed(Weights(torch.zeros(E, 2 * I, H, dtype=torch.float64), torch.zeros(E, H, I)), False)
