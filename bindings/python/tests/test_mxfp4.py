# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that the MXFP4 experts of gpt-oss's checkpoints stay MXFP4."""

import json

import pytest
import torch
from formats import decode
from safetensors.torch import load_file, save_file
from test_experts_dtype import WIDE, error, logits_of, wide
from transformers import AutoModelForCausalLM, Mxfp4Config
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import switchyard.transformers
from switchyard import _checkpoints

E, H, I = 8, WIDE["hidden_size"], WIDE["intermediate_size"]


@pytest.fixture(autouse=True)
def _one_thread(_alike):
    torch.set_num_threads(1)


def random_mxfp4(*shape):
    """Makes blocks and scales as in a checkpoint, with every code."""
    return (torch.randint(0, 256, (*shape, 16), dtype=torch.uint8),
            torch.randint(119, 124, shape, dtype=torch.uint8))


@pytest.fixture
def checkpoint(tmp_path):
    """Makes a folder with a small gpt-oss checkpoint in MXFP4, like OpenAI's."""
    folder = tmp_path / "mxfp4"
    model = wide("gpt_oss", torch.bfloat16)
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.mlp.experts.gate_up_proj_bias)
        torch.nn.init.normal_(layer.mlp.experts.down_proj_bias)
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    for name in list(tensors):
        if name.endswith(("gate_up_proj", "down_proj")):
            del tensors[name]
            rows, cols = (2 * I, H) if "gate_up" in name else (H, I)
            tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = random_mxfp4(E, rows, cols // 32)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_blocks_mean_what_transformers_reads():
    blocks, scales = random_mxfp4(3, 7, 5)
    want = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).transpose(1, 2)
    got = decode("mxfp4", _checkpoints.ggml_blocks(blocks, scales).unflatten(-1, (5, 17)))
    assert torch.equal(got.flatten(-2), want)


def load(folder, **named):
    return AutoModelForCausalLM.from_pretrained(folder, **named)


def test_a_checkpoint_stays_mxfp4(checkpoint, tmp_path, caplog):
    packed = load(checkpoint, experts_implementation="switchyard")
    assert not [r for r in caplog.records if "equantiz" in r.getMessage()]
    experts = packed.model.layers[0].mlp.experts
    assert experts._packed_formats == ("mxfp4", "mxfp4", I)
    assert experts.gate_up_proj is None and experts.gate_up_proj_bias.dtype == torch.bfloat16
    # A block has 17 bytes for 32 weights, which is 4.25 bits a weight.
    assert experts.packed_up.numel() == E * 2 * I * H * 17 // 32
    done = switchyard.transformers.patch(packed, experts_dtype="mxfp4")
    assert set(done.quantized.values()) == {("mxfp4", "mxfp4")}
    got = logits_of(packed)

    # Converting the floats of transformers back to MXFP4 is exact.
    floats = load(checkpoint, quantization_config=Mxfp4Config(dequantize=True))
    assert floats.model.layers[0].mlp.experts.gate_up_proj.dtype == torch.bfloat16
    want = logits_of(floats)
    assert error(got, want) < 0.05
    switchyard.transformers.patch(floats, experts_dtype="mxfp4")
    assert torch.equal(logits_of(floats), got)

    packed.save_pretrained(tmp_path / "again")
    again = load(tmp_path / "again")
    switchyard.transformers.patch(again)
    assert torch.equal(logits_of(again), got)


def test_is_packed_in_inference_mode(checkpoint):
    with torch.inference_mode():
        model = load(checkpoint, experts_implementation="switchyard")
    experts = model.model.layers[0].mlp.experts
    assert not experts.packed_up.is_inference() and not experts.packed_down.is_inference()


@pytest.mark.parametrize("places", ["cpu", "auto", {"": "cpu"}, {"": torch.device("cpu")}])
def test_places_that_are_the_cpu(checkpoint, places):
    model = load(checkpoint, experts_implementation="switchyard", device_map=places)
    assert model.model.layers[1].mlp.experts._packed_formats == ("mxfp4", "mxfp4", I)
    assert torch.equal(logits_of(model),
                       logits_of(load(checkpoint, experts_implementation="switchyard")))


def test_floats_on_request(checkpoint):
    model = load(checkpoint, experts_implementation="switchyard",
                 quantization_config=Mxfp4Config(dequantize=True))
    assert model.model.layers[0].mlp.experts.gate_up_proj.dtype == torch.bfloat16
    stock = load(checkpoint)
    assert torch.equal(stock.model.layers[0].mlp.experts.gate_up_proj,
                       model.model.layers[0].mlp.experts.gate_up_proj)


@pytest.mark.parametrize("change", ["shape", "missing", "type"])
def test_a_broken_checkpoint_is_an_error(checkpoint, change):
    tensors = load_file(checkpoint / "model.safetensors")
    name = "model.layers.0.mlp.experts.gate_up_proj_scales"
    scales = tensors.pop(name)
    if change != "missing":
        tensors[name] = scales[:, :-1].contiguous() if change == "shape" else scales.to(torch.int16)
    save_file(tensors, checkpoint / "model.safetensors", {"format": "pt"})
    with pytest.raises((ValueError, RuntimeError, KeyError)):
        load(checkpoint, experts_implementation="switchyard")


def test_a_checkpoint_without_some_experts_is_an_error(checkpoint):
    tensors = load_file(checkpoint / "model.safetensors")
    for part in ("blocks", "scales"):
        del tensors[f"model.layers.1.mlp.experts.down_proj_{part}"]
    save_file(tensors, checkpoint / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="layers.1.mlp.experts.down_proj: the checkpoint does not"):
        load(checkpoint, experts_implementation="switchyard")


def test_any_scales_are_read(checkpoint):
    """Checks that any scale, also 255 (NaN), gives numbers or NaN, and no crash."""
    tensors = load_file(checkpoint / "model.safetensors")
    name = "model.layers.1.mlp.experts.down_proj_scales"
    tensors[name] = torch.randint(0, 256, tensors[name].shape, dtype=torch.uint8)
    save_file(tensors, checkpoint / "model.safetensors", {"format": "pt"})
    assert logits_of(load(checkpoint, experts_implementation="switchyard")).shape == (40, 97)
