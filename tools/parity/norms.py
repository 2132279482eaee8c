#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the norms of presets with transformers' classes, and prints a table.

The class that opens a family's layers, and the class behind its MoE block where the preset
has a norm there, get random weights and rows, in f32 and in bf16. Combine computes the norm
with the family's preset and round_like_unfused, and has to refuse LayerNorms and gated norms.
Every preset that follows a file of transformers has a line.
Exit codes: 0; 1 if a preset differs; 2 for wrong input, in a line on stderr.
"""

import argparse
import dataclasses
import importlib
import inspect
import re
import sys
import zlib

sys.dont_write_bytecode = True  # the sources' folder stays as it is

import torch

import library

ROWS, WIDTH, EPS = 200, 512, 1e-5
# The largest error of an element, of its own size: f32, another order of the sum; bf16, one unit
# in the last place, and a second one where the product with the weight is rounded, too.
BOUND = {torch.float32: 2.0 ** -20, torch.bfloat16: 2.0 ** -6}
# So many elements of 100 may differ in bf16, because the scale's last bit moves a rounding. A
# rounding in another place moves one element in four.
DIFFERENT = 1.0


@dataclasses.dataclass(frozen=True)
class Norm:
    folder: str = ""  # in transformers/models, if it is not the preset's name
    name: str = ""  # the class, if the file has more than one RMSNorm
    block: str = ""  # the class behind the MoE block, if it is another one
    attribute: str = "input_layernorm"  # of the layer
    refused: bool = False  # Combine lacks this norm
    config: dict = dataclasses.field(default_factory=dict)  # of config.json
    # The class adds 1 to its weight and rounds that to bf16: an engine gives Combine the f32
    # weight bf16(1 + w) - 1.
    rounds_plus_one: bool = False


_COHERE = {"num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": 1}
_TALKER = Norm("qwen3_omni_moe", "Qwen3OmniMoeThinkerTextRMSNorm")
_OTHERS = {
    "aria_text": Norm("aria"),
    "axk2": Norm(name="AXK2GatedRMSNorm", refused=True),
    "cohere2_moe": Norm(name="Cohere2MoeLayerNorm", refused=True, config=_COHERE),
    "cohere2_moe, rms_norm_eps": Norm(name="Cohere2MoeRMSNorm",
                                      config=_COHERE | {"rms_norm_eps": EPS}),
    "cohere2_moe_sigmoid": Norm("cohere2_moe", "Cohere2MoeLayerNorm", refused=True, config=_COHERE),
    "dbrx": Norm(name="nn.LayerNorm", attribute="norm_1", refused=True),
    "deepseek_ocr2": Norm(name="DeepseekOcr2TextRMSNorm"),
    "deepseek_ocr2_text": Norm("deepseek_ocr2", "DeepseekOcr2TextRMSNorm"),
    "diffusion_gemma_text": Norm("diffusion_gemma"),
    "dots3_note_text": Norm("dots3_note"),
    "dots3_note_vision_encoder": Norm("dots3_note", attribute="norm1"),
    "ernie4_5_vl_moe_text": Norm("ernie4_5_vl_moe"),
    # It has no norm in front of a layer: both are behind.
    "flex_olmo": Norm(attribute="post_feedforward_layernorm"),
    "gemma4_text": Norm("gemma4"),
    "glm4v_moe": Norm(name="Glm4vMoeTextRMSNorm"),
    "glm4v_moe_text": Norm("glm4v_moe", "Glm4vMoeTextRMSNorm"),
    "glm5_next": Norm(name="Glm5NextTextRMSNorm"),
    "glm5_next_text": Norm("glm5_next", "Glm5NextTextRMSNorm"),
    "inkling2": Norm(name="Inkling2RMSNorm"),
    "inkling2_text": Norm("inkling2", "Inkling2RMSNorm"),
    "inkling_mm_model": Norm("inkling"),
    "inkling_text": Norm("inkling"),
    "lfm2_moe": Norm(attribute="operator_norm"),
    "llama4": Norm(name="Llama4TextRMSNorm"),
    "llama4_text": Norm("llama4", "Llama4TextRMSNorm"),
    "longcat_flash": Norm(attribute="norm"),  # the layers' are in a list, of the same class
    "minimax_m3": Norm("minimax_m3_vl"),  # a text model's own name
    "minimax_m3_vl_text": Norm("minimax_m3_vl"),
    "mistral_large4_text": Norm("mistral_large4"),
    "muse_spark": Norm(name="MuseSparkTextCenteredRMSNorm",
                       block="MuseSparkTextInputScaledRMSNorm", rounds_plus_one=True),
    "muse_spark_text": Norm("muse_spark", "MuseSparkTextCenteredRMSNorm",
                            "MuseSparkTextInputScaledRMSNorm", rounds_plus_one=True),
    "nemotron_h": Norm(attribute="norm"),
    "phimoe": Norm(name="nn.LayerNorm", refused=True),
    "qwen3_5_moe_text": Norm("qwen3_5_moe"),
    "qwen3_omni_moe": _TALKER,
    "qwen3_omni_moe_talker_text": _TALKER,
    "qwen3_omni_moe_text": _TALKER,
    "qwen3_vl_moe_text": Norm("qwen3_vl_moe"),
    # Its layers begin by a norm of the streams, each for itself: group_size.
    "qwen4_exp": Norm(attribute="hc_norm"),
    "qwen4_exp_text": Norm("qwen4_exp", attribute="hc_norm"),
    "step3p5": Norm("step3p7"),
    "unlimited_ocr_text": Norm("unlimited_ocr"),
}


class Differs(Exception):
    """The preset contradicts the family's code before a row is computed."""


def find(preset, norm):
    """Its class; raises unless a layer has one of it."""
    folder = norm.folder or preset
    code = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    text, name = inspect.getsource(code), norm.name
    if not name:
        (name,) = (n for n in set(re.findall(r"^class (\w+RMSNorm)\(", text, re.M))
                   if "Unweighted" not in n)
    made = re.findall(rf"self\.{norm.attribute} = (.*?)\n        (?:self\.|\n)", text, re.S)
    if not any(f"{name}(" in m for m in made):
        raise Differs(f"{preset}: no {norm.attribute} is a {name}")
    return code, name


def make(made):
    """A module of the class, with a random weight around the initial one."""
    first = next(iter(inspect.signature(made).parameters))
    module = made(**{first: WIDTH}, eps=EPS)
    module.weight.data.add_(torch.empty(WIDTH).uniform_(-0.5, 0.5))
    return module


def figures(lib, preset, norm, code, name, block, dtype):
    """The largest error, and how many of 100 elements differ."""
    rows = (torch.randn(ROWS, WIDTH) * 2.0 ** torch.empty(ROWS, 1).uniform_(-3, 3)).to(dtype)
    module = make(getattr(code, name)).to(dtype)
    weight = module.weight.data[None].contiguous()
    if norm.rounds_plus_one:
        weight = (1 + weight).float() - 1
    with torch.no_grad():
        want = module(rows).double()
    got = lib.norm(preset, norm.config, block, EPS, rows, weight).double()
    error = (got - want).abs() / want.abs().clamp(min=2.0 ** -20)
    return error.max().item(), 100 * (got != want).double().mean().item()


HEAD = ("| preset | class | f32: largest error | bf16: largest error | elements in 100 "
        "that differ |")


def lines(lib, label, norm):
    """The preset's lines of the table, each with whether the preset is right."""
    preset = label.partition(",")[0]
    code, name = find(preset, norm)
    options = lib.preset(preset, norm.config)
    if norm.refused:
        rows = torch.randn(1, WIDTH)
        try:
            lib.norm(preset, norm.config, False, EPS, rows, rows)
            yield f"| {label} | {name} | not refused | | |", False
        except ValueError:
            yield f"| {label} | {name} | refused | | |", True
        return
    names = [(False, name)]
    if options["form.has_block_norm"]:
        names.append((True, norm.block or name))
    elif norm.block:
        raise Differs(f"{preset}: has no norm behind the block")
    for block, of in names:
        torch.manual_seed(zlib.crc32(f"{label} {block} {lib.seed}".encode()))
        f32 = figures(lib, preset, norm, code, of, block, torch.float32)
        bf16 = figures(lib, preset, norm, code, of, block, torch.bfloat16)
        right = (f32[0] <= BOUND[torch.float32] and bf16[0] <= BOUND[torch.bfloat16]
                 and bf16[1] <= DIFFERENT)
        yield (f"| {label}{', behind the block' if block else ''} | {of} | {f32[0]:.1e} "
               f"| {bf16[0]:.1e} | {bf16[1]:.2f} |"), right


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="norms.py", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: parser.exit(2, f"norms.py: {message}\n")
    parser.add_argument("library", help="the shared library made of parity.cc")
    parser.add_argument("--only", metavar="PATTERN", default="",
                        help="presets whose name has a match of this regular expression")
    parser.add_argument("--seed", type=int, default=1, help="of all random numbers (1)")
    return parser.parse_args(argv)


def main(argv):
    arguments = _arguments(argv)
    torch.set_num_threads(1)
    try:
        lib = library.Library(arguments.library)
    except OSError as error:
        print(f"norms.py: {error}", file=sys.stderr)
        return 2
    lib.seed = arguments.seed
    table = {name: Norm() for name in lib.families()} | _OTHERS
    print(f"Seed {arguments.seed}; {ROWS} rows of {WIDTH}, eps {EPS}.\n\n{HEAD}")
    print("|" + " --- |" * (HEAD.count("|") - 1))
    differ = []
    for label, norm in sorted(table.items()):
        if not re.search(arguments.only, label):
            continue
        try:
            for text, right in lines(lib, label, norm):
                print(text, flush=True)
                if not right:
                    differ.append(label)
        except (Differs, ValueError) as error:
            print(f"norms.py: {error}", file=sys.stderr)
            differ.append(label)
    if differ:
        print(f"norms.py: differ: {', '.join(dict.fromkeys(differ))}", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
