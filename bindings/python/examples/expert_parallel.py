# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""A Mixture-of-Experts layer over several processes: all_to_all_single over gloo.

    torchrun --standalone --nproc-per-node 2 expert_parallel.py
    python expert_parallel.py                     # one process: the same digest

For each pair of a token and one of its experts, a row is sent, and a row comes back. Each token's
rows are added in the order of its slots. So the results have the same bits for any number of
processes.
"""

import argparse
import hashlib
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

from switchyard import exchange

# Bounds of the error, compared with float64 and divided by the largest result. They are three times
# the error that rounding to these types makes at the default sizes.
BOUNDS = {torch.int8: 0.06, torch.float8_e4m3fn: 0.2, torch.bfloat16: 0.03, torch.float32: 1e-5}
TYPES = {str(t).removeprefix("torch."): t for t in BOUNDS}


class Buffer:
    """Memory for rows, kept from step to step: the first use of a new page takes 1.6 us, eight
    times as long as filling it."""

    def __init__(self, cols, dtype):
        self.all = torch.empty((0, cols), dtype=dtype)

    def __call__(self, rows):
        if rows > len(self.all):
            self.all = self.all.new_empty((rows + rows // 2, self.all.shape[1]))
        return self.all[:rows]


class Message:
    """A message of rows to experts. Each row has its values, scale and expert's number side by
    side."""

    def __init__(self, hidden, dtype):
        self.dtype, self.scale = dtype, hidden * dtype.itemsize
        self.expert = self.scale + (4 if dtype in exchange.QUANTISED else 0)
        self.buffer = Buffer(self.expert + 4, torch.uint8)
        self.bytes = None

    def of(self, rows):
        """Returns this message with its number of rows set to `rows`."""
        if self.bytes is None or len(self.bytes) != rows:
            self.bytes = self.buffer(rows)
            self.values = self.bytes[:, :self.scale].view(self.dtype)
            scales = self.bytes[:, self.scale:self.expert]
            self.scales = scales.view(torch.float32) if scales.shape[1] else None
            self.experts = self.bytes[:, self.expert:].view(torch.int32)
        return self


class Layer:
    """The experts [first, first + count) of a process, and the buffers of the exchange."""

    def __init__(self, args, dispatch, combine):
        self.ranks = dist.get_world_size()
        self.per_rank = -(-args.experts // self.ranks)
        self.first = min(self.per_rank * dist.get_rank(), args.experts)
        self.count = min(self.per_rank, args.experts - self.first)
        self.weights = [expert_weights(args, self.first + e) for e in range(self.count)]
        dtype = TYPES[args.dtype]
        self.sent, self.received = Message(args.hidden, dispatch), Message(args.hidden, dispatch)
        self.rows, self.gate_up = Buffer(args.hidden, dtype), Buffer(2 * args.intermediate, dtype)
        self.back, self.returned = Buffer(args.hidden, combine), Buffer(args.hidden, combine)

    def step(self, hidden, ids, topk_weights, watch):
        # Sorts pairs by the process that has their expert, and quantises their rows straight into
        # the message.
        sent = self.sent.of(ids.numel())
        where = exchange.map_pairs(ids, self.ranks, self.per_rank, experts=sent.experts)
        exchange.gather_rows(hidden, where.rows, sent.values, top_k=ids.shape[1],
                             row_scales=sent.scales, row_index=where.pair_index)
        watch("switchyard")
        watch.wait_for_others()

        # Tells each process how many rows it will receive from each other process.
        counts = torch.empty_like(where.counts)
        dist.all_to_all_single(counts, where.counts)
        there, here = where.counts.tolist(), counts.tolist()
        received = self.received.of(sum(here))
        dist.all_to_all_single(received.bytes, sent.bytes, here, there)
        watch("exchange")

        # Sorts the received rows by expert. Each expert then has the same rows in the same order as
        # in a single process, so that each product is the same.
        sorted_ = exchange.map_pairs(received.experts, max(1, self.count), 1)
        rows = exchange.gather_rows(received.values, sorted_.rows, self.rows(sum(here)),
                                    token_scales=received.scales)
        gate_up = self.gate_up(len(rows))
        watch("switchyard")
        split = sorted_.counts.tolist()
        for (up, _), x, y in zip(self.weights, rows.split(split), gate_up.split(split)):
            if len(x) > 0:
                torch.mm(x, up.T, out=y)
        watch("products")
        activated = torch.ops.switchyard.activate(gate_up)
        watch("switchyard")
        # Writes over the rows, which are no longer needed.
        for (_, down), x, y in zip(self.weights, activated.split(split), rows.split(split)):
            if len(x) > 0:
                torch.mm(x, down.T, out=y)
        watch("products")

        # Returns the rows to the order of arrival, and sends them back, with the same counts
        # swapped.
        back = exchange.gather_rows(rows, sorted_.pair_index, self.back(len(rows)))
        watch("switchyard")
        watch.wait_for_others()
        returned = self.returned(ids.numel())
        dist.all_to_all_single(returned.view(torch.uint8), back.view(torch.uint8), there, here)
        watch("exchange")
        out = exchange.combine(returned, topk_weights, where.pair_index, dtype=hidden.dtype)
        watch("switchyard")
        return out


class Stopwatch:
    """Measures the time of the parts of a step."""

    def __init__(self):
        self.seconds = dict.fromkeys(("switchyard", "waiting", "exchange", "products"), 0.0)
        self.start = self.last = time.perf_counter()

    def __call__(self, part):
        now = time.perf_counter()
        self.seconds[part] += now - self.last
        self.last = now

    def wait_for_others(self):
        """Waits for the other processes, so that the exchange's time does not contain this waiting.
        An engine leaves this out."""
        dist.barrier()
        self("waiting")


def expert_weights(args, expert):
    """Makes random weights: [gate | up] and down."""
    random = torch.Generator().manual_seed(1000 + expert)

    def matrix(outputs, inputs):
        values = torch.rand((outputs, inputs), generator=random) * 2 - 1
        return (values * (3 / inputs) ** 0.5).to(TYPES[args.dtype])
    return matrix(2 * args.intermediate, args.hidden), matrix(args.hidden, args.intermediate)


def make_tokens(args):
    """Makes this process's part of all tokens: hidden states, experts, weights."""
    random = torch.Generator().manual_seed(1)
    hidden = torch.rand((args.tokens, args.hidden), generator=random) * 2 - 1
    logits = torch.rand((args.tokens, args.experts), generator=random) * 6 - 3
    begin, end = (args.tokens * (dist.get_rank() + i) // dist.get_world_size() for i in (0, 1))
    return hidden[begin:end].to(TYPES[args.dtype]), logits[begin:end]


def route(logits, top_k):
    weights, ids = torch.topk(logits.softmax(-1), top_k)
    return ids, weights / weights.sum(-1, keepdim=True)


def difference(args, hidden, ids, topk_weights, out):
    """Compares some tokens with a plain loop in float64. Returns the largest error, divided by the
    largest sum."""
    worst = 0.0
    for t in range(0, len(out), len(out) // 4 + 1):
        total = torch.zeros(args.hidden, dtype=torch.float64)
        for expert, weight in zip(ids[t].tolist(), topk_weights[t].double()):
            up, down = (w.double() for w in expert_weights(args, expert))
            gate, linear = (up @ hidden[t].double()).chunk(2)
            total += weight * (down @ (torch.nn.functional.silu(gate) * linear))
        worst = max(worst, ((total - out[t].double()).abs().max() / total.abs().max()).item())
    return worst


def of_all(values):
    """Returns the largest of each value over all processes."""
    values = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(values, dist.ReduceOp.MAX)
    return values.tolist()


def digest(args, out):
    """Returns the digest of all processes' results, in the order of tokens."""
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, out.view(torch.uint8).numpy().tobytes())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def run(args, dispatch, say):
    """Prints a digest and medians. Returns whether the results are close to a plain loop's."""
    combine = TYPES[args.combine]
    layer = Layer(args, dispatch, combine)
    hidden, logits = make_tokens(args)
    ids, topk_weights = route(logits, args.top_k)
    out = layer.step(hidden, ids, topk_weights, Stopwatch())
    say(f"{str(dispatch).removeprefix('torch.')}: digest {digest(args, out)}")
    good = True
    if args.check:
        bound = max(BOUNDS[t] for t in (dispatch, combine, TYPES[args.dtype]))
        worst, = of_all([difference(args, hidden, ids, topk_weights, out)])
        say(f"off a plain loop by {worst:.2g} of the largest sum, at most {bound} allowed")
        good = worst <= bound
    watches = []
    for _ in range(args.rounds):
        dist.barrier()
        watch = Stopwatch()
        layer.step(hidden, ids, topk_weights, watch)
        watches.append(watch.seconds | {"step": watch.last - watch.start})
    # The time of a part is the time of the process that takes longest for it.
    of_part = {part: [w[part] for w in watches] for part in watches[0]}
    medians = of_all([statistics.median(seconds) for seconds in of_part.values()])
    fastest = of_all([min(seconds) for seconds in of_part.values()])
    say(f"{'':11} {'median':>12}  {'fastest':>14}")
    for part, median, least in zip(of_part, medians, fastest):
        say(f"{part:11} {1e3 * median:9.3f} ms {100 * median / medians[-1]:5.1f} %  "
            f"{1e3 * least:9.3f} ms")
    return good


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """Prints a line, in one process only."""
        if os.environ.get("RANK", "0") == "0":
            sys.stderr.write(f"{self.prog}: {message}\n")
        sys.exit(2)


def parse():
    def number(text):
        if not text.isdecimal() or not 1 <= int(text) <= 1 << 20:
            raise argparse.ArgumentTypeError(f"expected a number from 1 to {1 << 20}, not '{text}'")
        return int(text)

    parser = Parser(description="A Mixture-of-Experts layer over several processes.",
                    allow_abbrev=False)
    add = parser.add_argument
    add("--tokens", type=number, default=256, help="of all processes together (256)")
    add("--experts", type=number, default=16, help="of all processes together (16)")
    add("--top-k", type=number, default=4, help="experts of a token (4)")
    add("--hidden", type=number, default=1024, help="a multiple of 4 (1024)")
    add("--intermediate", type=number, default=512, help="of an expert (512)")
    add("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the model (float32)")
    add("--dispatch", choices=TYPES, nargs="+", default=["int8"],
        help="rows to the experts, one run for each (int8)")
    add("--combine", choices=("bfloat16", "float32"), default="bfloat16", help="rows back (bfloat16)")
    add("--rounds", type=number, default=21, help="timed, after one that is not (21)")
    add("--check", action="store_true", help="compare some tokens with a plain loop in float64")
    args = parser.parse_args()
    if args.hidden % 4:
        parser.error(f"argument --hidden: not a multiple of 4: {args.hidden}")
    if args.top_k > args.experts:
        parser.error(f"argument --top-k: more than --experts: {args.top_k}")
    return args


def main():
    args = parse()
    torch.set_num_threads(1)  # there is one process for each core
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    def say(text):
        if dist.get_rank() == 0:
            print(text, flush=True)

    say(f"processes: {dist.get_world_size()}; {args.tokens} tokens, {args.top_k} of {args.experts} "
        f"experts of {args.hidden} x {args.intermediate}, {args.dtype}")
    with torch.inference_mode():
        good = [run(args, TYPES[name], say) for name in args.dispatch]
    dist.destroy_process_group()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
