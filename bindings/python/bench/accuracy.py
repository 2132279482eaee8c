#!/usr/bin/env python3
# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the logits of a model with quantised experts and with float experts.

Prints for each format: the KL divergence of the next token's probabilities, in nats; how often the
likeliest token is the same; and the perplexity of the tokens.

--model is the name or folder of a checkpoint, and --text a file with the text. Without --model, the
model is a small Qwen3-MoE with random weights, and it generates the tokens itself. --peak sets how
far its probabilities are from uniform.

Exits with 0, or for wrong input with 2 and a line on stderr.
"""

import copy
import pathlib
import sys

import torch
from arguments import Parser, count, seconds
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3MoeConfig, Qwen3MoeForCausalLM

import switchyard.transformers

FORMATS = ("int8", "q8_0", "q6_K", "q4_K", "q4_0", "mxfp4")


def make(layers, peak):
    config = Qwen3MoeConfig(
        num_hidden_layers=layers, hidden_size=512, intermediate_size=1024, moe_intermediate_size=256,
        num_experts=64, num_experts_per_tok=8, norm_topk_prob=True, num_attention_heads=8,
        num_key_value_heads=2, head_dim=64, vocab_size=4096)
    model = Qwen3MoeForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(std=p.shape[-1] ** -0.5)
        model.model.embed_tokens.weight.normal_()
        model.lm_head.weight.mul_(peak)
    return model.eval()


def log_probabilities(model, tokens):
    return torch.cat([model(row[None], use_cache=False).logits[0, :-1].float().log_softmax(-1)
                      for row in tokens])


def main(argv):
    parser = Parser(__doc__)
    parser.add_argument("--model", help="a checkpoint's name or folder")
    parser.add_argument("--text", type=pathlib.Path, help="a file, for --model")
    parser.add_argument("--formats", choices=FORMATS, nargs="+", default=FORMATS)
    parser.add_argument("--rows", type=count, default=8, help="of tokens (8)")
    parser.add_argument("--tokens", type=count, default=128, help="of each row (128)")
    parser.add_argument("--layers", type=count, default=4, help="of the small model (4)")
    parser.add_argument("--peak", type=seconds, default=3, help="factor of its logits (3)")
    parser.add_argument("--seed", type=count, default=1)
    arguments = parser.parse_args(argv)
    if (arguments.model is None) != (arguments.text is None):
        parser.error("--model and --text go together")
    torch.manual_seed(arguments.seed)
    size = arguments.rows * arguments.tokens
    if arguments.model is None:
        model = make(arguments.layers, arguments.peak)
        start = torch.randint(0, 4096, (arguments.rows, 1))
        tokens = model.generate(start, do_sample=True, max_new_tokens=arguments.tokens - 1,
                                min_new_tokens=arguments.tokens - 1, pad_token_id=0)
    else:
        try:
            text = arguments.text.read_text()
            model = AutoModelForCausalLM.from_pretrained(arguments.model).eval()
            ids = AutoTokenizer.from_pretrained(arguments.model)(text)["input_ids"][:size]
        except (OSError, ValueError) as error:
            parser.error(str(error).splitlines()[0])
        if len(ids) < size:
            parser.error(f"--text: {len(ids)} tokens, and {size} are asked for")
        tokens = torch.tensor(ids).view(arguments.rows, arguments.tokens)
    with torch.inference_mode():
        want = log_probabilities(model, tokens)
        after = tokens[:, 1:].reshape(-1, 1)
        print("| experts | KL, nats | same likeliest token | perplexity | of floats |")
        print("|" + " --- |" * 5)
        for name in arguments.formats:
            one = copy.deepcopy(model)
            done = switchyard.transformers.patch(one, experts_dtype=name)
            got = log_probabilities(one, tokens)
            kl = (want.exp() * (want - got)).sum(-1).mean()
            same = (got.argmax(-1) == want.argmax(-1)).float().mean()
            perplexities = [-x.gather(1, after).mean() for x in (got, want)]
            formats = " ".join(sorted({f for pair in done.quantized.values() for f in pair}))
            print(f"| {formats} | {kl:.5f} | {same:.2%} | " + " | ".join(
                f"{p.exp():.3f}" for p in perplexities) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
