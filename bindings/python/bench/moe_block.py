#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Times the experts of one layer with each implementation, as transformers runs them.

Weights are random, at the shapes of known models. The implementations run in turns, each time in
another order. The ratio of medians is above 1 if Switchyard is faster. The last column has the
interquartile range of the rounds' ratios: if this range is wider than the ratio's distance from 1,
the ratio shows no difference. With --experts-dtype, the ratios are for the first format.
Weights of several layers are used in turns, so that they come from memory, as in a model.

Exits with 0, or for wrong input with 2 and a line on stderr.
"""

import copy
import importlib
import random
import statistics
import sys
import time

import torch
from arguments import Parser, count, seconds

import switchyard.transformers  # noqa: F401
from switchyard._experts import Packed, Weights
from switchyard.transformers import _packed

SHAPES = {
    # experts, top_k, hidden, intermediate
    "qwen3": ("qwen3_moe", 128, 8, 2048, 768),
    "deepseek": ("deepseek_v3", 64, 8, 7168, 2048),
    "gpt_oss": ("gpt_oss", 32, 4, 2880, 2880),
}


# Names in transformers: the start of the classes' names, and the configuration's fields for the
# number and the width of experts.
_FAMILIES = {"qwen3_moe": ("Qwen3Moe", "num_experts", "moe_intermediate_size"),
             "deepseek_v3": ("DeepseekV3", "n_routed_experts", "moe_intermediate_size"),
             "gpt_oss": ("GptOss", "num_local_experts", "intermediate_size")}


def fill(module):
    """Fills parameters with a list of random numbers, repeated. The list's length is a prime near a
    million, so that rows differ."""
    with torch.no_grad():
        for p in module.parameters():
            flat = p.view(-1)
            some = torch.randn(min(flat.numel(), 1048573)).mul_(0.02).to(p.dtype)
            if p.dim() == 1:
                some += 1
            for i in range(0, flat.numel(), some.numel()):
                flat[i:i + some.numel()] = some[:flat.numel() - i]


def make(shape, dtype):
    family, experts, _, hidden, intermediate = SHAPES[shape]
    stem, says_experts, says_intermediate = _FAMILIES[family]
    code = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    config = getattr(code, f"{stem}Config")(
        **{says_experts: experts, says_intermediate: intermediate, "hidden_size": hidden})
    with torch.device("meta"):
        module = getattr(code, f"{stem}Experts")(config)
    module = module.to(dtype).to_empty(device="cpu").eval()
    fill(module)
    return module


def run(module, name, *inputs):
    _packed.pop(module, None)
    if name in module.__dict__.get("quantized", ()):
        return module.__dict__["quantized"][name](*inputs)
    if name == "packed":
        _packed[module], name = module.__dict__["packed"], "switchyard"
    module.config._experts_implementation = name
    return module(*inputs)


def middle_half(ratios):
    """Returns the bounds of the interquartile range of the rounds' ratios."""
    ratios = sorted(ratios)
    quarter = (len(ratios) - 1) // 4
    return ratios[quarter], ratios[-1 - quarter]


def main(argv):
    parser = Parser(__doc__)
    parser.add_argument("--shape", choices=SHAPES, nargs="+", default=["qwen3"])
    parser.add_argument("--tokens", type=count, nargs="+", default=[1, 32, 512, 2048])
    parser.add_argument("--dtype", choices=("bfloat16", "float32", "float16"), default="bfloat16")
    parser.add_argument("--layers", type=count, default=2, help="layers, whose weights are used in turn (2)")
    parser.add_argument("--seconds", type=seconds, default=3, help="for each number of tokens (3)")
    parser.add_argument("--threads", type=count, default=torch.get_num_threads())
    parser.add_argument("--pack-weights", action="store_true",
                        help="also as patch(model, pack_weights=True) has them")
    parser.add_argument("--experts-dtype", choices=switchyard.weight_formats(), nargs="+", default=[],
                        help="also as patch(model, experts_dtype=...) has them")
    parser.add_argument("--rivals", choices=("eager", "grouped_mm", "batched_mm"),
                        nargs="+", default=["eager", "grouped_mm"])
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    ours = (arguments.experts_dtype or ["switchyard"])[0]
    names = ["switchyard", *["packed"] * arguments.pack_weights, *arguments.experts_dtype,
             *arguments.rivals]
    dtype = getattr(torch, arguments.dtype)
    print(f"torch {torch.__version__}, {arguments.threads} threads, {arguments.dtype}\n")
    print("| shape | tokens | " + " | ".join(f"{n}, ms" for n in names) + " | best rival / ours | of single rounds |")
    print("|" + " --- |" * (len(names) + 4))
    for shape in arguments.shape:
        torch.manual_seed(1)
        modules = [make(shape, dtype) for _ in range(arguments.layers)]
        for m in modules if arguments.experts_dtype else ():
            copies = {name: copy.deepcopy(m) for name in arguments.experts_dtype}
            for name, quantized in copies.items():
                switchyard.transformers.patch(quantized, experts_dtype=name)
            m.__dict__["quantized"] = copies
        for m in modules if arguments.pack_weights else ():
            m.__dict__["packed"] = Packed(Weights(m.gate_up_proj, m.down_proj), m.is_transposed)
        _, experts, top_k, hidden, _ = SHAPES[shape]
        for tokens in arguments.tokens:
            inputs = []
            for _ in modules:
                weights, ids = torch.randn(tokens, experts).softmax(-1).topk(top_k)
                inputs.append((torch.randn(tokens, hidden).to(dtype), ids, weights.to(dtype)))
            times = {name: [] for name in names}
            with torch.inference_mode():
                for name in names:
                    for _ in range(2):
                        for m, i in zip(modules, inputs):
                            run(m, name, *i)
                end = time.perf_counter() + arguments.seconds
                while time.perf_counter() < end or len(times[names[0]]) < 3:
                    for name in random.sample(names, len(names)):
                        begin = time.perf_counter()
                        for m, i in zip(modules, inputs):
                            run(m, name, *i)
                        times[name].append((time.perf_counter() - begin) / len(modules) * 1e3)
            ms = {name: statistics.median(t) for name, t in times.items()}
            best = min(arguments.rivals, key=ms.get)
            low, high = middle_half(
                theirs / own for theirs, own in zip(times[best], times[ours]))
            print(f"| {shape} | {tokens} | " + " | ".join(f"{ms[n]:.3f}" for n in names)
                  + f" | {ms[best] / ms[ours]:.2f} | {low:.3f} to {high:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
