# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests switchyard.exchange, and examples/expert_parallel.py."""

import pathlib
import random
import re
import runpy
import subprocess
import sys

import pytest
import torch

from switchyard import exchange

EXAMPLE = pathlib.Path(__file__).parents[1] / "examples" / "expert_parallel.py"
LARGEST = {torch.int8: 127, torch.float8_e4m3fn: 448, torch.float8_e5m2: 57344}


def run_example(processes, *arguments):
    launcher = [] if processes == 1 else ["-m", "torch.distributed.run", "--standalone",
                                          "--nproc-per-node", str(processes)]
    return subprocess.run([sys.executable, *launcher, str(EXAMPLE), *map(str, arguments)],
                          capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("processes, shape", [
    # The last of four processes has no experts.
    ((1, 2, 4), "--tokens 33 --experts 9 --hidden 128 --intermediate 48 "
                "--dispatch int8 float8_e4m3fn bfloat16 float32"),
    # The first of four processes has no tokens, and the last has no experts.
    ((1, 4), "--tokens 3 --experts 5 --top-k 2 --hidden 68 --intermediate 7 --combine float32")])
def test_processes_give_the_bits_of_one(processes, shape):
    arguments = [*shape.split(), "--rounds", "1", "--check", "--halves", "--link"]
    first = None
    for count in processes:
        result = run_example(count, *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        assert f"processes: {count};" in result.stdout
        digests = re.findall(r"^(\w+)([a-z ]*): digest ([0-9a-f]{16})$", result.stdout, re.M)
        assert len(digests) == (12 if "float8" in shape else 3), result.stdout
        assert re.search(r"^link: latency \d+ us, [0-9.e+-]+ GB/s for each process$", result.stdout, re.M)
        # Half-batches have the same bits with overlap and without.
        for halves, overlapped in zip(digests[1::3], digests[2::3]):
            assert halves[1:] == (" in halves", overlapped[2]), digests
        first = first or digests
        assert digests == first


@pytest.mark.parametrize("arguments, message", [
    ("--tokens 0", "argument --tokens: expected a number from 1 to 1048576, not '0'"),
    ("--hidden 6", "argument --hidden: not a multiple of 4: 6"),
    ("--top-k 17", "argument --top-k: more than --experts: 17"),
    ("--token 3", "unrecognized arguments: --token 3")])
def test_wrong_arguments_are_one_line(arguments, message, monkeypatch, capsys):
    example = runpy.run_path(str(EXAMPLE))
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *arguments.split()])
    with pytest.raises(SystemExit) as stopped:
        example["main"]()
    assert stopped.value.code == 2
    assert capsys.readouterr() == ("", f"expert_parallel.py: {message}\n")


def test_steps_of_other_sizes_find_their_rows(monkeypatch):
    """Checks that a layer keeps its buffers from step to step."""
    example = runpy.run_path(str(EXAMPLE))
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *"--hidden 64 --intermediate 16".split()])
    args = example["parse"]()
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                         world_size=1)
    try:
        def new_layer():
            return example["Layer"](args, torch.int8, torch.bfloat16)
        kept, places = new_layer(), set()
        hidden, logits = example["make_tokens"](args)
        ids, weights = example["route"](logits, args.top_k)
        for tokens in (99, 5, 99, 0, 17):
            step = hidden[:tokens], ids[:tokens], weights[:tokens], example["Stopwatch"]()
            assert torch.equal(kept.step(*step), new_layer().step(*step))
            batch = kept.batches[0]
            places.add((batch.rows.all.data_ptr(), batch.sent.buffer.all.data_ptr()))
        assert len(places) == 1
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("dtype", (torch.int32, torch.int64))
def test_map_pairs(dtype):
    ids = torch.stack([torch.randperm(12)[:3] for _ in range(50)]).to(dtype)
    message = torch.full((150, 3), 99, dtype=torch.int32)
    where = exchange.map_pairs(ids.T.contiguous().T, 4, 3, experts=message[:, 1:2])  # any strides
    assert torch.equal(message[:, 1], (ids.flatten() % 3)[where.rows].int())
    assert (message[:, ::2] == 99).all()
    destinations = ids.flatten() // 3
    order = destinations.argsort(stable=True)
    assert torch.equal(where.rows, order.int())
    assert torch.equal(where.counts, destinations.bincount(minlength=4).int())
    assert where.offsets.tolist() == [0, *where.counts.cumsum(0).tolist()]
    assert torch.equal(where.rows[where.pair_index.long()].flatten(), torch.arange(150).int())
    empty = exchange.map_pairs(ids[:0], 4, 3)
    assert empty.counts.tolist() == [0] * 4 and empty.pair_index.shape == (0, 3)


@pytest.mark.parametrize("dtype", (torch.int32, torch.int64))
def test_replicas_take_turns(dtype):
    ids = torch.tensor([[0, 1], [0, 2], [0, 1]], dtype=dtype)
    replicas = torch.tensor([[0, 3], [1, -1], [2, -1]], dtype=torch.int32)
    counts = torch.tensor([2, 1, 1], dtype=torch.int32)
    physical, tokens = exchange.map_replicas(ids, replicas, counts, first_replica=1)
    assert physical.tolist() == [[3, 1], [0, 2], [3, 1]] and tokens.tolist() == [3, 2, 1]
    physical, _ = exchange.map_replicas(ids.T.contiguous().T, replicas, counts)  # any strides
    assert physical.tolist() == [[0, 1], [3, 2], [0, 1]]


@pytest.mark.parametrize("dtype", (torch.int32, torch.int64))
def test_map_counts(dtype):
    rows = torch.randint(0, 50, (5, 5), dtype=dtype)
    for rank in range(5):
        found = exchange.map_counts(rows, rank, row_elements=7,
                                    capacity=rows.sum(0).max().item())
        assert torch.equal(found.send_counts, 7 * rows[rank].long())
        assert torch.equal(found.recv_counts, 7 * rows[:, rank].long())
        assert found.send_offsets.tolist() == [0, *found.send_counts.cumsum(0).tolist()]
        assert found.recv_offsets.tolist() == [0, *found.recv_counts.cumsum(0).tolist()]
        assert torch.equal(found.put_offsets, 7 * rows[:rank].long().sum(0))


@pytest.mark.parametrize("dtype", (torch.int32, torch.int64))
def test_experts_may_lie_between_ids_but_not_in_them(dtype):
    """Checks that topk_ids and the argument `experts` may be columns of one tensor, with any
    strides."""
    generator, outcomes = random.Random(1), set()
    width = dtype.itemsize // 4
    cells = torch.arange(128)
    for _ in range(1000):
        memory = torch.full((128 // width,), 5, dtype=dtype).view(torch.int32)
        before = memory.clone()
        shape = generator.randint(1, 4), generator.randint(1, 3)
        strides = generator.randint(0, 8), generator.randint(0, 4)
        start, first = generator.randint(0, 31), generator.randint(0, 28)
        pairs, step = shape[0] * shape[1], generator.randint(1, 9)
        ids = memory.view(dtype).as_strided(shape, strides, start)
        taken = cells.view(-1, width)[torch.arange(128 // width).as_strided(shape, strides, start)]
        written = cells[first:][:pairs * step:step]
        overlaps = bool(torch.isin(written, taken.reshape(-1)).any())
        outcomes.add(overlaps)
        try:
            exchange.map_pairs(ids, 2, 3, experts=memory.as_strided((pairs, 1), (step, 1), first))
            assert not overlaps
            before[written] = 2
        except RuntimeError as refusal:
            assert overlaps and "map_pairs: experts: overlaps topk_ids" in str(refusal)
        assert torch.equal(memory, before)
    assert outcomes == {False, True}


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("dtype", (*LARGEST, torch.float32, torch.bfloat16, torch.float16))
def test_rows_through_a_message(dtype, threads):
    """Gathers rows into a message and back. Each row keeps its scale, and gaps between rows are not
    written."""
    torch.set_num_threads(threads)
    tokens, hidden, top_k = 40, 64, 3
    ids = torch.stack([torch.randperm(8)[:top_k] for _ in range(tokens)])
    where = exchange.map_pairs(ids, 2, 4)
    x = torch.randn(tokens, hidden)
    bytes_ = torch.full((tokens * top_k, hidden * dtype.itemsize + 12), 0x5A, dtype=torch.uint8)
    end = hidden * dtype.itemsize
    values, scales = bytes_[:, :end].view(dtype), None
    rows = x[where.rows.long() // top_k]
    if dtype in LARGEST:
        scales = bytes_[:, end:end + 4].view(torch.float32)
        wanted_scales = rows.abs().amax(1, keepdim=True) / LARGEST[dtype]
    results = []
    for row_index in (None, where.pair_index):
        bytes_[:, :end + 4] = 0x5A
        exchange.gather_rows(x, where.rows, values, top_k=top_k, row_scales=scales,
                             row_index=row_index)
        results.append(bytes_.clone())
    assert torch.equal(*results)
    assert (bytes_[:, end + (4 if scales is not None else 0):] == 0x5A).all()
    if scales is None:
        assert torch.equal(values, rows.to(dtype))
    else:
        torch.testing.assert_close(scales, wanted_scales, rtol=1e-6, atol=0)
        codes = rows * (LARGEST[dtype] / rows.abs().amax(1, keepdim=True))
        codes = codes.round() if dtype == torch.int8 else codes.to(dtype)
        torch.testing.assert_close(values.float(), codes.float())
    order = torch.arange(len(values), dtype=torch.int32).view(-1, top_k)
    floats = torch.empty(len(values), hidden)
    exchange.gather_rows(values, order, floats, token_scales=scales)
    assert torch.equal(floats, values.float() if scales is None else values.float() * scales)

    weights = torch.rand(tokens, top_k)
    wanted = (floats[where.pair_index.long()].double() * weights.unsqueeze(2)).sum(1)
    summed = exchange.combine(values, weights, where.pair_index, row_scales=scales,
                              dtype=torch.float32)
    torch.testing.assert_close(summed.double(), wanted, rtol=1e-5, atol=1e-5)
    if dtype not in LARGEST:
        assert exchange.combine(values, weights, where.pair_index).dtype == dtype


def test_wrong_calls_say_what_is_wrong():
    x, ids = torch.randn(4, 8), torch.arange(4, dtype=torch.int32).view(2, 2)
    pairs, codes = ids.flatten(), torch.zeros(4, 8, dtype=torch.int8)
    weights = torch.ones(2, 2)

    def refused(message, function, *arguments, **options):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            function(*arguments, **options)

    refused("gather_rows: pairs: None, and not a tensor", exchange.gather_rows, x, None, x.clone())
    refused("map_pairs: topk_ids: not int64 or int32", exchange.map_pairs, weights, 2, 2)
    refused("map_pairs: num_destinations: not in [1, 2^31)", exchange.map_pairs, ids, 0, 2)
    refused("map_pairs: experts_per_destination: below 1", exchange.map_pairs, ids, 2, 0)
    refused("map_pairs: library: MapPairs: topk_ids", exchange.map_pairs, ids, 1, 2)
    for experts in (ids.flatten(), ids.view(4, 1).long(), ids, ids.view(4, 1)[:3]):
        refused("map_pairs: experts: not", exchange.map_pairs, ids, 2, 2, experts=experts)
    counts = torch.tensor([[1, 2], [3, 4]])
    refused("map_replicas: topk_ids: not int64 or int32", exchange.map_replicas, weights, ids, pairs)
    refused("map_replicas: replicas: not int32", exchange.map_replicas, ids, ids.long(), pairs)
    refused("map_replicas: replica_counts: not int32", exchange.map_replicas, ids, ids, weights)
    refused("map_replicas: first_replica: below 0", exchange.map_replicas, ids, ids, pairs[:2],
            first_replica=-1)
    refused("MapReplicas: topk_ids: without a replica", exchange.map_replicas, ids, ids, pairs[:2])
    refused("map_counts: rank: below 0", exchange.map_counts, counts, -1)
    refused("map_counts: row_elements: below 0", exchange.map_counts, counts, 0, row_elements=-1)
    refused("map_counts: capacity: below 0", exchange.map_counts, counts, 0, capacity=-1)
    refused("MapCounts: options: rank: not below ranks", exchange.map_counts, counts, 2)
    refused("MapCounts: counts: is negative", exchange.map_counts, -counts, 0)
    refused("MapCounts: counts: a rank receives more rows than options.capacity: rank 1 receives 6, "
            "capacity is 5", exchange.map_counts, counts, 0, capacity=5)
    gather = exchange.gather_rows
    refused("gather_rows: pairs: its elements do not follow", gather, x, ids.T, x.clone())
    refused("gather_rows: rows: uint8 or bool", gather, x, pairs, x.byte())
    refused("gather_rows: pairs: not int32", gather, x, pairs.long(), x.clone())
    refused("gather_rows: top_k: below 1", gather, x, pairs, x.clone(), top_k=0)
    refused("gather_rows: rows: the elements of its rows do not follow", gather, x, pairs,
            torch.empty(8, 4).T)
    refused("gather_rows: rows: a dtype that is none of", gather, x, pairs, x.double())
    refused("gather_rows: row_scales: not float32", gather, x, pairs, codes, row_scales=codes[:, :1])
    refused("GatherRows: rows.scales", gather, x, pairs, codes)
    refused("GatherRows: rows: overlaps tokens", gather, x, pairs, x)
    refused("GatherRows: pairs: outside", gather, x, pairs + 1, x.clone())
    refused("gather_rows: autograd", gather, x.clone().requires_grad_(), pairs, x.clone())
    refused("combine: row_index: not int32", exchange.combine, x, weights, ids.long())
    refused("combine: dtype: not float32, bfloat16 or float16", exchange.combine, codes, weights, ids)
    refused("combine: dtype: not float32, bfloat16 or float16", exchange.combine, x, weights, ids,
            dtype=torch.float64)
    refused("Combine: row_index", exchange.combine, x, weights, ids + 1)
    refused("combine: autograd", exchange.combine, x, weights.clone().requires_grad_(), ids)


def test_operators_can_be_traced():
    x, ids = torch.randn(4, 8), torch.arange(8).view(4, 2)
    where = exchange.map_pairs(ids, 2, 4)
    checks = ("test_schema", "test_faketensor")
    ops = torch.ops.switchyard
    torch.library.opcheck(ops.map_pairs, (ids, 2, 4, torch.empty(8, 1, dtype=torch.int32)),
                          test_utils=checks)
    ones = torch.ones(8, dtype=torch.int32)
    torch.library.opcheck(ops.map_replicas, (ids, ones.view(8, 1), ones), test_utils=checks)
    torch.library.opcheck(ops.map_counts, (torch.ones(3, 3, dtype=torch.int32), 1), test_utils=checks)
    torch.library.opcheck(ops.gather_rows, (x, where.rows, torch.empty(8, 8, dtype=torch.int8), 2),
                          {"row_scales": torch.empty(8, 1)}, test_utils=checks)
    torch.library.opcheck(ops.combine, (torch.randn(8, 8), torch.rand(4, 2), where.pair_index),
                          test_utils=checks)
