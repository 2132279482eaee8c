# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests patch(model, experts_dtype=...), which quantises a model's experts."""

import copy
import itertools
import json
import logging
import pathlib
import pickle
import weakref

import peft
import pytest
import small_experts
import test_adopted
import torch
from formats import ERRORS, FORMATS, decode, random_blocks
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from test_models import FAMILIES, make
from transformers import AutoModelForCausalLM
from what_ran import what_ran

import switchyard.transformers
from switchyard import _families, _quantized
from switchyard.transformers import ExpertsConfig, patch, unpatch

TOKENS = torch.randint(2, 97, (1, 40), generator=torch.Generator().manual_seed(1))
# These sizes are multiples of every format's block.
WIDE = {"hidden_size": 256, "moe_intermediate_size": 256, "intermediate_size": 256}


def wide(family, dtype=torch.float32):
    # OLMoE's attention heads divide the whole hidden size, so head_dim grows with it.
    return make(family, dtype, **WIDE, **({"head_dim": 64} if family == "olmoe" else {}))


# The bound of the error of logits, in units of the bound of a layer. It is above 1, because two
# layers add up their errors. error() takes the median of tokens, which ignores tokens that the
# router sends to another expert.
LOGITS_ERROR = 2.5


@pytest.fixture(autouse=True)
def _one_thread(_alike):
    torch.set_num_threads(1)


def logits_of(model, tokens=TOKENS):
    with torch.inference_mode():
        return model(tokens, use_cache=False).logits[0].double()


def error(got, want):
    """Returns the relative error of the median token. A token's relative error is the RMS of its
    differences, divided by the RMS of its wanted values."""
    return ((got - want).square().mean(1) / want.square().mean(1)).sqrt().median().item()


def mlp(model):
    return model.model.layers[-1].mlp


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family):
    """Checks for each family and format that the logits are within the format's bound of the logits
    with float experts."""
    model = wide(family)
    want = logits_of(model)
    for name in FORMATS:
        one = copy.deepcopy(model)
        done = patch(one, experts_dtype=name)
        assert done.quantized == {n: (name, name) for n in done.experts}, str(done)
        assert done.experts and not done.kept_float
        assert error(logits_of(one), want) <= LOGITS_ERROR * ERRORS[name], name


@pytest.mark.parametrize("family", test_adopted.FAMILIES)
def test_families_that_ask_for_no_implementation(family, tmp_path):
    model = test_adopted.make(family)
    model.save_pretrained(tmp_path / "floats")
    want = test_adopted.run(model)[1].flatten(0, -2)
    for name in ("q8_0", "q4_0"):
        one = copy.deepcopy(model)
        done = patch(one, experts_dtype=name)
        assert set(done.quantized.values()) == {(name, "int8")}, str(done)
        got = test_adopted.run(one)[1].flatten(0, -2)
        assert error(got, want) <= LOGITS_ERROR * ERRORS[name]
    one.save_pretrained(tmp_path / "quantised")
    for folder, more in (("quantised", {}), ("floats", {"quantization_config": ExpertsConfig(name)})):
        loaded = type(one).from_pretrained(tmp_path / folder, **more)
        patch(loaded)
        assert torch.equal(test_adopted.run(loaded)[1].flatten(0, -2), got)


FORMAT_OF = itertools.cycle(("int8", "q8_0", "q4_0", "mxfp4"))


@pytest.mark.parametrize("family, name, dtype", [
    (*which, dtype) for which, dtype in zip(small_experts.decorated(), FORMAT_OF)])
def test_modules(family, name, dtype):
    """Tests every class with the decorator, each with one format: the first class with the first format,
    the second with the second, and so on."""
    module = small_experts.make(family, name)
    kind = _families.DECORATED
    if getattr(module, "has_post_expert_norm", False):
        return
    weights, ids = torch.randn(20, small_experts.EXPERTS).softmax(-1).topk(3)
    hidden = torch.randn(20, small_experts.HIDDEN)
    module.config._experts_implementation = "switchyard"
    with torch.no_grad():
        want = module(hidden, ids, weights).double()
        formats, _ = _quantized.plan(module, kind, dtype)
        _quantized.quantize(module, kind, formats, lambda: None)
        ran, got = what_ran(lambda: module(hidden, ids, weights))
    assert ran == (1, 0)
    # The bound is larger here, because ReLU and limits amplify errors near their edges, and because
    # small layers average errors less.
    assert error(got.double(), want) <= 1.5 * ERRORS[dtype]


@pytest.mark.parametrize("family", ["qwen3_moe", "gpt_oss"])
def test_floats_are_packed_without_another_rounding(family):
    """Checks that experts packed in bf16 differ from the exact result by at most four roundings of
    bf16, because rows, products and sums are also rounded to it."""
    model = wide(family, torch.bfloat16)
    hidden = torch.randn(5, 256).bfloat16()
    weights, ids = torch.randn(5, 8).softmax(-1).topk(3)
    experts = mlp(model).experts
    with torch.no_grad():
        experts.config._experts_implementation = "eager"
        exact = copy.deepcopy(experts).double()(hidden.double(), ids, weights.double())
        done = patch(model, experts_dtype="bf16")
        got = experts(hidden, ids, weights.bfloat16())
    assert set(done.quantized.values()) == {("bf16", "bf16")}
    assert error(got.double(), exact) < 2 ** -7


@pytest.mark.parametrize("name", (*FORMATS, "bf16"))
def test_a_row_alone_has_the_bits_of_the_batch(name):
    """Checks that a model's experts give a token the bits that docs/conformance.md promises: the same
    bits alone and in a batch. The promise does not cover attention and the router's product."""
    model = wide("gpt_oss", torch.bfloat16)
    experts = mlp(model).experts
    torch.nn.init.normal_(experts.down_proj_bias)
    patch(model, experts_dtype=name)
    weights, ids = torch.randn(64, 8).softmax(-1).topk(3)
    hidden = torch.randn(64, 256).bfloat16()
    with torch.no_grad():
        want = experts(hidden, ids, weights.bfloat16())
        for threads in (1, 2, 5, 64):
            torch.set_num_threads(threads)
            assert torch.equal(experts(hidden, ids, weights.bfloat16()), want)
            for t in range(64) if threads == 1 else (0, 17, 63):
                one = slice(t, t + 1)
                assert torch.equal(experts(hidden[one], ids[one], weights[one].bfloat16()), want[one])
    torch.set_num_threads(1)


def test_the_program_of_the_docs():
    text = (pathlib.Path(__file__).parents[3] / "docs" / "conformance.md").read_text()
    program = text.split("### In transformers")[1].split("```python\n")[1].split("```")[0]
    exec(program.replace("topk(8)", "topk(3)"), {"model": wide("qwen3_moe", torch.bfloat16)})
    torch.set_num_threads(1)


def test_report():
    model = make("qwen3_moe")
    assert str(patch(model, experts_dtype="q4_K")).splitlines() == [
        "experts by switchyard: 2, routers: 2",
        "2 x Qwen3MoeExperts: by switchyard, gate and up q8_0, down int8, because 64 columns are no "
        "multiple of 256",
        "2 x Qwen3MoeTopKRouter: by switchyard",
        "experts' weights: 0.59 MB before, 0.17 MB now"]
    assert "before" not in str(patch(model))  # the second call did nothing
    model = wide("qwen3_moe")
    mlp(model).experts.act_fn = torch.nn.Tanh()
    done = patch(model, experts_dtype="q4_K")
    lines = str(done).splitlines()
    assert "1 x Qwen3MoeExperts: by switchyard, q4_K" in lines
    why = "its gate is none of the library's activations"
    assert (f"1 x Qwen3MoeExperts: left to transformers: {why}, its weights stay floats: {why}"
            in lines)
    assert done.kept_float == {"model.layers.1.mlp.experts": why}
    logits_of(model)
    model = wide("qwen3_moe")
    torch.nn.utils.parametrize.register_parametrization(mlp(model).experts, "down_proj",
                                                        torch.nn.Identity())
    assert patch(model, experts_dtype="q8_0").kept_float == {
        "model.layers.1.mlp.experts": "they are computed in each call, by a parametrization"}


@pytest.mark.parametrize("has_gemm", [False, True])
def test_slow_products_are_told(has_gemm, monkeypatch):
    monkeypatch.setattr(switchyard._experts, "_has_gemm", lambda dtype: has_gemm)
    line = ("2 x GptOssExperts: by switchyard; torch has no fast product of transposed bfloat16 "
            'weights on this CPU: experts_dtype="bf16" takes the library\'s, with the same values')
    model = wide("gpt_oss", torch.bfloat16)
    assert (line in str(patch(model)).splitlines()) != has_gemm
    assert "no fast product" not in str(patch(model, experts_dtype="bf16"))
    assert "no fast product" not in str(patch(wide("qwen3_moe", torch.bfloat16)))


@pytest.mark.parametrize("name", ["bfloat16", "q5_K", 8])
def test_unknown_formats(name):
    model = make("qwen3_moe")
    with pytest.raises(ValueError, match="experts_dtype: unknown: .*; there are int8, q8_0, q4_0"):
        patch(model, experts_dtype=name)
    assert mlp(model).experts.down_proj is not None


def test_a_format_in_the_place_of_another_argument():
    model = make("qwen3_moe")
    with pytest.raises(TypeError, match="pack_weights: neither True nor False: 'q4_0'; a format is exp"):
        patch(model, "q4_0")


def test_floats_are_freed_one_product_after_the_other(monkeypatch):
    model = wide("qwen3_moe")
    floats = [weakref.ref(p) for n, p in model.named_parameters() if "experts." in n]
    seen, totals = [], []

    class Bar:
        def __init__(self, total, desc):
            totals.append((total, desc))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self):
            seen.append(sum(f() is not None for f in floats))

    monkeypatch.setattr(switchyard.transformers.logging, "tqdm", Bar)
    patch(model, experts_dtype="q4_0")
    assert totals == [(2 * 2 * 8, "Quantizing experts to q4_0")]
    assert seen == [4] * 8 + [3] * 8 + [2] * 8 + [1] * 8
    assert not [f for f in floats if f() is not None]
    state = mlp(model).experts.state_dict()
    assert {n: t.dtype for n, t in state.items()} == {
        "packed_up": torch.uint8, "packed_down": torch.uint8}


def test_the_originals_are_gone():
    model = wide("qwen3_moe")
    patch(model, experts_dtype="q4_0")
    want = logits_of(model)
    for part in (model, mlp(model)):
        with pytest.raises(ValueError, match="unpatch: the experts are quantised, and their floats, "
                                             "the originals, are gone: load the model again"):
            unpatch(part)
    with pytest.raises(ValueError, match="originals, are gone"):
        model.set_experts_implementation("eager")
    with pytest.raises(ValueError, match="'int8', but experts are q4_0 and q4_0 already"):
        patch(model, experts_dtype="int8")
    for again in (None, "q4_0"):
        done = patch(model, pack_weights=True, experts_dtype=again)
        assert len(done.quantized) == 2 and set(done.unpacked.values()) == {"they are quantised"}
    assert torch.equal(logits_of(model), want)


@pytest.mark.parametrize("of", [lambda model: model, lambda model: model.model.layers],
                         ids=["model", "part"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_interruptions(of, at, monkeypatch, tmp_path):
    """Checks that after an interruption earlier layers are quantised, later layers are floats, and the
    half-done layer raises an error."""
    model = wide("qwen3_moe")
    want = logits_of(model)
    pack, packed = _quantized.pack, []

    def interrupted(*arguments):
        packed.append(arguments)
        if len(packed) == at:
            raise KeyboardInterrupt
        return pack(*arguments)

    monkeypatch.setattr(_quantized, "pack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        patch(of(model), experts_dtype="q8_0")
    monkeypatch.undo()
    if at == 2:
        for use in (lambda: logits_of(model), lambda: patch(of(model), experts_dtype="q8_0"),
                    lambda: patch(model), lambda: unpatch(of(model)),
                    lambda: model.set_experts_implementation("eager"),
                    lambda: model.save_pretrained(tmp_path), lambda: logits_of(copy.deepcopy(model))):
            with pytest.raises(RuntimeError, match="Qwen3MoeExperts: quantising it was interrupted, and "
                                                   "a part of its floats is gone: load the model again"):
                use()
        return
    assert error(logits_of(model), want) <= LOGITS_ERROR * ERRORS["q8_0"]
    assert len(patch(of(model), experts_dtype="q8_0").quantized) == 2
    assert error(logits_of(model), want) <= LOGITS_ERROR * ERRORS["q8_0"]


def test_calls_that_cannot_run_say_why():
    model = wide("qwen3_moe")
    patch(model, experts_dtype="q8_0")
    want = logits_of(model)
    with pytest.raises(RuntimeError, match="Qwen3MoeExperts: gradients may be asked for.*no_grad.*"
                                           "its weights, which are q8_0 and q8_0"):
        model(TOKENS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert error(logits_of(model), want) < 0.1
    model.bfloat16() if not model.is_quantized else model.to(torch.bfloat16)
    assert error(logits_of(model), want) < 0.1


@pytest.mark.parametrize("family", ["qwen3_moe", "gpt_oss"])
def test_copies_and_pickles(family, tmp_path):
    model = wide(family)
    patch(model, experts_dtype="q4_K")
    want = logits_of(model)
    torch.save(model, tmp_path / "model.pt")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)),
                  torch.load(tmp_path / "model.pt", weights_only=False)):
        assert torch.equal(logits_of(other), want)
        mlp(other).experts.packed_down.zero_()
        assert not torch.equal(logits_of(other), want)
    assert torch.equal(logits_of(model), want)
    twin = wide(family)
    patch(twin, experts_dtype="q4_K")
    twin.load_state_dict(model.state_dict())
    assert torch.equal(logits_of(twin), want)


@pytest.mark.parametrize("one, other", [("q4_0", "q4_K"), ("bf16", "f16")])
def test_a_state_of_another_format_is_refused(one, other, tmp_path):
    """Packed bf16 and f16 have the same size, so that torch alone would load one as the other."""
    model, source = wide("qwen3_moe"), wide("qwen3_moe")
    patch(model, experts_dtype=one)
    patch(source, experts_dtype=other)
    torch.save(source.state_dict(), tmp_path / "state.pt")
    before = {name: tensor.clone() for name, tensor in mlp(model).experts.state_dict().items()}
    for target in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for state in (source.state_dict(), torch.load(tmp_path / "state.pt"),
                      copy.deepcopy(source).state_dict()):
            for strict in (True, False):
                with pytest.raises(RuntimeError, match=f"mlp.experts: the state has experts of {other} "
                                                       f"and {other}, and the model has {one} and {one}"):
                    target.load_state_dict(state, strict=strict)
        for name, tensor in mlp(target).experts.state_dict().items():
            assert torch.equal(tensor, before[name])


def test_is_quantised_in_inference_mode():
    model = wide("qwen3_moe")
    with torch.inference_mode():
        patch(model, experts_dtype="q4_0")
    patch(other := wide("qwen3_moe"), experts_dtype="q4_0")
    model.load_state_dict(other.state_dict())
    assert torch.equal(logits_of(model), logits_of(other))


def test_compiles_in_one_piece():
    model = wide("qwen3_moe")
    patch(model, experts_dtype="mxfp4")
    want = logits_of(model)
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        got = compiled(TOKENS, use_cache=False).logits[0].double()
    torch.testing.assert_close(got, want)


def test_adapters():
    """Checks LoRA on attention before and after patch(), and that experts with LoRA stay floats."""
    model = wide("qwen3_moe")
    attention = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False, lora_alpha=64)
    wrapped = peft.get_peft_model(copy.deepcopy(model), attention).eval()
    want = logits_of(wrapped)
    assert len(patch(wrapped, experts_dtype="q8_0").quantized) == 2
    assert error(logits_of(wrapped), want) <= LOGITS_ERROR * ERRORS["q8_0"]
    later = copy.deepcopy(model)
    patch(later, experts_dtype="q8_0")
    with torch.no_grad():
        later = peft.get_peft_model(later, attention).eval()
    assert not torch.equal(logits_of(later), logits_of(model))

    experts = peft.LoraConfig(target_parameters=["mlp.experts.down_proj"], lora_alpha=64,
                              init_lora_weights=False)
    wrapped = peft.get_peft_model(model, experts).eval()
    want = logits_of(wrapped)
    done = patch(wrapped, experts_dtype="q8_0")
    assert not done.quantized and len(done.experts) == 2
    assert set(done.kept_float.values()) == {
        "an adapter adds to them in each call: merge it first"}
    torch.testing.assert_close(logits_of(wrapped), want, rtol=1e-4, atol=1e-4)
    merged = wrapped.merge_and_unload()
    assert len(patch(merged, experts_dtype="q8_0").quantized) == 2
    assert error(logits_of(merged), want) <= LOGITS_ERROR * ERRORS["q8_0"]


def test_adapters_of_routers():
    """Checks LoRA on the routers' weights, before and after patch()."""
    lora = peft.LoraConfig(target_parameters=["gate.weight"], init_lora_weights=False, lora_alpha=64)
    model = make("qwen3_moe")
    wrapped = peft.get_peft_model(copy.deepcopy(model), lora).eval()
    want = logits_of(wrapped)
    done = patch(wrapped)
    assert (len(done.experts), len(done.routers)) == (2, 0)
    assert set(done.untouched.values()) == {
        "an adapter adds to its weights in each call: merge it first"}
    torch.testing.assert_close(logits_of(wrapped), want, rtol=1e-4, atol=1e-4)

    assert len(patch(model).routers) == 2
    later = peft.get_peft_model(model, lora).eval()
    got = logits_of(later)
    unpatch(model)
    torch.testing.assert_close(got, logits_of(later), rtol=1e-4, atol=1e-4)


def test_rows_that_grouped_mm_refuses():
    """Training falls back to eager, because grouped_mm needs rows of a multiple of 16 bytes."""
    model = make("qwen3_moe", torch.bfloat16, hidden_size=40, moe_intermediate_size=36).train()
    patch(model)
    model(TOKENS, labels=TOKENS).loss.backward()
    for layer in model.model.layers:
        assert layer.mlp.experts.down_proj.grad.abs().sum() > 0


def test_compiled_experts():
    """A wrapper that forwards the attributes of the experts module is not one itself."""
    torch._dynamo.reset()
    model = wide("qwen3_moe")
    want = logits_of(model)
    for layer in model.model.layers:
        layer.mlp.experts = torch.compile(layer.mlp.experts, backend="eager")
    done = patch(model, experts_dtype="q8_0")
    assert (len(done.quantized), len(done.routers)) == (2, 2)
    assert error(logits_of(model), want) <= LOGITS_ERROR * ERRORS["q8_0"]


@pytest.mark.parametrize("family", FAMILIES)
def test_is_saved_and_loaded(family, tmp_path):
    model = wide(family)
    model.save_pretrained(tmp_path / "floats")
    name = dict(zip(FAMILIES, itertools.cycle(FORMATS)))[family]
    patch(model, experts_dtype=name)
    want = logits_of(model)
    model.save_pretrained(tmp_path / "quantised", max_shard_size="1MB")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "quantised")
    patch(loaded)  # replaces only routers, because the experts are already quantised
    assert torch.equal(logits_of(loaded), want)
    config = json.loads((tmp_path / "quantised/config.json").read_text())["quantization_config"]
    assert config["quant_method"] == "switchyard" and config["experts_dtype"] == name
    # Quantising while loading gives the same bytes as patch(). The loaded model can be saved again.
    other = AutoModelForCausalLM.from_pretrained(tmp_path / "floats",
                                                 quantization_config=ExpertsConfig(name))
    assert not [n for n, p in other.named_parameters() if p.device.type == "meta"]
    other.save_pretrained(tmp_path / "again")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "again")
    assert again.config.quantization_config.layers == config["layers"]
    for m in (other, again):
        patch(m)
        assert torch.equal(logits_of(m), want)


def test_a_part_is_saved_and_loaded(tmp_path):
    model = wide("qwen3_moe")
    patch(model, experts_dtype="q4_0")
    with torch.inference_mode():
        want = model.model(TOKENS).last_hidden_state
    model.model.save_pretrained(tmp_path)
    part = type(model.model).from_pretrained(tmp_path)
    patch(part)
    with torch.inference_mode():
        assert torch.equal(part(TOKENS).last_hidden_state, want)


def test_parts_in_formats_of_their_own_are_saved(tmp_path):
    model = wide("qwen3_moe")
    first, last = (layer.mlp.experts for layer in model.model.layers)
    patch(first, experts_dtype="q4_0")
    model.save_pretrained(tmp_path / "half")
    patch(last, experts_dtype="q8_0")
    patch(model)
    model.save_pretrained(tmp_path / "all")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "all")
    patch(loaded)
    assert torch.equal(logits_of(loaded), logits_of(model))
    half = AutoModelForCausalLM.from_pretrained(tmp_path / "half")
    assert torch.equal(half.model.layers[0].mlp.experts.packed_up, first.packed_up)
    assert mlp(half).experts.down_proj.dtype == torch.float32


def test_a_model_with_the_config_of_a_quantised_one_is_saved(tmp_path):
    """Checks that float experts that share the config of a quantised model are saved as floats."""
    model = wide("qwen3_moe")
    other = type(model)(model.config).eval()
    patch(model, experts_dtype="q4_0")
    for m in (other, type(model)(copy.deepcopy(model.config)).eval()):
        m.save_pretrained(tmp_path)
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert torch.equal(mlp(loaded).experts.down_proj, mlp(m).experts.down_proj)
    assert model.config.quantization_config.layers


def test_a_wrong_checkpoint_is_an_error(tmp_path):
    """Checks the errors for formats that do not fit the packed tensors, and for unknown formats."""
    model = wide("qwen3_moe")
    patch(model, experts_dtype="q4_0")
    model.save_pretrained(tmp_path)
    text = (tmp_path / "config.json").read_text()
    for change, message in (({"q4_0": "q9_0"}, "unknown: 'q9_0'"),
                            ({"layers.1.mlp.experts": "layers.7.mlp.experts"},
                             "has no experts of the name model.layers.7.mlp.experts"),
                            ({'"q4_0",': '"q8_0",'}, "ize mismatch|mismatch")):
        changed = text
        for old, new in change.items():
            changed = changed.replace(old, new)
        (tmp_path / "config.json").write_text(changed)
        with pytest.raises((ValueError, RuntimeError), match=message):
            AutoModelForCausalLM.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(SafetensorError):
        AutoModelForCausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize("quantised", [True, False])
def test_a_checkpoint_without_some_experts_is_an_error(quantised, tmp_path):
    """Checks the error for a checkpoint that lacks a tensor. transformers itself only warns, and
    leaves memory uninitialised."""
    model = wide("qwen3_moe")
    if quantised:
        patch(model, experts_dtype="q4_0")
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    for name in list(tensors):
        if ".layers.1.mlp.experts." in name and "down" in name:
            del tensors[name]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    config = {} if quantised else {"quantization_config": ExpertsConfig("q4_0")}
    name = "packed_down" if quantised else "down_proj"
    with pytest.raises(ValueError, match=f"^model.layers.1.mlp.experts.{name}: the checkpoint does not"):
        AutoModelForCausalLM.from_pretrained(tmp_path, **config)


def test_a_layer_on_disk_is_loaded(tmp_path):
    model = wide("qwen3_moe")
    model.save_pretrained(tmp_path / "floats")
    patch(model, experts_dtype="q4_0")
    model.save_pretrained(tmp_path / "quantised")
    places = {"model.layers.1": "disk"} | dict.fromkeys(
        ("model.embed_tokens", "model.layers.0", "model.norm", "model.rotary_emb", "lm_head"), "cpu")
    for folder, more in (("quantised", {}), ("floats", {"quantization_config": ExpertsConfig("q4_0")})):
        loaded = AutoModelForCausalLM.from_pretrained(
            tmp_path / folder, device_map=places, offload_folder=tmp_path / "offloaded", **more)
        torch.testing.assert_close(logits_of(loaded), logits_of(model), rtol=1e-4, atol=1e-4)


def test_places_are_chosen_by_the_bytes_of_the_format(tmp_path):
    """Checks that device_map="auto" uses the size of packed experts. With the size of floats, it would
    leave a part of the model on disk."""
    model = wide("qwen3_moe")
    model.save_pretrained(tmp_path)
    more = {"device_map": "auto", "max_memory": {"cpu": "6MB"}, "offload_folder": tmp_path}
    assert "disk" in AutoModelForCausalLM.from_pretrained(tmp_path, **more).hf_device_map.values()
    loaded = AutoModelForCausalLM.from_pretrained(
        tmp_path, quantization_config=ExpertsConfig("q4_0"), **more)
    assert not [n for n, p in loaded.named_parameters() if p.is_meta]


def test_any_packed_bytes_are_read(tmp_path):
    """Checks a broken file: scales of NaN and infinity give NaN, and nothing crashes."""
    model = wide("qwen3_moe")
    for name in FORMATS:
        one = copy.deepcopy(model)
        patch(one, experts_dtype=name)
        for layer in one.model.layers:
            layer.mlp.experts.packed_up.random_(0, 256)
            layer.mlp.experts.packed_down.fill_(255)
        one.save_pretrained(tmp_path / name)
        assert logits_of(AutoModelForCausalLM.from_pretrained(tmp_path / name)).shape == (40, 97)


GGML_TYPES = {"q4_0": 2, "q8_0": 8, "q4_K": 12, "q6_K": 14}


@pytest.mark.parametrize("up, down", [("q4_K", "q6_K"), ("q4_0", "q4_0"), ("q8_0", "q8_0")])
def test_experts_of_a_GGUF(up, down):
    """Checks that the blocks of transformers' GgufExperts are multiplied as stored, and packed on
    request."""
    from transformers.integrations.gguf.utils import GgufExperts

    model = wide("qwen3_moe")
    floats = copy.deepcopy(model)
    for layer, twin in zip(model.model.layers, floats.model.layers):
        experts = GgufExperts(8, 256, 256, GGML_TYPES[up], GGML_TYPES[down], layer.mlp.experts.act_fn)
        for name, kind in (("gate_up_proj", up), ("down_proj", down)):
            rows = getattr(experts, name).shape[1]
            blocks = random_blocks(kind, 8, rows, 256 // switchyard.weight_formats()[kind].columns)
            getattr(experts, name).data = blocks.flatten(2)
            getattr(twin.mlp.experts, name).data = decode(kind, blocks).flatten(2)
        layer.mlp.experts = experts
    want = logits_of(floats)
    done = patch(model)
    assert set(done.quantized.values()) == {(up, down)} and len(done.experts) == 2
    got = logits_of(model)
    assert error(got, want) < 0.1
    unpatch(model)
    done = patch(model, experts_dtype="q4_0")
    assert set(done.quantized.values()) == {(up, down)}
    assert ("as its GGUF has them" in str(done)) == ((up, down) != ("q4_0", "q4_0"))
    assert torch.equal(logits_of(model), got)


def test_types_of_a_GGUF_that_are_left_alone():
    from transformers.integrations.gguf.utils import GgufExperts

    model = wide("qwen3_moe")
    mlp(model).experts = GgufExperts(8, 256, 256, 13, 14, mlp(model).experts.act_fn)
    done = patch(model)
    assert done.untouched["model.layers.1.mlp.experts"] == "no products of GGML's types 13 and 14"


def test_a_layer_that_cannot_be_quantised_is_loaded_as_floats(tmp_path, caplog, monkeypatch):
    model = wide("qwen3_moe")
    mlp(model).experts.act_fn = torch.nn.Tanh()
    patch(model, experts_dtype="q8_0")
    model.save_pretrained(tmp_path)
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert mlp(loaded).experts.down_proj.dtype == torch.float32
    assert loaded.model.layers[0].mlp.experts.packed_down.dtype == torch.uint8


def test_what_is_loaded_in_another_format_is_told(tmp_path, caplog):
    make("qwen3_moe").save_pretrained(tmp_path)
    for dtype, message in (
            (torch.float32, "gate and up q8_0, down int8, because 64 columns are no multiple of 256"),
            (torch.float64, "its weights stay floats: no products of torch.float64")):
        AutoModelForCausalLM.from_pretrained(tmp_path, dtype=dtype,
                                             quantization_config=ExpertsConfig("q4_K"))
        assert f"switchyard: 2 x Qwen3MoeExperts: {message}" in caplog.messages


@pytest.mark.parametrize("layers, message", [
    (["experts"], "layers: not a dict of names: .'experts'.$"),
    ({"experts": ["q4_0"]}, "layers: experts: not two formats and a number: .'q4_0'.$"),
    ({"experts": "q4_0"}, "layers: experts: not two formats and a number: 'q4_0'$"),
    ({"experts": ["q4_0", "q4_0", "256"]}, "layers: experts: not two formats and a number: "),
    ({"experts": ["q4_0", "q9_0", 256]}, "unknown: 'q9_0'"),
])
def test_wrong_layers_of_a_configuration_are_named(layers, message):
    with pytest.raises(ValueError, match=message):
        ExpertsConfig("q4_0", layers)


def test_a_whole_name_goes_before_its_end():
    layers = {"layers.0.experts": ["q4_0", "q4_0", 32], "draft.layers.0.experts": ["q8_0", "q8_0", 64]}
    config = ExpertsConfig("q4_0", layers)
    for name, formats in layers.items():
        assert config.formats_of(name) == tuple(formats)
    assert config.formats_of("model.layers.0.experts") == ("q4_0", "q4_0", 32)
    assert config.formats_of("layers.1.experts") is None
