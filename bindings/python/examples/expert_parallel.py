# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""A Mixture-of-Experts layer over several processes: all_to_all_single over gloo.

    torchrun --standalone --nproc-per-node 2 expert_parallel.py
    python expert_parallel.py                     # one process: the same digest
    torchrun --standalone --nproc-per-node 2 expert_parallel.py --halves

With --halves, a batch is also run as two half-batches: the rows of one half are on their way while
the experts of the other half run.

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

# Bounds of a token's relative error: the largest difference from float64, divided by the largest
# result. Each bound is three times the error that rounding to the type gives at the default sizes.
BOUNDS = {torch.int8: 0.06, torch.float8_e4m3fn: 0.2, torch.bfloat16: 0.03, torch.float32: 1e-5}
TYPES = {str(t).removeprefix("torch."): t for t in BOUNDS}


class Buffer:
    """Memory for rows, which is kept from step to step, because the first use of a new page takes
    1.6 us, eight times as long as filling the page."""

    def __init__(self, cols, dtype):
        self.all = torch.empty((0, cols), dtype=dtype)

    def __call__(self, rows):
        if rows > len(self.all):
            self.all = self.all.new_empty((rows + rows // 2, self.all.shape[1]))
        return self.all[:rows]


class Message:
    """A message with rows for experts. A row of the message has the values, the scale (if the values
    are quantised) and the number of the expert, one behind the other."""

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


class Batch:
    """The steps of the layer for one batch, and the batch's buffers. A layer with half-batches has
    two objects of this class."""

    def __init__(self, args, dispatch, combine):
        dtype = TYPES[args.dtype]
        self.sent, self.received = Message(args.hidden, dispatch), Message(args.hidden, dispatch)
        self.rows, self.gate_up = Buffer(args.hidden, dtype), Buffer(2 * args.intermediate, dtype)
        self.back, self.returned = Buffer(args.hidden, combine), Buffer(args.hidden, combine)

    def pack(self, layer, hidden, ids, watch):
        """Sorts pairs by the process that has their expert, and writes their quantised rows into
        the message."""
        self.ids, self.dtype = ids, hidden.dtype
        sent = self.sent.of(ids.numel())
        self.where = exchange.map_pairs(ids, layer.ranks, layer.per_rank, experts=sent.experts)
        exchange.gather_rows(hidden, self.where.rows, sent.values, top_k=ids.shape[1],
                             row_scales=sent.scales, row_index=self.where.pair_index)
        watch("switchyard")

    def dispatch(self, layer, watch):
        """Tells all processes how many rows they receive, and starts to send the rows."""
        counts = self.where.counts.new_empty(layer.ranks, layer.ranks)
        dist.all_gather_into_tensor(counts, self.where.counts.view(1, -1))
        watch("exchange")
        all_counts = exchange.map_counts(counts, layer.rank)
        self.there, self.here = all_counts.send_counts.tolist(), all_counts.recv_counts.tolist()
        received = self.received.of(sum(self.here))
        watch("switchyard")
        self.work = dist.all_to_all_single(received.bytes, self.sent.bytes, self.here, self.there,
                                           async_op=True)
        watch("exchange")

    def wait(self, watch):
        """Waits for the rows that are on their way."""
        self.work.wait()
        watch("exchange")

    def run_experts(self, layer, watch):
        """Sorts the received rows by expert. Each expert then has the same rows in the same order as
        in a single process, so that each product is the same."""
        received = self.received
        sorted_ = exchange.map_pairs(received.experts, max(1, layer.count), 1)
        rows = exchange.gather_rows(received.values, sorted_.rows, self.rows(sum(self.here)),
                                    token_scales=received.scales)
        gate_up = self.gate_up(len(rows))
        watch("switchyard")
        split = sorted_.counts.tolist()
        for (up, _), x, y in zip(layer.weights, rows.split(split), gate_up.split(split)):
            if len(x) > 0:
                torch.mm(x, up.T, out=y)
        watch("products")
        activated = torch.ops.switchyard.activate(gate_up)
        watch("switchyard")
        # Writes the results over the rows, which are no longer needed.
        for (_, down), x, y in zip(layer.weights, activated.split(split), rows.split(split)):
            if len(x) > 0:
                torch.mm(x, down.T, out=y)
        watch("products")
        # Puts the results back into the order in which the rows arrived.
        self.answer = exchange.gather_rows(rows, sorted_.pair_index, self.back(len(rows)))
        watch("switchyard")

    def reply(self, watch):
        """Starts to send the results back, with the counts of sent and received rows swapped."""
        returned = self.returned(self.ids.numel())
        self.work = dist.all_to_all_single(returned.view(torch.uint8), self.answer.view(torch.uint8),
                                           self.there, self.here, async_op=True)
        watch("exchange")

    def combine(self, topk_weights, watch):
        out = exchange.combine(self.returned(self.ids.numel()), topk_weights, self.where.pair_index,
                               dtype=self.dtype)
        watch("switchyard")
        return out


class Layer:
    """The experts [first, first + count) of a process, and the buffers of the exchange."""

    def __init__(self, args, dispatch, combine):
        self.ranks, self.rank = dist.get_world_size(), dist.get_rank()
        self.per_rank = -(-args.experts // self.ranks)
        self.first = min(self.per_rank * self.rank, args.experts)
        self.count = min(self.per_rank, args.experts - self.first)
        self.weights = [expert_weights(args, self.first + e) for e in range(self.count)]
        self.batches = [Batch(args, dispatch, combine) for _ in range(1 + args.halves)]

    def step(self, hidden, ids, topk_weights, watch):
        """Runs a batch. A barrier comes before each exchange, so that the time of an exchange does not
        contain the time of waiting for slower processes."""
        batch = self.batches[0]
        batch.pack(self, hidden, ids, watch)
        watch.wait_for_others()
        batch.dispatch(self, watch)
        batch.wait(watch)
        batch.run_experts(self, watch)
        watch.wait_for_others()
        batch.reply(watch)
        batch.wait(watch)
        return batch.combine(topk_weights, watch)

    def step_in_halves(self, halves, watch, *, overlap):
        """Runs two half-batches, each a tuple of hidden states, ids and weights. Without overlap,
        waits for each exchange before the next step. The results have the same bits with and
        without overlap."""
        first, second = self.batches
        (x, ids, weights), (x2, ids2, weights2) = halves

        def start(exchange_of, batch, *arguments):
            exchange_of(*arguments, watch)
            if not overlap:
                batch.wait(watch)

        def finish(batch):
            if overlap:
                batch.wait(watch)
        first.pack(self, x, ids, watch)
        start(first.dispatch, first, self)
        second.pack(self, x2, ids2, watch)  # while the first half's rows are on their way
        start(second.dispatch, second, self)
        finish(first)
        first.run_experts(self, watch)  # while the second half's rows are on their way
        start(first.reply, first)
        finish(second)
        second.run_experts(self, watch)  # while the first half's results are on their way
        start(second.reply, second)
        finish(first)
        out = first.combine(weights, watch)
        finish(second)
        return out, second.combine(weights2, watch)


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
        An engine does not need this."""
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
    """Compares some tokens with a plain loop in float64. Returns the largest relative error of a token:
    its largest difference, divided by its largest sum."""
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
    """Returns a list: for each element of `values`, its maximum over all processes."""
    values = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(values, dist.ReduceOp.MAX)
    return values.tolist()


def digest(args, out):
    """Returns the digest of the results of all processes, in the order of tokens."""
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, out.view(torch.uint8).numpy().tobytes())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def time_steps(args, step, say):
    """Prints the medians of the parts of a step. Returns the median of the whole step."""
    watches = []
    for _ in range(args.rounds):
        dist.barrier()
        watch = Stopwatch()
        step(watch)
        watches.append(watch.seconds | {"step": watch.last - watch.start})
    # A part takes as long as it takes in the slowest process.
    of_part = {part: [w[part] for w in watches] for part in watches[0]}
    medians = of_all([statistics.median(seconds) for seconds in of_part.values()])
    fastest = of_all([min(seconds) for seconds in of_part.values()])
    say(f"{'':11} {'median':>12}  {'fastest':>14}")
    for part, median, least in zip(of_part, medians, fastest):
        say(f"{part:11} {1e3 * median:9.3f} ms {100 * median / medians[-1]:5.1f} %  "
            f"{1e3 * least:9.3f} ms")
    return medians[-1]


def run(args, dispatch, say):
    """Prints digests and medians. Returns whether the results are close to a plain loop's."""
    layer = Layer(args, dispatch, TYPES[args.combine])
    hidden, logits = make_tokens(args)
    batch = hidden, *route(logits, args.top_k)
    name = str(dispatch).removeprefix("torch.")

    def check(name, out):
        say(f"{name}: digest {digest(args, out)}")
        if not args.check:
            return True
        bound = max(BOUNDS[t] for t in (dispatch, TYPES[args.combine], TYPES[args.dtype]))
        worst, = of_all([difference(args, *batch, out)])
        say(f"off a plain loop by {worst:.2g} of the largest sum, at most {bound} allowed")
        return worst <= bound
    good = check(name, layer.step(*batch, Stopwatch()))
    time_steps(args, lambda watch: layer.step(*batch, watch), say)
    if not args.halves:
        return good

    # One half-batch has the tokens with even numbers, the other the tokens with odd numbers,
    # counted over all processes. So a half-batch has the same tokens for any number of processes,
    # and each product has the same rows.
    odd = (args.tokens * layer.rank // layer.ranks) % 2
    halves = [tuple(tensor[i::2] for tensor in batch) for i in (odd, 1 - odd)]

    def step(overlap, watch):
        return layer.step_in_halves(halves, watch, overlap=overlap)
    seconds = []
    for overlap, way in ((False, "in halves"), (True, "in halves that overlap")):
        out = torch.empty_like(hidden)
        out[odd::2], out[1 - odd::2] = step(overlap, Stopwatch())
        good = check(f"{name} {way}", out) and good
        seconds.append(time_steps(args, lambda watch: step(overlap, watch), say))
    say(f"with overlap, {seconds[1] / seconds[0]:.2f} of the time of halves without")
    return good


def measure_link(args, say):
    """Measures the network. Prints the latency, which is the fastest time of an exchange of 4 bytes per
    process, and the bytes that a process sends in a second. `swy plan --nodes` takes both numbers."""
    ranks = dist.get_world_size()

    def fastest(row_bytes):
        there, here = (torch.zeros(ranks, row_bytes, dtype=torch.uint8) for _ in range(2))
        seconds = []
        for _ in range(args.rounds + 1):  # the first use of a page takes longer
            dist.barrier()
            start = time.perf_counter()
            dist.all_to_all_single(here, there)
            seconds.append(time.perf_counter() - start)
        return of_all([min(seconds)])[0]
    large = 1 << 22
    latency, seconds = fastest(4), fastest(large)
    speed = (ranks - 1) * large / max(seconds - latency, 1e-9) / 1e9
    say(f"link: latency {1e6 * latency:.0f} us, {speed:.3g} GB/s for each process")


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
    add("--halves", action="store_true", help="also run half-batches, without and with overlap")
    add("--link", action="store_true", help="measure the latency and bandwidth of an exchange")
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
        if args.link:
            measure_link(args, say)
        good = [run(args, TYPES[name], say) for name in args.dispatch]
    dist.destroy_process_group()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
