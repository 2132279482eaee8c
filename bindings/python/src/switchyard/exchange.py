# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
"""Moves rows to the processes with their experts, and back.

The functions are the steps before and after torch.distributed.all_to_all_single in an
expert-parallel layer, such as examples/expert_parallel.py.
"""

from typing import NamedTuple

import torch

import switchyard

# The functions below call an operator's overload .default. If a product has just emptied the
# caches, this saves 8 of a call's 90 us, because torch does not look for the overload.
_ops = torch.ops.switchyard
QUANTISED = (torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)


class Map(NamedTuple):
    """Pairs (token * top_k + slot) in the order of their destinations. All tensors are int32."""
    counts: torch.Tensor  # [destinations]: numbers of rows, all_to_all_single's input_split_sizes
    offsets: torch.Tensor  # [destinations + 1]
    rows: torch.Tensor  # [tokens * top_k]: the pair of each row, ascending in each destination
    pair_index: torch.Tensor  # [tokens, top_k]: each pair's index in `rows`


def map_pairs(topk_ids, num_destinations, experts_per_destination, *, experts=None):
    """Sorts pairs by destination. Expert e is at destination e // experts_per_destination.

    With one expert at each destination, the function sorts rows by expert. If `experts` is given,
    it receives each row's e % experts_per_destination: int32 in one column, which may be a column
    of a message.
    """
    return Map(*_ops.map_pairs.default(topk_ids, num_destinations, experts_per_destination,
                                       experts))


def map_replicas(topk_ids, replicas, replica_counts, *, first_replica=0):
    """Returns the physical expert of each pair, and the number of pairs of each logical expert.

    `replicas` is int32 of [experts, most replicas], and row e has replica_counts[e] (int32) physical
    experts. The n-th pair of expert e gets replica (first_replica + n) % replica_counts[e].
    """
    return _ops.map_replicas.default(topk_ids, replicas, replica_counts, first_replica)


class Counts(NamedTuple):
    """The counts and offsets of a rank's exchange, in elements. All tensors are int64. put_offsets
    has the places where this rank's rows begin in each rank's receive buffer."""
    send_counts: torch.Tensor  # [ranks]
    send_offsets: torch.Tensor  # [ranks + 1]
    recv_counts: torch.Tensor  # [ranks]
    recv_offsets: torch.Tensor  # [ranks + 1]
    put_offsets: torch.Tensor  # [ranks]


def map_counts(counts, rank, *, row_elements=1, capacity=None):
    """Computes the exchange of `rank` from the counts of all ranks: counts[s, d] rows go from rank
    s to rank d.

    `counts` is int32 or int64. If any rank receives more than `capacity` rows, this raises an error
    on every rank.
    """
    return Counts(*_ops.map_counts.default(counts, rank, row_elements, capacity))


def gather_rows(tokens, pairs, rows, *, top_k=1, token_scales=None, row_scales=None,
                row_index=None):
    """Writes rows[r] = tokens[pairs[r] // top_k], in the dtype of `rows`.

    Rows of int8 and float8 have scales: float32 in one column. Rows and scales may be columns of
    one message. If `pairs` is the `rows` of a Map, pass the Map's pair_index as row_index: the
    function then converts each token only once.
    """
    _ops.gather_rows.default(tokens, pairs, rows, top_k, token_scales, row_scales, row_index)
    return rows


def combine(rows, topk_weights, row_index, *, row_scales=None, dtype=None):
    """Sums weight * rows[row_index[token, slot]] over the slots of each token, in the order of
    slots."""
    return _ops.combine.default(rows, topk_weights, row_index, row_scales, dtype)


@torch.library.register_fake("switchyard::map_pairs")
def _(topk_ids, num_destinations, experts_per_destination, experts=None):
    def ints(*shape):
        return topk_ids.new_empty(shape, dtype=torch.int32)
    return (ints(num_destinations), ints(num_destinations + 1), ints(topk_ids.numel()),
            ints(*topk_ids.shape))


@torch.library.register_fake("switchyard::map_replicas")
def _(topk_ids, replicas, replica_counts, first_replica=0):
    return (topk_ids.new_empty(topk_ids.shape, dtype=torch.int32),
            replica_counts.new_empty(replica_counts.shape))


@torch.library.register_fake("switchyard::map_counts")
def _(counts, rank, row_elements=1, capacity=None):
    ranks = counts.shape[1]
    return tuple(counts.new_empty((n,), dtype=torch.int64)
                 for n in (ranks, ranks + 1, ranks, ranks + 1, ranks))


@torch.library.register_fake("switchyard::gather_rows")
def _(tokens, pairs, rows, top_k=1, token_scales=None, row_scales=None, row_index=None):
    pass


@torch.library.register_fake("switchyard::combine")
def _(rows, topk_weights, row_index, row_scales=None, dtype=None):
    return rows.new_empty((topk_weights.shape[0], rows.shape[1]), dtype=dtype or rows.dtype)


for _op in (_ops.gather_rows, _ops.combine):
    switchyard._refuse_derivatives(_op)
