#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Times prefill and decoding in a model of transformers, without Switchyard and patched.

The model has four layers of Qwen3-30B-A3B's shape, with random weights. It has no product with the
vocabulary, because this product would take a larger share of the time with four layers than with
the real model's 48. The implementations run in turns, each time in another order. The program
prints medians, and ratios that are above 1 if Switchyard is faster. In each implementation,
transformers runs attention and norms. With --experts-dtype, a copy of the model with quantised
experts is also compared, and its memory is printed first.

Exits with 0, or for wrong input with 2 and a line on stderr.
"""

import copy
import random
import statistics
import sys
import time

import torch
from arguments import Parser, count, seconds
from moe_block import fill
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

import switchyard.transformers

VOCABULARY = 32000
CONTEXT = 128  # tokens that a step of decoding looks back at


def make(layers, dtype):
    config = Qwen3MoeConfig(
        num_hidden_layers=layers, hidden_size=2048, intermediate_size=6144,
        moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True,
        num_attention_heads=32, num_key_value_heads=4, head_dim=128, vocab_size=VOCABULARY)
    torch.set_default_dtype(dtype)
    with torch.device("meta"):
        model = Qwen3MoeForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    model.to_empty(device="cpu")
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    fill(model)
    # Makes embeddings large, so that hidden states of tokens differ and experts are
    # evenly busy, as in a trained model. With embeddings as small as weights, the
    # layers' sums dominate the hidden states, and one expert of the second layer got
    # 476 of 512 tokens.
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(50)
    return model.eval()


def main(argv):
    parser = Parser(__doc__)
    parser.add_argument("--layers", type=count, default=4)
    parser.add_argument("--prefill", type=count, nargs="+", default=[32, 512, 2048])
    parser.add_argument("--steps", type=lambda text: 0 if text == "0" else count(text),
                        default=8, help="decoding steps, timed together; 0: none (8)")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--pack-weights", action="store_true",
                        help="pack the weights for oneDNN, if Switchyard runs the experts")
    parser.add_argument("--experts-dtype", choices=switchyard.weight_formats(), nargs="+", default=[],
                        help="also a patched copy with experts in each of these formats")
    parser.add_argument("--threads", type=count, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=seconds, default=8, help="for each line (8)")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = make(arguments.layers, getattr(torch, arguments.dtype))
    routers = [layer.mlp.gate for layer in model.model.layers]
    before = [router.forward for router in routers]
    switchyard.transformers.patch(model, pack_weights=arguments.pack_weights)
    after = [router.forward for router in routers]

    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {arguments.dtype}\n")
    models = {}
    for name in arguments.experts_dtype:
        models[name] = copy.deepcopy(model)
        print(f"{switchyard.transformers.patch(models[name], experts_dtype=name)}\n", flush=True)

    def choose(name):
        if name in models:
            return models[name].model
        model.set_experts_implementation("switchyard" if name == "patched" else name)
        for router, old, new in zip(routers, before, after):
            router.forward = new if name == "patched" else old
        return model.model

    def prefill(chosen, tokens):
        begin = time.perf_counter()
        chosen(tokens, use_cache=False)
        return time.perf_counter() - begin

    def decode(chosen, tokens):
        cache = chosen(tokens[:, :CONTEXT], use_cache=True).past_key_values
        begin = time.perf_counter()
        for step in range(arguments.steps):
            chosen(tokens[:, CONTEXT + step:][:, :1], past_key_values=cache, use_cache=True)
        return (time.perf_counter() - begin) / arguments.steps

    ours = ["patched", *models]
    names = [*ours, "switchyard", "eager", "grouped_mm"]
    print("| | " + " | ".join(f"{n}, ms" for n in names) + " | best rival / "
          + " | best rival / ".join(ours) + " |")
    print("|" + " --- |" * (1 + len(names) + len(ours)))
    lines = [(f"prefill {t}", prefill, t) for t in arguments.prefill]
    if arguments.steps:
        lines.append(("decode", decode, CONTEXT + arguments.steps))
    with torch.inference_mode():
        for label, run, length in lines:
            tokens = torch.randint(0, VOCABULARY, (1, length))
            times = {name: [] for name in names}
            for name in names:
                run(choose(name), tokens)
            end = time.perf_counter() + arguments.seconds
            while time.perf_counter() < end or len(times[names[0]]) < 3:
                for name in random.sample(names, len(names)):
                    times[name].append(run(choose(name), tokens) * 1e3)
            ms = {name: statistics.median(t) for name, t in times.items()}
            print(f"| {label} | " + " | ".join(
                f"{ms[n]:.2f} ({min(times[n]):.2f} to {max(times[n]):.2f})" for n in names)
                + "".join(f" | {min(ms['eager'], ms['grouped_mm']) / ms[n]:.2f}" for n in ours)
                + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
